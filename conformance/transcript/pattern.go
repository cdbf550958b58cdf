package transcript

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"fabro-mcp/conformance/strictjson"
)

// Pattern describes a JSON value: JSON with matchers in angle brackets and
// references. Objects are open (further members are allowed), arrays are exact.
type Pattern struct {
	Pos  Pos
	Text string // as written

	kind    patternKind
	value   *strictjson.Value // literal
	parts   []part            // a string with references, or one bare reference
	items   []*Pattern        // array, or the operands of or, and, not and a word
	members []patternMember
	word    string
	re      *regexp.Regexp
	low     *big.Rat // range; nil: unbounded
	high    *big.Rat
	capture string
	start   int
	end     int
}

type patternMember struct {
	name  string
	value *Pattern
}

type patternKind uint8

const (
	literal patternKind = iota
	reference
	stringWithRefs
	array
	object
	either
	both
	not
	regex
	interval
	keyword
)

// keywords that stand alone in a matcher.
var plainWords = []string{
	"any", "absent", "string", "number", "int", "bool", "object", "array", "nonempty",
	"date-time", "date", "uri", "base64", "uuid", "json", "id",
}

// keywords that take a pattern; "len" takes a range.
var argumentWords = []string{"only", "contains", "set", "each", "keys", "len", "raw"}

// pattern reads JSON, with matchers when they are allowed.
func (s *scanner) pattern(matchers bool) (*Pattern, error) {
	s.blanks()
	p := &Pattern{Pos: s.posAt(s.pos), start: s.pos}
	var err error
	switch c := s.peek(); {
	case c == '{':
		err = s.patternObject(p, matchers)
	case c == '[':
		err = s.patternArray(p, matchers)
	case c == '<' && matchers:
		s.pos++
		*p, err = s.matcher('>', p)
	case c == '<':
		return nil, s.err("a matcher such as <string> stands only in an expectation; here the exact value is sent")
	case s.has("${"):
		p.kind = reference
		end := strings.IndexByte(string(s.src[s.pos:]), '}')
		if end < 0 || !validRef(string(s.src[s.pos+2:s.pos+end])) {
			return nil, s.err("a reference is written ${name}")
		}
		p.parts = []part{{ref: string(s.src[s.pos+2 : s.pos+end]), at: s.pos}}
		s.pos += end + 1
	case c == 0 || c == '\n':
		return nil, s.err("a JSON value is missing")
	default:
		err = s.patternScalar(p)
	}
	if err != nil {
		return nil, err
	}
	p.end = s.pos
	p.Text = string(s.src[p.start:p.end])
	return p, nil
}

func (s *scanner) patternScalar(p *Pattern) error {
	v, n, err := strictjson.Prefix(s.src[s.pos:])
	if err != nil {
		if e, ok := err.(*strictjson.Error); ok && e.Fault != strictjson.Surrogate {
			return s.errAt(s.pos+e.Offset, "this %s", e.Message)
		}
	}
	p.value = v
	if v.Kind == strictjson.String && strings.Contains(v.Text, "${") {
		p.kind = stringWithRefs
		if p.parts, err = s.splitRefs(v.Text, s.pos); err != nil {
			return err
		}
	}
	s.pos += n
	if c := s.peek(); v.Kind != strictjson.String && (isNameByte(c) || c == '"') {
		return s.err("%s right after the value %s", s.near(), v.Raw)
	}
	return nil
}

func (s *scanner) patternObject(p *Pattern, matchers bool) error {
	p.kind = object
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		s.space()
		at := s.pos
		if s.peek() != '"' {
			return s.err("%s where a member name in double quotes is due", s.near())
		}
		name, n, err := strictjson.Prefix(s.src[s.pos:])
		if err != nil && name == nil {
			return s.err("this member name %v", err)
		}
		s.pos += n
		if matchers && slices.ContainsFunc(p.members, func(m patternMember) bool { return m.name == name.Text }) {
			return s.errAt(at, "the member %q stands twice in this pattern", name.Text)
		}
		s.space()
		if s.peek() != ':' {
			return s.err("%s where a colon is due", s.near())
		}
		s.pos++
		s.space()
		value, err := s.pattern(matchers)
		if err != nil {
			return err
		}
		p.members = append(p.members, patternMember{name.Text, value})
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return nil
		default:
			return s.err("%s where a comma or } is due", s.near())
		}
	}
}

func (s *scanner) patternArray(p *Pattern, matchers bool) error {
	p.kind = array
	s.pos++
	s.space()
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		s.space()
		item, err := s.pattern(matchers)
		if err != nil {
			return err
		}
		p.items = append(p.items, item)
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			return s.err("%s where a comma or ] is due", s.near())
		}
	}
}

// matcher reads "expr [as NAME]" and the closing byte.
func (s *scanner) matcher(closing byte, outer *Pattern) (Pattern, error) {
	inner, err := s.alternatives()
	if err != nil {
		return Pattern{}, err
	}
	out := *inner
	if s.accept("as") {
		if out.capture != "" {
			return Pattern{}, s.err("this value already has a name, %s", out.capture)
		}
		// The name may touch the bracket: <string as x>.
		if out.capture, err = s.name(); err != nil {
			return Pattern{}, err
		}
	}
	s.space()
	if s.peek() != closing {
		return Pattern{}, s.err("%s where %q is due to end the matcher", s.near(), string(closing))
	}
	s.pos++
	out.Pos, out.start = outer.Pos, outer.start
	return out, nil
}

