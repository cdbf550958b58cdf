package template

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// values is an Env over "inputs.x"-like names and files.
func values(v map[string]any, files map[string]string, undefined *[]string) Env {
	env := Env{
		Lookup:    func(path []string) (any, bool) { x, ok := v[strings.Join(path, ".")]; return x, ok },
		Undefined: func(u Undefined) { *undefined = append(*undefined, fmt.Sprintf("%s@%d", u.Variable, u.Offset)) },
	}
	env.Load = func(_, ref string) (*Template, error) {
		text, ok := files[ref]
		if !ok {
			return nil, fmt.Errorf("no file %s", ref)
		}
		return Parse(ref, text)
	}
	return env
}

func TestRender(t *testing.T) {
	v := map[string]any{"goal": "ship", "inputs.a": "A", "inputs.n": int64(3), "inputs.f": 2.0, "inputs.g": 0.5, "inputs.b": true, "inputs.x-y": "dash", "inputs.brace": "{{ goal }}", "inputs.empty": ""}
	files := map[string]string{"p.md": "part {{ goal }}\n", "q.md": "{% include 'p.md' %}!"}
	cases := []struct {
		name, text, want string
		undefined        []string
	}{
		{"text", "plain { } % # text", "plain { } % # text", nil},
		{"variables", "{{goal}} {{ inputs.a }} {{ inputs.n }} {{ inputs.f }} {{ inputs.g }} {{ inputs.b }}", "ship A 3 2.0 0.5 true", nil},
		{"subscript", `{{ inputs["x-y"] }} {{ inputs['a'] }}`, "dash A", nil},
		{"literals", `{{ "s\n" }}{{ 's"' }}{{ 12 }}{{ true }}`, "s\ns\"12true", nil},
		{"braces in a literal", `{{ "}}" }}{{ '%}' }}`, "}}%}", nil},
		{"values are not rendered", "{{ inputs.brace }}", "{{ goal }}", nil},
		{"undefined", "a{{ inputs.no }}b{{ other }}", "ab", []string{"inputs.no@4", "other@20"}},
		{"default", `{{ inputs.no | default("d") }} {{ inputs.a|default('d') }} {{ inputs.no | d(inputs.a) }} {{ inputs.no|default }}.`, "d A A .", nil},
		{"default of an empty value", `[{{ inputs.empty | default("d") }}]`, "[]", nil},
		{"default that is undefined", `{{ inputs.no | default(inputs.nope) }}`, "", []string{"inputs.nope@23"}},
		{"two defaults", `{{ inputs.no | default(inputs.nope) | default("z") }}`, "z", nil},
		{"comment", "a{# {{ x }} {% y #}b", "ab", nil},
		{"raw", "{% raw %}{{ goal }} {% if %}{% endraw %} {{ goal }}", "{{ goal }} {% if %} ship", nil},
		{"raw with white space control", "a {%- raw -%} \n{% x %}{{ \n {%- endraw -%} b", "a{% x %}{{b", nil},
		{"white space control", "a \n {{- goal -}} \n b {#- c -#} d {%- include 'q.md' -%} \n e", "ashipbdpart ship!e", nil},
		{"white space kept", "a {{+ goal +}} b", "a ship b", nil},
		{"include", "<{% include \"p.md\" %}>", "<part ship>", nil},
		{"include ignoring a missing file", "<{% include 'no.md' ignore missing %}>", "<>", nil},
		{"last newline", "{{ goal }}\n\n", "ship\n", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := Parse("t", c.text)
			if err != nil {
				t.Fatal(err)
			}
			var undefined []string
			got, err := tpl.Render(values(v, files, &undefined))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.undefined, undefined); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	cases := []struct {
		text string
		want Error
	}{
		{"a {{ goal", Error{"t", 2, "a `{{` is never closed; end it with }}", false}},
		{"{% include 'x", Error{"t", 11, "a string in the template is never closed", false}},
		{"{# x", Error{"t", 0, "a comment is never closed; end it with #}", false}},
		{"{% raw %} x", Error{"t", 0, "a raw block is never closed; end it with {% endraw %}", false}},
		{"{{ }}", Error{"t", 0, "an empty {{ }} names no variable", false}},
		{"{{ a. }}", Error{"t", 4, "expected a name after `.`", false}},
		{"{{ a | }}", Error{"t", 7, "expected the name of a filter after `|`", false}},
		{"{{ a } b }}", Error{"t", 5, "`}` is unexpected here", false}},
		{"{{ a | default(b }}", Error{"t", 17, "expected `)` after the argument of `default`", false}},
		{"{{ a | default(", Error{"t", 0, "a `{{` is never closed; end it with }}", false}},
		{"{% %}", Error{"t", 0, "a {% %} tag begins with a word such as include", false}},
		{"{% include %}", Error{"t", 11, "include needs the name of a file in quotes", false}},
		{"{% if x %}y{% endif %}", Error{"t", 3, "the tag `{% if %}` is not supported by the embedded engine", true}},
		{"{% for x in y %}", Error{"t", 3, "the tag `{% for %}` is not supported by the embedded engine", true}},
		{"{{ a | upper }}", Error{"t", 7, "the filter `upper` is not supported by the embedded engine", true}},
		{"{{ a + 1 }}", Error{"t", 5, "`+` in an expression is not supported by the embedded engine", true}},
		{"{{ a if b else c }}", Error{"t", 5, "`if` in an expression is not supported by the embedded engine", true}},
		{"{{ not a }}", Error{"t", 3, "`not` in an expression is not supported by the embedded engine", true}},
		{"{{ f(x) }}", Error{"t", 4, "`(` in an expression is not supported by the embedded engine", true}},
		{"{{ [1] }}", Error{"t", 3, "`[` in an expression is not supported by the embedded engine", true}},
		{"{{ a | default(1, true) }}", Error{"t", 16, "the second argument of `default` is not supported by the embedded engine", true}},
		{"{% include name %}", Error{"t", 11, "an include whose file is not a plain string is not supported by the embedded engine", true}},
		{"{% include 'x' with context %}", Error{"t", 15, "`with` after an include is not supported by the embedded engine", true}},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			_, err := Parse("t", c.text)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	got, err := References("t", `{% extends "base" %}{% if a %}{% include 'b' ignore missing %}{% else %}{% import "c" as c %}{% endif %}
		{% from 'd' import x, y %}{% raw %}{% include 'no' %}{% endraw %}{# {% include 'no' %} #}{{ "{% include 'no' %}" }}{% for i in range(3) %}{%- include "e" -%}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got {
		names = append(names, fmt.Sprint(r.Name, r.IgnoreMissing))
	}
	if diff := cmp.Diff([]string{"basefalse", "btrue", "cfalse", "dfalse", "efalse"}, names); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"{% include x %}", "{% include ['a','b'] %}", "{% include 'a' ~ b %}", "{% include 'a' if b else 'c' %}", "{% extends %}"} {
		_, err := References("t", text)
		var dynamic *DynamicError
		if !errors.As(err, &dynamic) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// What is not closed is found out once, not at every tag.
func TestOpenTagsAreLinear(t *testing.T) {
	for text, open := range map[string]bool{
		"{% raw %}" + strings.Repeat("{%", 1<<19):                 true,
		"{% raw %}" + strings.Repeat("{%", 1<<19) + "%}":          true,
		strings.Repeat("{{ a }}{%- raw -%}{%- endraw -%}", 1<<15): false,
		strings.Repeat("{#", 1<<19):                               true,
		strings.Repeat("{{ 'a", 1<<18):                            true,
	} {
		if _, err := Parse("t", text); (err != nil) != open {
			t.Errorf("Parse %.20s…: %v", text, err)
		}
		if _, err := References("t", text); (err != nil) != open {
			t.Errorf("References %.20s…: %v", text, err)
		}
	}
}
