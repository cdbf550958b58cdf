package template

import (
	"fmt"
	"strings"
)

type partKind uint8

const (
	partText   partKind = iota
	partOutput          // {{ … }}
	partBlock           // {% … %}
)

// part is a piece of a template: text, or the inside of a tag.
type part struct {
	kind partKind
	body string
	at   int // byte offset of body in the template
	tag  int // byte offset of the tag's first brace
}

// scanner cuts a template into parts. It drops comments, unwraps raw blocks and
// applies the white-space control of tags: `-` next to a delimiter removes all
// white space on that side of the tag, `+` keeps it.
type scanner struct {
	name string
	text string
	pos  int
	trim bool // the tag before ended with `-`
}

func (s *scanner) fail(at int, format string, args ...any) error {
	return &Error{Template: s.name, Offset: at, Message: fmt.Sprintf(format, args...)}
}

// next gives the next part; ok is false at the end.
func (s *scanner) next() (part, bool, error) {
	if s.pos >= len(s.text) {
		return part{}, false, nil
	}
	start := s.pos
	open := nextTag(s.text, start)
	if open > start {
		s.pos = open
		body := s.text[start:open]
		if s.trim {
			body, s.trim = trimLeft(body), false
		}
		if strings.HasPrefix(s.text[min(open+2, len(s.text)):], "-") {
			body = trimRight(body)
		}
		return part{kind: partText, body: body, at: start}, true, nil
	}
	s.trim = false
	if s.text[open+1] == '#' {
		return s.comment(open)
	}
	return s.tag(open)
}

// nextTag is where the next `{{`, `{%` or `{#` starts, or the text's length.
func nextTag(text string, from int) int {
	for i := from; ; i++ {
		at := strings.IndexByte(text[i:], '{')
		if at < 0 || i+at+1 >= len(text) {
			return len(text)
		}
		i += at
		if c := text[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

const space = " \t\r\n"

func trimLeft(s string) string  { return strings.TrimLeft(s, space) }
func trimRight(s string) string { return strings.TrimRight(s, space) }

func (s *scanner) comment(open int) (part, bool, error) {
	end := strings.Index(s.text[open+2:], "#}")
	if end < 0 {
		return part{}, false, s.fail(open, "a comment is never closed; end it with #}")
	}
	end += open + 2
	s.trim = end > open+2 && s.text[end-1] == '-'
	s.pos = end + 2
	return part{kind: partText, at: s.pos}, true, nil
}

// tag takes `{{ … }}` or `{% … %}`. Delimiters inside string literals do not end
// it.
func (s *scanner) tag(open int) (part, bool, error) {
	kind, closer := partOutput, "}}"
	if s.text[open+1] == '%' {
		kind, closer = partBlock, "%}"
	}
	from := open + 2
	if c := s.at(from); c == '-' || c == '+' {
		from++
	}
	for i := from; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"' || c == '\'':
			end := stringEnd(s.text, i)
			if end < 0 {
				return part{}, false, s.fail(i, "a string in the template is never closed")
			}
			i = end
		case strings.HasPrefix(s.text[i:], closer):
			to := i
			if last := s.text[i-1]; to > from && (last == '-' || last == '+') {
				to--
				s.trim = last == '-'
			}
			s.pos = i + len(closer)
			p := part{kind: kind, body: s.text[from:to], at: from, tag: open}
			if kind == partBlock && strings.Trim(p.body, space) == "raw" {
				return s.raw(open)
			}
			return p, true, nil
		}
	}
	return part{}, false, s.fail(open, "a `%s` is never closed; end it with %s", s.text[open:open+2], closer)
}

func (s *scanner) at(i int) byte {
	if i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// stringEnd is the offset of the quote that closes the one at i, or -1.
func stringEnd(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case text[i]:
			return j
		}
	}
	return -1
}

// raw takes everything up to `{% endraw %}` as text.
func (s *scanner) raw(open int) (part, bool, error) {
	start := s.pos
	for i := start; ; {
		at := strings.Index(s.text[i:], "{%")
		if at < 0 {
			return part{}, false, s.fail(open, "a raw block is never closed; end it with {%% endraw %%}")
		}
		at += i
		left, right, end := s.endraw(at)
		if end < 0 {
			i = at + 2
			continue
		}
		body := s.text[start:at]
		if s.trim {
			body = trimLeft(body)
		}
		if left {
			body = trimRight(body)
		}
		s.trim = right
		s.pos = end
		return part{kind: partText, body: body, at: start}, true, nil
	}
}

// endraw recognises `{% endraw %}` at an offset: whether it trims on either side,
// and where it ends, -1 when something else stands there. It looks no further
// than it must: raw text may be full of other tags.
func (s *scanner) endraw(at int) (left, right bool, end int) {
	rest := s.text[at+2:]
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		left, rest = rest[0] == '-', rest[1:]
	}
	rest, ok := strings.CutPrefix(trimLeft(rest), "endraw")
	if !ok {
		return false, false, -1
	}
	rest = trimLeft(rest)
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		right, rest = rest[0] == '-', rest[1:]
	}
	if !strings.HasPrefix(rest, "%}") {
		return false, false, -1
	}
	return left, right, len(s.text) - len(rest) + 2
}
