package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// Stylesheet is a parsed `model_stylesheet`: rules `selector { property: value; }`
// that give nodes the attributes of a language model.
type Stylesheet struct {
	all     declarations
	shapes  map[string]declarations
	classes map[string]declarations
	ids     map[string]declarations
}

// declarations are the properties of one selector; a later rule wins over an
// earlier one.
type declarations map[string]declared

type declared struct {
	value string
	order int
}

// stylesheetProperties are the properties with an effect; others are ignored.
var stylesheetProperties = []string{"model", "provider", "reasoning_effort", "speed", "backend"}

// StylesheetError says why a text is no stylesheet. Offset is in bytes.
type StylesheetError struct {
	Offset  int
	Message string
}

func (e *StylesheetError) Error() string { return e.Message }

// ParseStylesheet reads a stylesheet in time linear in its length. Errors are
// *StylesheetError.
func ParseStylesheet(text string) (*Stylesheet, error) {
	s := &Stylesheet{
		all: declarations{}, shapes: map[string]declarations{}, classes: map[string]declarations{}, ids: map[string]declarations{},
	}
	p := &stylesheetParser{text: text}
	for order := 0; ; order++ {
		if err := p.skip(); err != nil {
			return nil, err
		}
		if p.pos == len(p.text) {
			return s, nil
		}
		to, err := p.selector(s)
		if err != nil {
			return nil, err
		}
		if err := p.block(to, order); err != nil {
			return nil, err
		}
	}
}

type stylesheetParser struct {
	text string
	pos  int
}

func (p *stylesheetParser) fail(at int, format string, args ...any) error {
	return &StylesheetError{at, fmt.Sprintf(format, args...)}
}

func (p *stylesheetParser) skip() error {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			p.pos++
		case strings.HasPrefix(p.text[p.pos:], "/*"):
			end := strings.Index(p.text[p.pos+2:], "*/")
			if end < 0 {
				return p.fail(p.pos, "this comment is never closed; end it with */")
			}
			p.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}

// take moves over the characters of a name.
func (p *stylesheetParser) take(ok func(byte) bool) string {
	start := p.pos
	for p.pos < len(p.text) && ok(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *stylesheetParser) found() string {
	l := lexer{text: p.text, pos: p.pos}
	return strings.Replace(l.found(), "file", "stylesheet", 1)
}

func (p *stylesheetParser) selector(s *Stylesheet) (declarations, error) {
	start := p.pos
	named := func(m map[string]declarations, name string) declarations {
		if m[name] == nil {
			m[name] = declarations{}
		}
		return m[name]
	}
	switch c := p.text[p.pos]; {
	case c == '*':
		p.pos++
		return s.all, nil
	case c == '.':
		p.pos++
		name := p.take(func(c byte) bool { return 'a' <= c && c <= 'z' || isDigit(c) || c == '-' })
		if name == "" || isIdentPart(p.peek()) {
			return nil, p.fail(start, "a class selector is a dot and lower-case letters, digits or dashes")
		}
		return named(s.classes, name), nil
	case c == '#':
		p.pos++
		name := p.take(func(c byte) bool { return isIdentPart(c) || c == '-' })
		if name == "" {
			return nil, p.fail(start, "an id selector is # and a node id")
		}
		return named(s.ids, name), nil
	case isIdentStart(c):
		return named(s.shapes, p.take(isIdentPart)), nil
	}
	return nil, p.fail(start, "expected a selector (*, a shape, .class or #id), found %s", p.found())
}

func (p *stylesheetParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *stylesheetParser) block(to declarations, order int) error {
	if err := p.skip(); err != nil {
		return err
	}
	if p.peek() != '{' {
		return p.fail(p.pos, "expected `{` after the selector, found %s", p.found())
	}
	open := p.pos
	p.pos++
	for {
		if err := p.skip(); err != nil {
			return err
		}
		switch {
		case p.pos == len(p.text):
			return p.fail(open, "this rule is never closed; add the missing }")
		case p.peek() == '}':
			p.pos++
			return nil
		case p.peek() == ';':
			p.pos++
			continue
		}
		at := p.pos
		property := p.take(func(c byte) bool { return isIdentPart(c) || c == '-' || c == '.' })
		if property == "" {
			return p.fail(at, "expected a property or `}`, found %s", p.found())
		}
		if err := p.skip(); err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.fail(p.pos, "expected `:` after `%.40s`, found %s", property, p.found())
		}
		p.pos++
		end := strings.IndexAny(p.text[p.pos:], ";}{")
		if end < 0 || p.text[p.pos+end] == '{' {
			return p.fail(open, "this rule is never closed; add the missing }")
		}
		value := strings.TrimSpace(p.text[p.pos : p.pos+end])
		p.pos += end
		if value == "" {
			return p.fail(at, "property `%.40s` has no value", property)
		}
		if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		if slices.Contains(stylesheetProperties, property) {
			to[property] = declared{value, order}
		}
	}
}

// Apply gives each node the properties of the rules that match it. A more
// specific selector wins (* below shape below class below id), among equals the
// later rule; attributes a node has of its own stay.
func (s *Stylesheet) Apply(g *Graph) {
	for _, n := range g.Nodes {
		classes := declarations{}
		for _, class := range n.Classes {
			for property, d := range s.classes[class] {
				if old, ok := classes[property]; !ok || old.order < d.order {
					classes[property] = d
				}
			}
		}
		levels := []declarations{s.ids[n.ID], classes, s.shapes[n.Shape()], s.all}
		for _, property := range stylesheetProperties {
			if n.Attrs.Has(property) {
				continue
			}
			for _, level := range levels {
				if d, ok := level[property]; ok {
					n.Attrs.Set(property, String(d.value))
					break
				}
			}
		}
	}
}
