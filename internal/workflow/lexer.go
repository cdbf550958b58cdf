package workflow

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer walks over the text of a graph file. It has no tokens of its own: what
// a character means depends on the place (`graph` is a keyword only before `[`,
// `a-b` is a value but no node id), so the parser asks for what it expects.
type lexer struct {
	source *Source
	text   string
	pos    int

	// openComment is where a block comment starts that nothing closes, or -1.
	openComment int
}

func isIdentStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentPart(c byte) bool { return isIdentStart(c) || isDigit(c) }

// skip moves over white space and comments. `#` starts no comment. A block
// comment that is never closed swallows everything but the last character of
// the file.
func (l *lexer) skip() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.pos += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.openComment = l.pos
				l.pos = len(l.text) - 1
				continue
			}
			l.pos += end + 4
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (l *lexer) peek() byte {
	if l.pos < len(l.text) {
		return l.text[l.pos]
	}
	return 0
}

// accept takes a literal text if it is next.
func (l *lexer) accept(text string) bool {
	if strings.HasPrefix(l.text[l.pos:], text) {
		l.pos += len(text)
		return true
	}
	return false
}

// ident takes an identifier: `[A-Za-z_][A-Za-z0-9_]*`, ASCII only.
func (l *lexer) ident() (string, bool) {
	start := l.pos
	if start >= len(l.text) || !isIdentStart(l.text[start]) {
		return "", false
	}
	for l.pos < len(l.text) && isIdentPart(l.text[l.pos]) {
		l.pos++
	}
	return l.text[start:l.pos], true
}

// key takes an attribute name: identifiers joined by dots.
func (l *lexer) key() (string, bool) {
	start := l.pos
	if _, ok := l.ident(); !ok {
		return "", false
	}
	for l.peek() == '.' && l.pos+1 < len(l.text) && isIdentStart(l.text[l.pos+1]) {
		l.pos++
		l.ident()
	}
	return l.text[start:l.pos], true
}

// value takes an attribute value of any form.
func (l *lexer) value() (Value, error) {
	switch c := l.peek(); {
	case c == '"':
		text, err := l.quoted()
		return textValue(text), err
	case isDigit(c) || c == '-' || c == '.':
		return l.number()
	case isIdentStart(c):
		return l.word(), nil
	case c == '<':
		return Value{}, l.fail(l.pos, "HTML strings are not part of this dialect", `write the text as "…"`)
	case c == '\'':
		return Value{}, l.fail(l.pos, "a string is written in double quotes, not in single quotes", `use "…"`)
	default:
		return Value{}, l.fail(l.pos, "expected a value, found "+l.found(), `a value is "text", a number, a duration such as 30s, true, false or a word`)
	}
}

// quoted takes a string. `\"`, `\n`, `\t` and `\\` are escapes; before any other
// character a backslash stays, so that `\b` reaches a regular expression and a
// backslash at the end of a line reaches the shell.
func (l *lexer) quoted() (string, error) {
	start := l.pos
	body := l.text[start+1:]
	plain := strings.IndexAny(body, "\"\\")
	if plain >= 0 && body[plain] == '"' {
		l.pos += plain + 2
		return body[:plain], nil
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			l.pos = start + 1 + i + 1
			return b.String(), nil
		case '\\':
			if i++; i < len(body) {
				b.WriteString(unescape(body[i]))
			}
		default:
			b.WriteByte(body[i])
		}
	}
	return "", l.fail(start, "this string is never closed", `add the closing " (inside a string a quote is written \")`)
}

// unescape is what backslash and c stand for in a string.
func unescape(c byte) string {
	switch c {
	case '"', '\\':
		return string(rune(c))
	case 'n':
		return "\n"
	case 't':
		return "\t"
	default:
		return string([]byte{'\\', c})
	}
}

// word takes an unquoted text: true and false are booleans, everything else is
// a string. Dots and dashes may be inside, as in `gpt-5.2-codex`.
func (l *lexer) word() Value {
	start := l.pos
	for l.pos < len(l.text) && (isIdentPart(l.text[l.pos]) || l.text[l.pos] == '.' || l.text[l.pos] == '-') {
		l.pos++
	}
	switch word := l.text[start:l.pos]; word {
	case "true", "false":
		return Boolean(word == "true")
	default:
		return textValue(word)
	}
}

