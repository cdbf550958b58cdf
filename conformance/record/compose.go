package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// composer turns entries into the text of a transcript.
type composer struct {
	out      bytes.Buffer
	redact   *redactor
	revision string
	modern   map[string]bool   // revisions claimed in _meta
	captured map[string]string // a server's string → the name it is captured as
	wanted   map[string]bool   // strings the client sent back later
	asked    map[string]string // id of a server request → its name
	methods  map[string]string // id of a client request → its method
}

// compose writes the transcript of a session.
func compose(entries []entry, cfg Config) ([]byte, error) {
	c := &composer{
		redact: newRedactor(cfg.Redact), modern: map[string]bool{}, captured: map[string]string{}, wanted: map[string]bool{},
		asked: map[string]string{}, methods: map[string]string{},
	}
	c.survey(entries)
	for i := range entries {
		c.entry(&entries[i])
	}
	head := &bytes.Buffer{}
	title := cfg.Title
	if title == "" {
		title = "a recorded session"
	}
	fmt.Fprintf(head, "# Recorded by mcp-conformance record. Review what is matched and what is captured,\n# give it a title and requirement ids, and leave out what does not matter.\n")
	fmt.Fprintf(head, "title: %s\nrevisions: %s\ntags: recorded\n\n", oneLine(title), c.revision)
	head.Write(c.out.Bytes())
	head.WriteString("-- wire.ndjson --\n")
	for i := range entries {
		if err := c.wire(head, &entries[i]); err != nil {
			return nil, err
		}
	}
	if _, err := transcript.Parse("recorded", head.Bytes()); err != nil {
		return nil, err // a mistake of ours: nobody could replay it
	}
	return head.Bytes(), nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// survey finds the revision and which of the server's strings came back.
func (c *composer) survey(entries []entry) {
	fromServer := map[string]bool{}
	for _, e := range entries {
		v, _ := strictjson.Parse(e.data)
		if v == nil || e.dir != '>' && e.dir != '<' {
			continue
		}
		if e.dir == '<' {
			if version := v.At("result", "protocolVersion").Str(); version != "" && slices.Contains(transcript.Revisions, version) {
				c.revision = version
			}
			eachString(v.Get("result"), "", func(key, s string) {
				if capturable(key, s) {
					fromServer[s] = true
				}
			})
			eachString(v.Get("params"), "", func(key, s string) {
				if capturable(key, s) {
					fromServer[s] = true
				}
			})
			continue
		}
		if claim := v.At("params", "_meta", "io.modelcontextprotocol/protocolVersion").Str(); slices.Contains(transcript.Revisions, claim) {
			c.modern[claim] = true
		}
		eachString(v.Get("params"), "", func(_, s string) {
			if fromServer[s] {
				c.wanted[s] = true
			}
		})
	}
	if c.revision == "" {
		c.revision = transcript.Revisions[len(transcript.Revisions)-1]
		for _, rev := range transcript.Revisions {
			if c.modern[rev] {
				c.revision = rev
			}
		}
	}
}

// eachString visits every string value with the name of its member.
func eachString(v *strictjson.Value, key string, visit func(key, s string)) {
	if v == nil {
		return
	}
	if v.Kind == strictjson.String {
		visit(key, v.Text)
	}
	for _, m := range v.Members {
		eachString(m.Value, m.Name, visit)
	}
	for _, item := range v.Items {
		eachString(item, key, visit)
	}
}

// entry writes the step for one entry.
func (c *composer) entry(e *entry) {
	switch e.dir {
	case 'e':
		c.out.WriteString("close stdin\n")
	case 'x':
		if e.code >= 0 {
			fmt.Fprintf(&c.out, "expect exit %d\n", e.code)
		} else {
			c.out.WriteString("expect exit any\n")
		}
	case '>':
		c.sent(e.data)
	case '<':
		c.received(e.data)
	}
}

func (c *composer) sent(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	v, err := strictjson.Parse(line)
	if len(line) == 0 || v == nil || err != nil {
		fmt.Fprintf(&c.out, "line %s\n", quoteRaw(c.redact.text(string(line))))
		return
	}
	id, method := v.Get("id"), v.Get("method").Str()
	if id != nil && method != "" {
		c.methods[string(id.Raw)] = method
	}
	if id != nil && method == "" && c.asked[string(id.Raw)] != "" {
		name := c.asked[string(id.Raw)]
		if result := v.Get("result"); result != nil {
			fmt.Fprintf(&c.out, "answer %s %s\n", name, c.template(result))
		} else if failure := v.Get("error"); failure != nil {
			fmt.Fprintf(&c.out, "answer %s error %s\n", name, c.template(failure))
		}
		return
	}
	fmt.Fprintf(&c.out, "send %s\n", c.template(v))
}

// template renders what the client sent: its own bytes, except for references
// to captured values and redacted secrets.
func (c *composer) template(v *strictjson.Value) string {
	var b strings.Builder
	c.render(&b, v, "", "", false)
	return b.String()
}

func (c *composer) received(line []byte) {
	v, err := strictjson.Parse(line)
	if v == nil || err != nil {
		fmt.Fprintf(&c.out, "# The server wrote a line that is no message: %s\n", oneLine(quoteRaw(c.redact.text(string(line)))))
		return
	}
	id, method := v.Get("id"), v.Get("method").Str()
	switch {
	case v.Is(strictjson.Array):
		fmt.Fprintf(&c.out, "expect frame %s\n", c.pattern(v))
	case method != "" && id != nil:
		name := fmt.Sprintf("ask%d", len(c.asked)+1)
		c.asked[string(id.Raw)] = name
		fmt.Fprintf(&c.out, "expect request %s%s as %s\n", method, c.optional(v.Get("params")), name)
	case method == "notifications/progress" || method == "notifications/message":
		// How many of these come is a matter of time.
		fmt.Fprintf(&c.out, "maybe notification %s\n", method)
	case method != "":
		fmt.Fprintf(&c.out, "expect notification %s%s\n", method, c.optional(v.Get("params")))
	case id == nil || id.Is(strictjson.Null):
		fmt.Fprintf(&c.out, "expect error unreadable %s\n", code(v))
	case v.Get("error") != nil:
		fmt.Fprintf(&c.out, "expect error %s %s\n", id.Raw, code(v))
	default:
		fmt.Fprintf(&c.out, "expect result %s %s\n", id.Raw, c.pattern(v.Get("result")))
	}
}

func code(v *strictjson.Value) string {
	if n, ok := v.At("error", "code").Int(); ok {
		return n.String()
	}
	return "any"
}

func (c *composer) optional(v *strictjson.Value) string {
	if v == nil {
		return ""
	}
	return " " + c.pattern(v)
}

// pattern renders an expectation, one member a line where it is long.
func (c *composer) pattern(v *strictjson.Value) string {
	var b strings.Builder
	c.render(&b, v, "", "", true)
	return b.String()
}

// wide is the length up to which a value stays on one line.
const wide = 100

func (c *composer) render(b *strings.Builder, v *strictjson.Value, key, indent string, pattern bool) {
	inner := indent + "  "
	broken := len(v.Raw) > wide && pattern
	open := func(i int) {
		switch {
		case broken:
			b.WriteString("\n" + inner)
		case i > 0:
			b.WriteByte(' ')
		}
	}
	closing := func(n int) {
		if broken && n > 0 {
			b.WriteString("\n" + indent)
		}
	}
	switch v.Kind {
	case strictjson.Object:
		b.WriteByte('{')
		for i, m := range v.Members {
			open(i)
			b.WriteString(escapeRefs(strictjson.Quote(m.Name)) + ": ")
			c.render(b, m.Value, m.Name, inner, pattern)
			if i < len(v.Members)-1 {
				b.WriteByte(',')
			}
		}
		closing(len(v.Members))
		b.WriteByte('}')
	case strictjson.Array:
		b.WriteByte('[')
		for i, item := range v.Items {
			open(i)
			c.render(b, item, key, inner, pattern)
			if i < len(v.Items)-1 {
				b.WriteByte(',')
			}
		}
		closing(len(v.Items))
		b.WriteByte(']')
	case strictjson.String:
		b.WriteString(c.str(v, key, pattern))
	case strictjson.Number:
		if pattern && volatileNumber(key) {
			b.WriteString("<number>")
			return
		}
		b.Write(v.Raw)
	default:
		b.Write(v.Raw)
	}
}

// str renders a string: a capture at its first sight, a reference later, a
// matcher where it cannot be the same twice.
func (c *composer) str(v *strictjson.Value, key string, pattern bool) string {
	if name, ok := c.captured[v.Text]; ok {
		return `"${` + name + `}"`
	}
	if pattern && c.wanted[v.Text] {
		name := fmt.Sprintf("%s%d", captureName(key), len(c.captured)+1)
		c.captured[v.Text] = name
		return "<string as " + name + ">"
	}
	hidden := c.redact.value(key, v.Text)
	if pattern {
		if hidden != v.Text {
			return "<string>"
		}
		if m := volatileString(key, v.Text); m != "" {
			return m
		}
	}
	if hidden != v.Text {
		return escapeRefs(strictjson.Quote(hidden))
	}
	return escapeRefs(string(v.Raw))
}

func captureName(key string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, key)
	if name == "" {
		return "value"
	}
	return name
}

func escapeRefs(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// quoteRaw writes bytes as a string literal of the grammar.
func quoteRaw(s string) string { return strconv.QuoteToASCII(strings.ReplaceAll(s, "${", "$${")) }

// wire writes the raw line, with its time, as one line of JSON.
func (c *composer) wire(b *bytes.Buffer, e *entry) error {
	type line struct {
		MS     float64 `json:"ms"`
		Dir    string  `json:"dir"`
		Text   string  `json:"text,omitempty"`
		Base64 string  `json:"base64,omitempty"`
		Code   *int    `json:"exit,omitempty"`
	}
	l := line{MS: float64(e.at.Round(time.Microsecond)) / float64(time.Millisecond)}
	switch e.dir {
	case 'e':
		l.Dir = "eof"
	case 'x':
		l.Dir, l.Code = "exit", &e.code
	default:
		l.Dir = string(e.dir)
		if utf8.Valid(e.data) {
			l.Text = c.redact.line(string(e.data))
		} else {
			l.Base64 = base64.StdEncoding.EncodeToString(e.data)
		}
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}
