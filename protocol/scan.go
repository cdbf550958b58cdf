package protocol

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a message. Deeper ones are refused as invalid
// requests, however valid their JSON is.
const maxDepth = 1000

// A verdict is what the scanner thinks of a text.
type verdict uint8

const (
	scanOK        verdict = iota
	scanSyntax            // no JSON text
	scanDuplicate         // a member name occurs twice in one object
	scanDepth             // nested deeper than maxDepth
)

// scanner checks JSON texts strictly (RFC 8259: UTF-8, no control characters in
// strings, one value and nothing after it), finds duplicate member names at any
// depth, and reports the members of the outermost object on its way. It needs no
// memory in the usual case, and no stack of its own however deep a text is.
type scanner struct {
	kinds []uint64 // one bit a level: set for objects
	keys  []keyRef // member names of all open objects, innermost last
	marks []int32  // where each open object's names start in keys
}

type keyRef struct {
	start, end int32 // between the quotes
	tag        uint32
	escaped    bool
}

// tagOf is equal for equal names, and mostly different for others.
func tagOf(name []byte) uint32 {
	n := len(name)
	if n == 0 {
		return 0
	}
	return uint32(n)<<24 ^ uint32(name[0])<<16 ^ uint32(name[n-1])<<8 ^ uint32(name[n/2])
}

// scan checks text and calls member with each name (without quotes) and value of
// the outermost object, and param with those (names as
// they are written) of the object that is its member params, in order. Values are only known to be sound when scan returns scanOK.
// Either function may be nil.
func (s *scanner) scan(b []byte, member, param func(name, value []byte)) verdict {
	if !utf8.Valid(b) {
		return scanSyntax
	}
	s.keys, s.marks = s.keys[:0], s.marks[:0]
	verdict := scanOK
	depth := 0
	// The member that is being read, on the two outermost levels.
	var names [2][]byte
	var starts [2]int
	inParams := false // the object on level 2 is params
	i := 0
value:
	i = skipSpace(b, i)
	if i >= len(b) {
		return scanSyntax
	}
	if depth == 1 || depth == 2 {
		starts[depth-1] = i
	}
	switch c := b[i]; c {
	case '{':
		s.push(depth, true)
		depth++
		if depth == 2 {
			inParams = param != nil && s.object(0) && string(names[0]) == "params"
		}
		if depth > maxDepth && verdict == scanOK {
			verdict = scanDepth
		}
		if depth <= maxDepth {
			s.marks = append(s.marks, int32(len(s.keys)))
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == '}' {
			goto closing
		}
		goto key
	case '[':
		s.push(depth, false)
		depth++
		if depth == 2 {
			inParams = false
		}
		if depth > maxDepth && verdict == scanOK {
			verdict = scanDepth
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == ']' {
			goto closing
		}
		goto value
	case '"':
		if i, _ = scanString(b, i); i < 0 {
			return scanSyntax
		}
	case 't':
		if i = literal(b, i, "true"); i < 0 {
			return scanSyntax
		}
	case 'f':
		if i = literal(b, i, "false"); i < 0 {
			return scanSyntax
		}
	case 'n':
		if i = literal(b, i, "null"); i < 0 {
			return scanSyntax
		}
	default:
		if i = scanNumber(b, i); i < 0 {
			return scanSyntax
		}
	}
after:
	if depth == 0 {
		if skipSpace(b, i) != len(b) {
			return scanSyntax
		}
		return verdict
	}
	switch {
	case depth == 1 && member != nil && s.object(0):
		member(names[0], b[starts[0]:i])
	case depth == 2 && inParams:
		param(names[1], b[starts[1]:i])
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return scanSyntax
	}
	if b[i] == ',' {
		i++
		if !s.object(depth - 1) {
			goto value
		}
		i = skipSpace(b, i)
		goto key
	}
closing:
	if s.object(depth - 1) {
		if b[i] != '}' {
			return scanSyntax
		}
		if depth <= maxDepth {
			if s.duplicates(b) && verdict == scanOK {
				verdict = scanDuplicate
			}
		}
	} else if b[i] != ']' {
		return scanSyntax
	}
	i++
	depth--
	goto after
key:
	if i >= len(b) || b[i] != '"' {
		return scanSyntax
	}
	{
		end, escaped := scanString(b, i)
		if end < 0 {
			return scanSyntax
		}
		name := b[i+1 : end-1]
		if escaped {
			name = unescape(name)
		}
		if depth <= maxDepth {
			s.keys = append(s.keys, keyRef{int32(i + 1), int32(end - 1), tagOf(name), escaped})
		}
		switch depth {
		case 1:
			names[0] = name
		case 2:
			names[1] = b[i+1 : end-1]
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return scanSyntax
		}
		i++
	}
	goto value
}

func (s *scanner) push(depth int, object bool) {
	word, bit := depth/64, uint(depth%64)
	if word == len(s.kinds) {
		s.kinds = append(s.kinds, 0)
	}
	if object {
		s.kinds[word] |= 1 << bit
	} else {
		s.kinds[word] &^= 1 << bit
	}
}

func (s *scanner) object(level int) bool {
	return s.kinds[level/64]&(1<<uint(level%64)) != 0
}

// duplicates closes the innermost object and reports whether a name occurs twice.
func (s *scanner) duplicates(b []byte) bool {
	last := len(s.marks) - 1
	from := s.marks[last]
	s.marks = s.marks[:last]
	keys := s.keys[from:]
	s.keys = s.keys[:from]
	name := func(k keyRef) []byte {
		if k.escaped {
			return unescape(b[k.start:k.end])
		}
		return b[k.start:k.end]
	}
	if len(keys) <= 32 {
		for i := 1; i < len(keys); i++ {
			tag := keys[i].tag
			for j := range keys[:i] {
				if keys[j].tag == tag && bytes.Equal(name(keys[i]), name(keys[j])) {
					return true
				}
			}
		}
		return false
	}
	// Sorting keeps an object of a million members from costing their square.
	compare := func(x, y keyRef) int { return bytes.Compare(name(x), name(y)) }
	slices.SortFunc(keys, compare)
	for i := 1; i < len(keys); i++ {
		if compare(keys[i-1], keys[i]) == 0 {
			return true
		}
	}
	return false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func literal(b []byte, i int, want string) int {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return -1
	}
	return i + len(want)
}

// plainByte marks the bytes that stand for themselves inside a string.
var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// scanString returns the index after the string that opens at b[i], or -1.
func scanString(b []byte, i int) (end int, escaped bool) {
	i++
	for {
		for i < len(b) && plainByte[b[i]] {
			i++
		}
		if i >= len(b) {
			return -1, false
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
			if i >= len(b) {
				return -1, false
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i++
			case 'u':
				if len(b)-i < 5 || !hex4(b[i+1:i+5]) {
					return -1, false
				}
				i += 5
			default:
				return -1, false
			}
		default:
			return -1, false // a raw control character
		}
	}
}

func hex4(b []byte) bool {
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// scanNumber returns the index after the number at b[i], or -1.
func scanNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

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
	for i++; ; i++ {
		// Most strings are short; the search for a byte pays for long ones.
		for stop := min(i+32, len(b)); i < stop && b[i] != '"' && b[i] != '\\'; i++ {
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
			continue
		}
		quote := i + bytes.IndexByte(b[i:], '"')
		back := bytes.IndexByte(b[i:quote], '\\')
		if back < 0 {
			return quote + 1, escaped
		}
		escaped = true
		i += back + 1
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