func (s *scanner) alternatives() (*Pattern, error) {
	return s.operands('|', either, func() (*Pattern, error) { return s.operands('&', both, s.operand) })
}

func (s *scanner) operands(sep byte, kind patternKind, next func() (*Pattern, error)) (*Pattern, error) {
	s.space()
	p := &Pattern{kind: kind, Pos: s.posAt(s.pos), start: s.pos}
	for {
		one, err := next()
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, one)
		s.space()
		if s.peek() != sep {
			break
		}
		s.pos++
	}
	if len(p.items) == 1 {
		return p.items[0], nil
	}
	p.end = s.pos
	p.Text = strings.TrimSpace(string(s.src[p.start:p.end]))
	return p, nil
}

func (s *scanner) operand() (*Pattern, error) {
	s.space()
	p := &Pattern{Pos: s.posAt(s.pos), start: s.pos}
	finish := func(err error) (*Pattern, error) {
		if err != nil {
			return nil, err
		}
		p.end = s.pos
		p.Text = string(s.src[p.start:p.end])
		return p, nil
	}
	switch c := s.peek(); {
	case c == '!':
		s.pos++
		inner, err := s.operand()
		p.kind, p.items = not, []*Pattern{inner}
		return finish(err)
	case c == '(':
		s.pos++
		inner, err := s.matcher(')', p)
		*p = inner
		return finish(err)
	case c == '/':
		return finish(s.regexp(p))
	case c == '.' || c == '-' || c >= '0' && c <= '9':
		return finish(s.rangeOrNumber(p))
	case c == '"' || c == '{' || c == '[' || c == '$' || c == '<':
		return s.pattern(true)
	}
	at := s.pos
	word, err := s.name()
	if err != nil {
		return nil, s.errAt(at, "%s where a matcher is due, such as string, int, any, /regexp/ or 0..9", s.near())
	}
	switch {
	case word == "null" || word == "true" || word == "false":
		v, _ := strictjson.Parse([]byte(word))
		p.value = v
		return finish(nil)
	case slices.Contains(plainWords, word):
		p.kind, p.word = keyword, word
		return finish(nil)
	case slices.Contains(argumentWords, word):
		p.kind, p.word = keyword, word
		arg, err := s.argument(word)
		p.items = []*Pattern{arg}
		return finish(err)
	}
	return nil, s.errAt(at, "unknown matcher %q; known: %s, null, true, false, %s X", word, strings.Join(plainWords, ", "), strings.Join(argumentWords, " X, "))
}

// argument reads what follows a word that takes one, and checks its shape.
func (s *scanner) argument(word string) (*Pattern, error) {
	s.space()
	at := s.pos
	arg, err := s.operand()
	if err != nil {
		return nil, err
	}
	switch {
	case word == "only" && arg.kind != object:
		return nil, s.errAt(at, "only takes an object: <only {…}> allows no further members")
	case (word == "contains" || word == "set") && arg.kind != array:
		return nil, s.errAt(at, "%s takes an array: <%s [A, B]>", word, word)
	case word == "len" && arg.kind != interval && (arg.value == nil || arg.value.Kind != strictjson.Number):
		return nil, s.errAt(at, "len takes a number or a range: <len 3..>")
	case word == "raw" && (arg.kind != literal || arg.value.Kind != strictjson.String):
		return nil, s.errAt(at, "raw takes the exact bytes as a string: <raw \"1.0\">")
	}
	return arg, nil
}

func (s *scanner) regexp(p *Pattern) error {
	p.kind = regex
	var expr strings.Builder
	for i := s.pos + 1; i < len(s.src) && s.src[i] != '\n'; i++ {
		switch {
		case s.src[i] == '\\' && i+1 < len(s.src) && s.src[i+1] == '/':
			expr.WriteByte('/')
			i++
		case s.src[i] == '\\' && i+1 < len(s.src):
			expr.Write(s.src[i : i+2])
			i++
		case s.src[i] == '/':
			re, err := regexp.Compile(expr.String())
			if err != nil {
				return s.err("%v", err)
			}
			p.re = re
			s.pos = i + 1
			return nil
		default:
			expr.WriteByte(s.src[i])
		}
	}
	return s.err("this regular expression has no closing /")
}

// rangeOrNumber reads 5, -1.5, 0..9, 3.. or ..9.
func (s *scanner) rangeOrNumber(p *Pattern) error {
	start := s.pos
	for !s.eof() && strings.IndexByte("0123456789.+-eE", s.src[s.pos]) >= 0 {
		s.pos++
	}
	text := string(s.src[start:s.pos])
	low, high, isRange := strings.Cut(text, "..")
	number := func(t string) (*strictjson.Value, *big.Rat, error) {
		v, err := strictjson.Parse([]byte(t))
		if err != nil || v.Kind != strictjson.Number {
			return nil, nil, s.errAt(start, "%q is not a number", t)
		}
		r, ok := v.Rat()
		if !ok {
			return nil, nil, s.errAt(start, "the exponent of %s is beyond what is compared", t)
		}
		return v, r, nil
	}
	var err error
	if !isRange {
		p.value, _, err = number(text)
		return err
	}
	p.kind = interval
	if low == "" && high == "" {
		return s.errAt(start, "a range has at least one end: 0.., ..9 or 0..9")
	}
	if low != "" {
		if _, p.low, err = number(low); err != nil {
			return err
		}
	}
	if high != "" {
		_, p.high, err = number(high)
	}
	return err
}
