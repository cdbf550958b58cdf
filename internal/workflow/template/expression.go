package template

import (
	"fmt"
	"strings"
)

// token is a word, a string, a number or a single character of a tag.
type token struct {
	kind byte // 'w' word, 's' string, 'n' number, 0 end, else the character itself
	text string
	at   int
}

type parser struct{ scanner }

// tokens cuts the inside of a tag. It accepts anything: what is not known is for
// the caller to refuse.
func (s *scanner) tokens(p part) []token {
	var list []token
	for i := 0; i < len(p.body); {
		c := p.body[i]
		at := p.at + i
		switch {
		case strings.IndexByte(space, c) >= 0:
			i++
		case c == '"' || c == '\'':
			end := stringEnd(p.body, i)
			list = append(list, token{'s', unquote(p.body[i+1 : end]), at})
			i = end + 1
		case isWordStart(c):
			end := i
			for end < len(p.body) && (isWordStart(p.body[end]) || isDigit(p.body[end])) {
				end++
			}
			list = append(list, token{'w', p.body[i:end], at})
			i = end
		case isDigit(c):
			end := i
			for end < len(p.body) && (isDigit(p.body[end]) || p.body[end] == '.') {
				end++
			}
			list = append(list, token{'n', p.body[i:end], at})
			i = end
		default:
			list = append(list, token{c, string(c), at})
			i++
		}
	}
	return append(list, token{0, "", p.at + len(p.body)})
}

func isWordStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (p *parser) unsupported(at int, format string, args ...any) error {
	return &Error{
		Template: p.name, Offset: at, Unsupported: true,
		Message: fmt.Sprintf(format, args...) + " is not supported by the embedded engine",
	}
}

// output parses `{{ operand | default(operand) … }}`.
func (p *parser) output(part part) (node, error) {
	list := p.tokens(part)
	n := outputNode{at: part.tag}
	if list[0].kind == 0 {
		return nil, p.fail(part.tag, "an empty {{ }} names no variable")
	}
	var err error
	if n.value, list, err = p.operand(list); err != nil {
		return nil, err
	}
	for list[0].kind == '|' {
		name := list[1]
		if name.kind != 'w' {
			return nil, p.fail(name.at, "expected the name of a filter after `|`")
		}
		if name.text != "default" && name.text != "d" {
			return nil, p.unsupported(name.at, "the filter `%s`", name.text)
		}
		list = list[2:]
		argument := operand{at: name.at}
		if list[0].kind == '(' {
			if list[1].kind == ')' {
				list = list[2:]
			} else {
				if argument, list, err = p.operand(list[1:]); err != nil {
					return nil, err
				}
				if list[0].kind == ',' {
					return nil, p.unsupported(list[0].at, "the second argument of `default`")
				}
				if list[0].kind != ')' {
					return nil, p.fail(list[0].at, "expected `)` after the argument of `default`")
				}
				list = list[1:]
			}
		}
		n.filters = append(n.filters, argument)
	}
	switch t := list[0]; t.kind {
	case 0:
		return n, nil
	case 'w', '+', '-', '*', '/', '%', '~', '=', '!', '<', '>', '(', '[':
		return nil, p.unsupported(t.at, "`%s` in an expression", t.text)
	default:
		return nil, p.fail(t.at, "`%s` is unexpected here", t.text)
	}
}

// operand parses a literal or a path. The token list always ends with the end
// token, so looking one ahead is safe.
func (p *parser) operand(list []token) (operand, []token, error) {
	o := operand{at: list[0].at}
	switch t := list[0]; t.kind {
	case 's', 'n':
		o.literal = t.text
		return o, list[1:], nil
	case 'w':
	case 0:
		return o, nil, p.fail(t.at, "the expression ends too early")
	case '-', '[', '{', '(':
		return o, nil, p.unsupported(t.at, "`%s` in an expression", t.text)
	default:
		return o, nil, p.fail(t.at, "`%s` is unexpected here", t.text)
	}
	switch word := list[0].text; word {
	case "true", "false", "True", "False":
		o.literal = strings.ToLower(word)
		return o, list[1:], nil
	case "none", "None":
		o.literal = "none"
		return o, list[1:], nil
	case "not", "if", "for", "in":
		return o, nil, p.unsupported(list[0].at, "`%s` in an expression", word)
	}
	o.path = []string{list[0].text}
	list = list[1:]
	for {
		switch {
		case list[0].kind == '.' && (list[1].kind == 'w' || list[1].kind == 'n'):
			o.path = append(o.path, list[1].text)
			list = list[2:]
		case list[0].kind == '.':
			return o, nil, p.fail(list[0].at, "expected a name after `.`")
		case list[0].kind == '[' && list[1].kind == 's' && len(list) > 3 && list[2].kind == ']':
			o.path = append(o.path, list[1].text)
			list = list[3:]
		default:
			return o, list, nil
		}
	}
}

// block parses `{% … %}`; include is the only one rendered.
func (p *parser) block(part part) (node, error) {
	list := p.tokens(part)
	if list[0].kind != 'w' {
		return nil, p.fail(part.tag, "a {%% %%} tag begins with a word such as include")
	}
	if word := list[0]; word.text != "include" {
		return nil, p.unsupported(word.at, "the tag `{%% %s %%}`", word.text)
	}
	if list[1].kind != 's' {
		if list[1].kind == 0 {
			return nil, p.fail(list[1].at, "include needs the name of a file in quotes")
		}
		return nil, p.unsupported(list[1].at, "an include whose file is not a plain string")
	}
	n := includeNode{ref: list[1].text, at: list[1].at}
	switch rest := list[2:]; {
	case rest[0].kind == 0:
	case len(rest) == 3 && rest[0].text == "ignore" && rest[1].text == "missing":
		n.ignoreMissing = true
	default:
		return nil, p.unsupported(rest[0].at, "`%s` after an include", rest[0].text)
	}
	return n, nil
}