// number takes a duration, a floating-point number or an integer.
func (l *lexer) number() (Value, error) {
	start := l.pos
	l.accept("-")
	digits := l.digits()
	if digits > 0 && l.peek() != '.' {
		return l.wholeNumber(start)
	}
	if !l.accept(".") || l.digits() == 0 {
		l.pos = start
		return Value{}, l.fail(start, "expected a number, found "+l.found(), "numbers are written 3, -3, 0.5 or .5; text goes in quotes")
	}
	f, err := strconv.ParseFloat(l.text[start:l.pos], 64)
	if err != nil {
		return Value{}, l.fail(start, fmt.Sprintf("the number %.40s is out of range", l.text[start:l.pos]), "write a smaller number, or put it in quotes")
	}
	return Float(f), l.numberEnds(start)
}

func (l *lexer) wholeNumber(start int) (Value, error) {
	end := l.pos
	for _, u := range durationUnits {
		if !l.accept(u.suffix) {
			continue
		}
		if c := l.peek(); isDigit(c) || isIdentStart(c) && c != '_' {
			l.pos = end
			continue
		}
		text := l.text[start:l.pos]
		if text[0] == '-' {
			return Value{}, l.fail(start, fmt.Sprintf("the duration %.40s is negative", text), "write a duration of 0 or more")
		}
		d, ok := parseDuration(text)
		if !ok {
			return Value{}, l.fail(start, fmt.Sprintf("the duration %.40s is out of range", text), "write a shorter duration")
		}
		return Duration(d), nil
	}
	n, err := strconv.ParseInt(l.text[start:end], 10, 64)
	if err != nil {
		return Value{}, l.fail(start, fmt.Sprintf("the integer %.40s does not fit in 64 bits", l.text[start:end]), "write a smaller number, or put it in quotes")
	}
	return Integer(n), l.numberEnds(start)
}

// numberEnds refuses `5min` and `1.5s`, which would otherwise read as a number
// and a stray word.
func (l *lexer) numberEnds(start int) error {
	if !isIdentStart(l.peek()) {
		return nil
	}
	end := l.pos
	for end < len(l.text) && isIdentPart(l.text[end]) {
		end++
	}
	return l.fail(start, fmt.Sprintf("%.40q is neither a number nor a duration", l.text[start:end]),
		"a duration is a whole number with ms, s, m, h or d; text goes in quotes")
}

func (l *lexer) digits() int {
	start := l.pos
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
	return l.pos - start
}

// found describes what is at the position, for messages.
func (l *lexer) found() string {
	if l.pos >= len(l.text) {
		return "the end of the file"
	}
	if l.peek() == '"' {
		return "a string"
	}
	end := l.pos
	for end < len(l.text) && isIdentPart(l.text[end]) && end-l.pos < 40 {
		end++
	}
	if end > l.pos {
		return "`" + l.text[l.pos:end] + "`"
	}
	if strings.HasPrefix(l.text[l.pos:], "->") || strings.HasPrefix(l.text[l.pos:], "--") {
		return "`" + l.text[l.pos:l.pos+2] + "`"
	}
	r, _ := utf8.DecodeRuneInString(l.text[l.pos:])
	if !unicode.IsPrint(r) {
		return fmt.Sprintf("the character %U", r)
	}
	return "`" + string(r) + "`"
}

// fail makes the error for a place. A block comment that swallowed the rest is
// the likely cause of whatever is missing after it, so it is named instead.
func (l *lexer) fail(offset int, message, fix string) error {
	if l.openComment >= 0 {
		offset, message, fix = l.openComment, "this comment is never closed", "end it with */"
	}
	line, column := l.source.LineColumn(offset)
	return &SyntaxError{
		Path: l.source.Path, Line: line, Column: column, Offset: offset, Message: message, Fix: fix, source: l.source,
	}
}
