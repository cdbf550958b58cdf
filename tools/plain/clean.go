// Package plain makes text fit for a person's terminal and for a model: free of
// control characters and terminal sequences, bounded in length, and with what came
// out of a run marked as such.
//
// The package imports nothing of this module.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes terminal sequences, control characters other than newline and tab,
// and characters that are invisible but change what is read (bidirectional
// controls, zero-width characters, tags). A carriage return that redraws a line
// keeps only what was drawn last. Invalid UTF-8 becomes U+FFFD.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	lineStart, redraw := 0, false
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == 0x1b:
			i += sequence(s[i:])
			continue
		case c == '\r':
			redraw = true // by what is drawn next, if the line does not end before
			i++
			continue
		case c == '\n':
			b = append(b, c)
			lineStart, redraw = len(b), false
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if size > 1 && r == 0x9b { // the one-character form of ESC [
			i += size + csi(s[i+size:])
			continue
		}
		if !hidden(r) {
			if redraw {
				b, redraw = b[:lineStart], false
			}
			b = utf8.AppendRune(b, r) // U+FFFD for what is no UTF-8
		}
		i += size
	}
	return string(b)
}

func isClean(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		if hidden(r) || r == '\r' {
			return false
		}
	}
	return true
}

// hidden reports what Clean drops.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || 0x7f <= r && r <= 0x9f:
		return true
	case r < 0x200b:
		return r == 0xad // soft hyphen
	case r == 0x200d: // joins emoji
		return false
	}
	return unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029
}

// sequence measures the terminal sequence at the start of s, which begins with
// ESC: CSI, the strings OSC, DCS, SOS, PM and APC up to their end, or two bytes.
func sequence(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		return 2 + csi(s[2:])
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n': // never ended: do not eat the rest of the log
				return i
			}
		}
		return len(s)
	}
	n := 1
	for n < len(s) && 0x20 <= s[n] && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && 0x30 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}

// csi measures what follows ESC [: parameters, intermediates and the final byte.
func csi(s string) int {
	n := 0
	for n < len(s) && 0x20 <= s[n] && s[n] <= 0x3f {
		n++
	}
	if n < len(s) && 0x40 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}

// Clip shortens s to at most max bytes at a character boundary and ends it with
// "…" when something was cut.
func Clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	const mark = "…"
	cut := max - len(mark)
	if cut < 0 {
		return ""
	}
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// Line makes one clean line of at most max bytes: runs of white space become one
// space.
func Line(s string, max int) string {
	return Clip(strings.Join(strings.Fields(Clean(s)), " "), max)
}
