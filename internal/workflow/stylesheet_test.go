package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStylesheet(t *testing.T) {
	cases := []struct{ name, sheet, want string }{
		{"all", `* { model: m }`, "m"},
		{"shape over all", `box { model: s } * { model: m }`, "s"},
		{"class over shape", `.c { model: c } box { model: s }`, "c"},
		{"id over class", `#n { model: i } .c { model: c }`, "i"},
		{"the later of equals", `.d { model: d } .c { model: c } .d { model: d2 }`, "d2"},
		{"the later of equals, by place in the sheet", `.d { model: d } .c { model: c }`, "c"},
		{"another shape", `tab { model: t }`, ""},
		{"comments", `/* a */ * /* b */ { /* c */ model /* d */ : m /* e */ ; }`, "m /* e */"},
		{"quoted value", `* { model: "m n"; }`, "m n"},
		{"unknown properties are ignored", `* { colour: red; model: m; }`, "m"},
		{"empty rules", `* { } .c { ; }`, ""},
		{"nothing", ``, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := mustParse(t, `digraph G { n [class="c d"] own [class="c", model=mine] }`)
			s, err := ParseStylesheet(c.sheet)
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(g)
			got, _ := g.Node("n").Attrs.String("model")
			if got != c.want {
				t.Errorf("model %q, want %q", got, c.want)
			}
			if own, _ := g.Node("own").Attrs.String("model"); own != "mine" {
				t.Errorf("the node's own model became %q", own)
			}
		})
	}
}

func TestStylesheetErrors(t *testing.T) {
	cases := []struct {
		sheet string
		at    int
		want  string
	}{
		{"model: x", 5, "expected `{` after the selector, found `:`"},
		{"* { model: x", 2, "this rule is never closed; add the missing }"},
		{"* { model: x * { y: z }", 2, "this rule is never closed; add the missing }"},
		{"* { model }", 10, "expected `:` after `model`, found `}`"},
		{"* { model: ; }", 4, "property `model` has no value"},
		{"* { : x }", 4, "expected a property or `}`, found `:`"},
		{".Upper { }", 0, "a class selector is a dot and lower-case letters, digits or dashes"},
		{"# { }", 0, "an id selector is # and a node id"},
		{"a, b { }", 1, "expected `{` after the selector, found `,`"},
		{"} * {}", 0, "expected a selector (*, a shape, .class or #id), found `}`"},
		{"/* x", 0, "this comment is never closed; end it with */"},
		{"*", 1, "expected `{` after the selector, found the end of the stylesheet"},
	}
	for _, c := range cases {
		t.Run(c.sheet, func(t *testing.T) {
			_, err := ParseStylesheet(c.sheet)
			if diff := cmp.Diff(error(&StylesheetError{c.at, c.want}), err); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Many rules over many nodes with many classes cost their sum, not their product.
func TestLargeStylesheet(t *testing.T) {
	var sheet, nodes strings.Builder
	for range 20_000 / scale {
		sheet.WriteString(".c { model: m; } #n { speed: fast; } box { backend: api; }\n")
		nodes.WriteString("x [class=\"c d\"]\n")
	}
	g := mustParse(t, "digraph G {"+nodes.String()+"y [class=\""+strings.Repeat("c ", 100_000/scale)+"\"]}")
	s, err := ParseStylesheet(sheet.String())
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(g)
}
