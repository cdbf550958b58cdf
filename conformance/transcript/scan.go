package transcript

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// scanner walks the comment of the archive byte by byte; every construct knows
// the offset it began at, so that each message names line and column.
type scanner struct {
	path string
	src  []byte
	pos  int
}

func (s *scanner) posAt(offset int) Pos {
	before := s.src[:min(offset, len(s.src))]
	return Pos{Line: bytes.Count(before, []byte("\n")) + 1, Column: offset - (bytes.LastIndexByte(before, '\n') + 1) + 1}
}

func (s *scanner) errAt(offset int, format string, args ...any) error {
	return &Error{Path: s.path, Pos: s.posAt(offset), Message: fmt.Sprintf(format, args...)}
}

func (s *scanner) err(format string, args ...any) error { return s.errAt(s.pos, format, args...) }

func (s *scanner) eof() bool { return s.pos >= len(s.src) }

func (s *scanner) peek() byte {
	if s.eof() {
		return 0
	}
	return s.src[s.pos]
}

func (s *scanner) has(prefix string) bool { return bytes.HasPrefix(s.src[s.pos:], []byte(prefix)) }

// blanks skips spaces and tabs within a line.
func (s *scanner) blanks() {
	for !s.eof() && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t' || s.src[s.pos] == '\r') {
		s.pos++
	}
}

// space skips white space and newlines, inside brackets.
func (s *scanner) space() {
	for !s.eof() && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t' || s.src[s.pos] == '\r' || s.src[s.pos] == '\n') {
		s.pos++
	}
}

func (s *scanner) atLineEnd() bool {
	s.blanks()
	return s.eof() || s.src[s.pos] == '\n'
}

// endLine demands that nothing more stands on the line.
func (s *scanner) endLine() error {
	if !s.atLineEnd() {
		return s.err("%s after the end of the step", s.near())
	}
	if !s.eof() {
		s.pos++
	}
	return nil
}

func (s *scanner) near() string {
	rest := s.src[s.pos:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	rest = bytes.TrimRight(rest, "\r")
	if len(rest) == 0 {
		return "the end of the line"
	}
	if len(rest) > 24 {
		rest = append(append([]byte{}, rest[:24]...), "..."...)
	}
	return strconv.Quote(string(rest))
}

// line returns the rest of the line, trimmed, without moving.
func (s *scanner) line() string {
	rest := s.src[s.pos:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	return strings.TrimSpace(string(rest))
}

func (s *scanner) skipLine() {
	if i := bytes.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
		s.pos += i + 1
		return
	}
	s.pos = len(s.src)
}

// word reads up to white space. An empty word means the line is at its end.
func (s *scanner) word() string {
	s.blanks()
	start := s.pos
	for !s.eof() && s.src[s.pos] > ' ' {
		s.pos++
	}
	return string(s.src[start:s.pos])
}

// peekWord looks at the next word without moving.
func (s *scanner) peekWord() string {
	at := s.pos
	w := s.word()
	s.pos = at
	return w
}

// accept takes the next word if it is w.
func (s *scanner) accept(w string) bool {
	s.blanks()
	at := s.pos
	if s.word() == w {
		return true
	}
	s.pos = at
	return false
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// name reads an identifier: letters, digits, '_', '-', '.'.
func (s *scanner) name() (string, error) {
	s.blanks()
	start := s.pos
	for !s.eof() && isNameByte(s.src[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return "", s.err("%s where a name is due", s.near())
	}
	return string(s.src[start:s.pos]), nil
}

// quoted reads a Go string literal, "…" with escapes or `…` without.
func (s *scanner) quoted() (string, error) {
	s.blanks()
	start := s.pos
	q, err := strconv.QuotedPrefix(string(s.src[s.pos:]))
	if err != nil || q[0] == '\'' {
		return "", s.err("%s where a string in double quotes or backquotes is due", s.near())
	}
	text, err := strconv.Unquote(q)
	if err != nil {
		return "", s.errAt(start, "string %s: %v", q, err)
	}
	s.pos += len(q)
	return text, nil
}
