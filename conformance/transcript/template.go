package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"fabro-mcp/conformance/strictjson"
)

// Template is text to be sent, with references ${name} that are filled in when
// the step is played. A JSON template keeps the bytes as written, except that
// line breaks between tokens, and the indentation after them, are left out.
type Template struct {
	Pos   Pos
	JSON  bool // a JSON value; else a plain string
	parts []part
	start int
	end   int
}

type part struct {
	text   string
	ref    string // with ref, text is empty
	inside bool   // the reference stands inside a JSON string
	at     int
}

// Vars resolves references.
type Vars interface {
	// Var returns the value of a name, nil when there is none.
	Var(name string) *strictjson.Value
}

// Refs returns the names the template refers to.
func (t *Template) Refs() []string {
	var out []string
	for _, p := range t.parts {
		if p.ref != "" {
			out = append(out, p.ref)
		}
	}
	return out
}

// Expand fills in the references. In plain text and inside a JSON string a
// string value stands for its text and any other value for its JSON; elsewhere
// in JSON a value stands for its JSON.
func (t *Template) Expand(vars Vars) ([]byte, error) {
	if t == nil {
		return nil, nil
	}
	var out bytes.Buffer
	for _, p := range t.parts {
		if p.ref == "" {
			out.WriteString(p.text)
			continue
		}
		v := vars.Var(p.ref)
		switch {
		case v == nil:
			return nil, fmt.Errorf("${%s} has no value here", p.ref)
		case t.JSON && !p.inside:
			out.Write(v.Raw)
		case t.JSON && v.Kind == strictjson.String:
			q := strictjson.Quote(v.Text)
			out.WriteString(q[1 : len(q)-1])
		case t.JSON:
			q := strictjson.Quote(string(v.Raw))
			out.WriteString(q[1 : len(q)-1])
		case v.Kind == strictjson.String:
			out.WriteString(v.Text)
		default:
			out.Write(v.Raw)
		}
	}
	return out.Bytes(), nil
}

// splitRefs cuts plain text at its references. $${ stands for a literal ${.
func (s *scanner) splitRefs(text string, at int) ([]part, error) {
	var parts []part
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			return append(parts, part{text: text}), nil
		}
		if i > 0 && text[i-1] == '$' {
			parts = append(parts, part{text: text[:i-1] + "${"})
			text = text[i+2:]
			continue
		}
		name, rest, ok := strings.Cut(text[i+2:], "}")
		if !ok || !validRef(name) {
			return nil, s.errAt(at, "a reference is written ${name}; write $${ for the two characters")
		}
		parts = append(parts, part{text: text[:i]}, part{ref: name, at: at})
		text = rest
	}
}

// validRef accepts a name, and file:NAME.
func validRef(name string) bool {
	name = strings.TrimPrefix(name, "file:")
	for i := range len(name) {
		if !isNameByte(name[i]) && name[i] != '/' {
			return false
		}
	}
	return name != ""
}

// jsonTemplate reads a JSON value that may hold references, as bytes to send.
func (s *scanner) jsonTemplate() (*Template, error) {
	s.blanks()
	start := s.pos
	if _, err := s.pattern(false); err != nil {
		return nil, err
	}
	t := &Template{Pos: s.posAt(start), JSON: true, start: start, end: s.pos}
	var text bytes.Buffer
	flush := func() {
		if text.Len() > 0 {
			t.parts = append(t.parts, part{text: text.String()})
			text.Reset()
		}
	}
	inString := false
	for i := start; i < s.pos; i++ {
		c := s.src[i]
		switch {
		case c == '$' && bytes.HasPrefix(s.src[i:s.pos], []byte("$${")):
			text.WriteString("${")
			i += 2
		case c == '$' && bytes.HasPrefix(s.src[i:s.pos], []byte("${")):
			flush()
			end := bytes.IndexByte(s.src[i:s.pos], '}')
			t.parts = append(t.parts, part{ref: string(s.src[i+2 : i+end]), inside: inString, at: i})
			i += end
		case inString && c == '\\':
			text.Write(s.src[i : i+2])
			i++
		case c == '"':
			inString = !inString
			text.WriteByte(c)
		case !inString && (c == '\n' || c == '\r'):
			for i+1 < s.pos && (s.src[i+1] == ' ' || s.src[i+1] == '\t' || s.src[i+1] == '\n' || s.src[i+1] == '\r') {
				i++
			}
		default:
			text.WriteByte(c)
		}
	}
	flush()
	return t, nil
}

// textTemplate reads a quoted string that may hold references.
func (s *scanner) textTemplate() (*Template, error) {
	s.blanks()
	start := s.pos
	text, err := s.quoted()
	if err != nil {
		return nil, err
	}
	parts, err := s.splitRefs(text, start)
	if err != nil {
		return nil, err
	}
	return &Template{Pos: s.posAt(start), parts: parts, start: start, end: s.pos}, nil
}

// wordTemplate reads a bare word that may hold references.
func (s *scanner) wordTemplate(what string) (*Template, error) {
	s.blanks()
	start := s.pos
	w := s.word()
	if w == "" {
		return nil, s.errAt(start, "%s is missing", what)
	}
	parts, err := s.splitRefs(w, start)
	if err != nil {
		return nil, err
	}
	return &Template{Pos: s.posAt(start), parts: parts, start: start, end: s.pos}, nil
}
