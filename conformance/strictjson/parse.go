package strictjson

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Fault names what is wrong with a text, so that a judge can cite the right
// rule for it.
type Fault uint8

// The ways in which a text is not one clean JSON value.
const (
	Syntax    Fault = iota + 1 // not JSON at all
	UTF8                       // bytes that are not UTF-8
	Duplicate                  // a member name twice in one object
	Surrogate                  // half of a surrogate pair, escaped
	BOM                        // a byte-order mark
	Depth                      // nested deeper than 1000
)

// Error says what is wrong, where, in bytes from the start of the text.
type Error struct {
	Fault   Fault
	Offset  int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Message, e.Offset) }

const maxDepth = 1000

type parser struct {
	src   []byte
	pos   int
	depth int
	soft  *Error // the first fault that does not stop the reading
}

// Parse reads exactly one JSON value. A text that is JSON but breaks a further
// rule (duplicate names, lone surrogates) returns the value together with the
// error, so that a judge may go on with it.
func Parse(src []byte) (*Value, error) {
	if len(src) >= 3 && src[0] == 0xef && src[1] == 0xbb && src[2] == 0xbf {
		return nil, &Error{BOM, 0, "begins with a byte-order mark"}
	}
	if !utf8.Valid(src) {
		i := 0
		for i < len(src) {
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n <= 1 {
				break
			}
			i += n
		}
		return nil, &Error{UTF8, i, fmt.Sprintf("is not UTF-8: byte 0x%02x", src[i])}
	}
	p := &parser{src: src}
	p.space()
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(src) {
		return nil, p.fail("goes on after the JSON value with %s", p.near())
	}
	if p.soft != nil {
		return v, p.soft
	}
	return v, nil
}

// Prefix reads one JSON value at the start of src and returns its length in
// bytes; what follows is not looked at. Leading white space is not skipped.
func Prefix(src []byte) (*Value, int, error) {
	p := &parser{src: src}
	v, err := p.value()
	if err != nil {
		return nil, p.pos, err
	}
	if p.soft != nil {
		return v, p.pos, p.soft
	}
	return v, p.pos, nil
}

func (p *parser) near() string {
	if p.pos >= len(p.src) {
		return "the end of the text"
	}
	end := min(len(p.src), p.pos+12)
	return fmt.Sprintf("%q", p.src[p.pos:end])
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{Syntax, p.pos, fmt.Sprintf(format, args...)}
}

func (p *parser) note(f Fault, at int, format string, args ...any) {
	if p.soft == nil {
		p.soft = &Error{f, at, fmt.Sprintf(format, args...)}
	}
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value() (*Value, error) {
	if p.pos >= len(p.src) {
		return nil, p.fail("is not JSON: it ends where a value is due")
	}
	start := p.pos
	v := &Value{}
	var err error
	switch c := p.src[p.pos]; {
	case c == '{':
		v.Kind = Object
		err = p.object(v)
	case c == '[':
		v.Kind = Array
		err = p.array(v)
	case c == '"':
		v.Kind = String
		v.Text, err = p.str()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind = Number
		err = p.number()
		v.Text = string(p.src[start:p.pos])
	case p.word("true"):
		v.Kind, v.True = Bool, true
	case p.word("false"):
		v.Kind = Bool
	case p.word("null"):
	default:
		err = p.fail("is not JSON: %s where a value is due", p.near())
	}
	if err != nil {
		return nil, err
	}
	v.Raw = p.src[start:p.pos]
	return v, nil
}

func (p *parser) word(w string) bool {
	if len(p.src)-p.pos < len(w) || string(p.src[p.pos:p.pos+len(w)]) != w {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return &Error{Depth, p.pos, "is nested deeper than 1000"}
	}
	p.pos++
	p.space()
	return nil
}

func (p *parser) object(v *Value) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if p.word("}") {
		return nil
	}
	seen := map[string]bool{}
	for {
		p.space()
		at := p.pos
		if p.pos >= len(p.src) || p.src[p.pos] != '"' {
			return p.fail("is not JSON: %s where a member name is due", p.near())
		}
		name, err := p.str()
		if err != nil {
			return err
		}
		if seen[name] {
			p.note(Duplicate, at, "has the member name %q twice in one object", name)
		}
		seen[name] = true
		p.space()
		if !p.word(":") {
			return p.fail("is not JSON: %s where a colon is due", p.near())
		}
		p.space()
		item, err := p.value()
		if err != nil {
			return err
		}
		v.Members = append(v.Members, Member{name, item})
		p.space()
		if p.word("}") {
			return nil
		}
		if !p.word(",") {
			return p.fail("is not JSON: %s where a comma or a closing brace is due", p.near())
		}
	}
}

func (p *parser) array(v *Value) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if p.word("]") {
		return nil
	}
	for {
		p.space()
		item, err := p.value()
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
		p.space()
		if p.word("]") {
			return nil
		}
		if !p.word(",") {
			return p.fail("is not JSON: %s where a comma or a closing bracket is due", p.near())
		}
	}
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) number() error {
	p.word("-")
	if !p.word("0") && !p.digits() {
		return p.fail("is not JSON: %s where a digit is due", p.near())
	}
	if p.word(".") && !p.digits() {
		return p.fail("is not JSON: %s where a digit is due", p.near())
	}
	if p.word("e") || p.word("E") {
		if !p.word("+") {
			p.word("-")
		}
		if !p.digits() {
			return p.fail("is not JSON: %s where an exponent is due", p.near())
		}
	}
	return nil
}

func (p *parser) str() (string, error) {
	p.pos++ // the opening quote
	var out []byte
	start := p.pos
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			text := p.src[start:p.pos]
			p.pos++
			if out == nil {
				return string(text), nil
			}
			return string(append(out, text...)), nil
		case c < 0x20:
			return "", p.fail("is not JSON: the control character 0x%02x inside a string", c)
		case c == '\\':
			if out == nil {
				out = []byte{} // from now on the text is assembled
			}
			out = append(out, p.src[start:p.pos]...)
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			start = p.pos
		default:
			p.pos++
		}
	}
	return "", p.fail("is not JSON: it ends inside a string")
}

func (p *parser) escape() (rune, error) {
	at := p.pos
	p.pos++
	if p.pos >= len(p.src) {
		return 0, p.fail("is not JSON: it ends inside an escape")
	}
	c := p.src[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		p.pos = at
		return 0, p.fail("is not JSON: the escape %s", p.near())
	}
	r, ok := p.hex4()
	if !ok {
		p.pos = at
		return 0, p.fail("is not JSON: the escape %s", p.near())
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	back := p.pos
	if p.word(`\u`) {
		if low, ok := p.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	p.pos = back
	p.note(Surrogate, at, `has half a surrogate pair, \u%04x`, r)
	return utf8.RuneError, nil
}

func (p *parser) hex4() (rune, bool) {
	if len(p.src)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.pos : p.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}
