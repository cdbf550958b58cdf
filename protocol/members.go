package protocol

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// members calls f with each member of an object that the scanner has found sound,
// until f returns false. Anything but an object has no members.
func members(obj []byte, f func(name, value []byte) bool) {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return
	}
	i = skipSpace(obj, i+1)
	for i < len(obj) && obj[i] == '"' {
		end, escaped := skipString(obj, i)
		name := obj[i+1 : end-1]
		if escaped {
			name = unescape(name)
		}
		start := skipSpace(obj, skipSpace(obj, end)+1)
		i = skipValue(obj, start)
		if !f(name, obj[start:i]) {
			return
		}
		i = skipSpace(obj, i)
		if obj[i] != ',' {
			return
		}
		i = skipSpace(obj, i+1)
	}
}

// elements calls f with each element of a sound array until f returns false.
func elements(arr []byte, f func(value []byte) bool) {
	i := skipSpace(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return
	}
	i = skipSpace(arr, i+1)
	for i < len(arr) && arr[i] != ']' {
		start := i
		i = skipValue(arr, start)
		if !f(arr[start:i]) {
			return
		}
		i = skipSpace(arr, i)
		if arr[i] != ',' {
			return
		}
		i = skipSpace(arr, i+1)
	}
}

// field returns the value of one member of a sound object, nil where it is absent.
func field(obj []byte, name string) (value []byte) {
	members(obj, func(n, v []byte) bool {
		if string(n) == name {
			value = v
			return false
		}
		return true
	})
	return value
}

// skipString returns the index after the sound string at b[i].
func skipString(b []byte, i int) (end int, escaped bool) {
	for i++; ; i += 2 {
		if i = skipPlain(b, i); b[i] == '"' {
			return i + 1, escaped
		}
		escaped = true // the byte after the backslash says nothing by itself
	}
}

// structural marks the bytes that matter to somebody who skips a value.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skipValue returns the index after the sound value at b[i].
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		end, _ := skipString(b, i)
		return end
	case '{', '[':
		depth := 0
		for {
			for !structural[b[i]] {
				i++
			}
			switch b[i] {
			case '"':
				i, _ = skipString(b, i)
				continue
			case '{', '[':
				depth++
			default:
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	return skipScalar(b, i)
}

// skipScalar returns the index after the sound number or literal at b[i].
func skipScalar(b []byte, i int) int {
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// unescape decodes the inside of a sound string. A surrogate without its other
// half becomes U+FFFD, as everywhere in Go.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		c := b[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		switch b[i+1] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := rune(hexValue(b[i+2 : i+6]))
			i += 6
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if len(b)-i >= 6 && b[i] == '\\' && b[i+1] == 'u' {
					low = rune(hexValue(b[i+2 : i+6]))
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		default:
			out = append(out, b[i+1])
		}
		i += 2
	}
	return out
}

func hexValue(b []byte) (v uint32) {
	for _, c := range b {
		v <<= 4
		switch {
		case c <= '9':
			v |= uint32(c - '0')
		case c <= 'F':
			v |= uint32(c-'A') + 10
		default:
			v |= uint32(c-'a') + 10
		}
	}
	return v
}

// stringValue decodes a sound JSON string; ok is false for any other value.
func stringValue(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		inner = unescape(inner)
	}
	return string(inner), true
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func isString(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }
func isNull(raw []byte) bool   { return string(raw) == "null" }
func isBool(raw []byte) bool   { return string(raw) == "true" || string(raw) == "false" }

// isInteger reports whether a sound value is a number in plain integer spelling:
// digits with at most a sign, no fraction, no exponent.
func isInteger(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return false
	}
	for _, c := range raw[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
