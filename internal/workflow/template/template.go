// Package template renders the part of the MiniJinja language that workflow
// prompts and goals use: text, `{{ path }}` with the filter `default`, static
// `{% include "file" %}`, `{% raw %}`, comments, and white-space control.
//
// Everything else of the language is recognised and refused with an error that
// says so (Error.Unsupported): a prompt must not reach a model with half of its
// template left in it. References needs less than rendering and works for the
// whole language, so that a client can bundle files for a server that renders
// it all.
//
// Rendering is bounded: by the number of steps, by the depth of includes, and by
// the size of the result.
package template

import (
	"fmt"
	"strings"
)

// Limits of rendering one template with all it includes.
const (
	MaxDepth  = 32
	MaxSteps  = 200_000
	MaxOutput = 16 << 20 // bytes
)

// Error is a fault of a template at a byte offset.
type Error struct {
	Template    string // its name
	Offset      int
	Message     string
	Unsupported bool // valid in the language, but not implemented here
}

func (e *Error) Error() string { return e.Message }

// HasSyntax reports whether a text is a template at all. A goal or a prompt that
// is not is used as it is, down to its last newline, and not parsed.
func HasSyntax(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "{#")
}

// Template is a parsed template, safe for concurrent use.
type Template struct {
	Name  string
	nodes []node
}

type node interface{}

type (
	textNode string
	// outputNode is `{{ … }}`.
	outputNode struct {
		value   operand
		filters []operand // arguments of `default`, applied from left to right
		at      int
	}
	includeNode struct {
		ref           string
		ignoreMissing bool
		at            int
	}
)

// operand is a literal or a path such as inputs.name.
type operand struct {
	path    []string
	literal string
	at      int
}

// Parse reads a template. One newline at its very end is dropped, as the
// language has it.
func Parse(name, text string) (*Template, error) {
	t := &Template{Name: name}
	p := &parser{scanner: scanner{name: name, text: stripFinalNewline(text)}}
	for {
		part, ok, err := p.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return t, nil
		}
		var n node
		switch part.kind {
		case partText:
			if part.body == "" {
				continue
			}
			n = textNode(part.body)
		case partOutput:
			n, err = p.output(part)
		case partBlock:
			n, err = p.block(part)
		}
		if err != nil {
			return nil, err
		}
		t.nodes = append(t.nodes, n)
	}
}

func stripFinalNewline(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return strings.TrimSuffix(text, "\r")
}

// Undefined is a variable that has no value, at the place that names it.
type Undefined struct {
	Template string
	Offset   int
	Variable string
	Includes []Site // how rendering got to that template, outermost first
}

// Site is an include tag.
type Site struct {
	Template string
	Offset   int
}

// Env is what a template is rendered with.
type Env struct {
	// Lookup gives the value of a path of one or more names: a string, a bool,
	// an integer or a floating-point number.
	Lookup func(path []string) (any, bool)
	// Load finds the template that from includes under the name ref. It may be
	// nil where there is nothing to include.
	Load func(from, ref string) (*Template, error)
	// Undefined is told of each variable without value, which renders as
	// nothing. It may be nil.
	Undefined func(Undefined)
}

// Render renders the template.
func (t *Template) Render(env Env) (string, error) {
	r := &renderer{env: env}
	if err := r.template(t); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

type renderer struct {
	env   Env
	out   strings.Builder
	steps int
	sites []Site
}

func (r *renderer) template(t *Template) error {
	for _, n := range t.nodes {
		r.steps++
		if r.steps > MaxSteps {
			return &Error{Template: t.Name, Message: fmt.Sprintf("the template takes more than %d steps to render", MaxSteps)}
		}
		var err error
		switch n := n.(type) {
		case textNode:
			err = r.write(t, 0, string(n))
		case outputNode:
			err = r.write(t, n.at, r.value(t, n))
		case includeNode:
			err = r.include(t, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(t *Template, at int, text string) error {
	if r.out.Len()+len(text) > MaxOutput {
		return &Error{Template: t.Name, Offset: at, Message: fmt.Sprintf("the rendered text is longer than %d bytes", MaxOutput)}
	}
	r.out.WriteString(text)
	return nil
}

func (r *renderer) value(t *Template, n outputNode) string {
	first := -1 // the path to report if nothing has a value
	for i, o := range append([]operand{n.value}, n.filters...) {
		if o.path == nil {
			return o.literal
		}
		if v, ok := r.env.Lookup(o.path); ok {
			return Text(v)
		}
		first = i
	}
	if r.env.Undefined != nil && first >= 0 {
		o := append([]operand{n.value}, n.filters...)[first]
		r.env.Undefined(Undefined{
			Template: t.Name, Offset: o.at, Variable: strings.Join(o.path, "."), Includes: append([]Site(nil), r.sites...),
		})
	}
	return ""
}

func (r *renderer) include(t *Template, n includeNode) error {
	if len(r.sites) == MaxDepth {
		return &Error{Template: t.Name, Offset: n.at, Message: fmt.Sprintf("templates include each other more than %d deep", MaxDepth)}
	}
	if r.env.Load == nil {
		return &Error{Template: t.Name, Offset: n.at, Message: fmt.Sprintf("there is no file %q to include", n.ref)}
	}
	inner, err := r.env.Load(t.Name, n.ref)
	if err != nil {
		if n.ignoreMissing {
			return nil
		}
		if _, ok := err.(*Error); ok {
			return err
		}
		return &Error{Template: t.Name, Offset: n.at, Message: err.Error()}
	}
	r.sites = append(r.sites, Site{t.Name, n.at})
	err = r.template(inner)
	r.sites = r.sites[:len(r.sites)-1]
	return err
}

// Text is the form of a value in a rendered template.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		text := fmt.Sprint(v)
		if v == float64(int64(v)) && !strings.ContainsAny(text, "e.") {
			text += ".0"
		}
		return text
	default:
		return fmt.Sprint(v)
	}
}
