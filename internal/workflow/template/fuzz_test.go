package template

import (
	"errors"
	"testing"
)

// Whatever the text: it renders within the limits, or there is an error at a
// place in it. What can be rendered has references that can be found.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"", "plain", "{{ goal }}", "{{- inputs.x | default(\"d\") -}}", "{% include 'a' %}{% include \"b\" ignore missing %}", "{# c #}", "{% raw %}{{ x }}{% endraw %}",
		"{% if x %}a{% endif %}", "{{ 'it''s' }}", "{{ \"}}\" }}", "{{", "{%", "{#", "{{ a[\"b\"].c }}", "{% extends 'x' %}", "{{ - }}", "{%-%}", "{{ a | d(b) | d }}", "{%raw%}{%endraw%}", "{{\"\\",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		place := func(err error) {
			var fault *Error
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(text) || fault.Message == "" {
				t.Fatalf("error %#v", err)
			}
		}
		_, refErr := References("t", text)
		tpl, err := Parse("t", text)
		if err != nil {
			place(err)
			return
		}
		if refErr != nil {
			t.Fatalf("it parses, but its references fail: %v", refErr)
		}
		env := Env{
			Lookup: func(path []string) (any, bool) { return 1.5, len(path) == 1 },
			Load:   func(_, ref string) (*Template, error) { return tpl, nil },
			Undefined: func(u Undefined) {
				if u.Offset < 0 || u.Offset > len(text) || u.Variable == "" {
					t.Fatalf("%+v", u)
				}
			},
		}
		out, err := tpl.Render(env)
		if err != nil {
			place(err)
		}
		if len(out) > MaxOutput {
			t.Fatalf("%d bytes", len(out))
		}
	})
}
