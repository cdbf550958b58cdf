package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// seedGraphs adds small graphs with every form of the grammar, and the real
// files where they are.
func seedGraphs(f *testing.F) {
	for _, src := range []string{
		"", smallGraph, drawn,
		"digraph G { graph [goal=\"x\"]; node [shape=box, timeout=\"900s\"] edge [weight=-1] rankdir=LR; a -> b -> c [label=\"L\"]; a; b }",
		"digraph G { subgraph cluster_a { label=\"My Step\" node [x=.5] subgraph { b } a -> b } // c\n /* d */ c [acp.command=\"x\", k=gpt-5.2] }",
		"digraph G { a [s=\"q\\\" n\\n t\\t b\\\\ \\s \\\n\", i=-9223372036854775808, f=-1.5, d=15ms, t=true] }",
		"digraph G { model_stylesheet=\"* { model: m; } .c { speed: fast }\" goal=\"{{ inputs.x }}\" a [class=\"c d,c\", prompt=\"{% include 'x' %}\"] b [script=\"{{ goal }} {{ env.X }}\"] start [shape=Mdiamond] exit [shape=Msquare] start -> a -> b -> exit [condition=\"a=b\"] }",
		"digraph G { i [import=\"x.fabro\", model=m] start [shape=Mdiamond] exit [shape=Msquare] start -> i -> exit }",
		"digraph G { p [shape=component, for_each=\"l\"] q [shape=tab, fidelity=full, thread_id=t] p -> q p -> p [freeform=true] }",
		"digraph G /* x", "digraph G { a [b=", "digraph G { \"", "graph G {}", "\ufeffdigraph G {}", "digraph ä {}", "digraph G { a [x=\xff] }",
	} {
		f.Add(src)
	}
	dir := os.Getenv("FABRO_REFERENCE_DATA")
	if dir == "" {
		return
	}
	for _, file := range realFiles(f, filepath.Join(dir, "data", "workflows")) {
		src, err := os.ReadFile(filepath.Join(dir, "data", "workflows", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
}

// Whatever the text: a graph that survives JSON, or an error in the text. Lint,
// reports and drawings hold for every graph that parses.
func FuzzGraph(f *testing.F) {
	seedGraphs(f)
	f.Fuzz(func(t *testing.T, src string) {
		g, err := Parse("w.fabro", []byte(src))
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(src) || syntax.Line < 1 || syntax.Column < 1 {
				t.Fatalf("error %#v", err)
			}
			checkReport(t, []Diagnostic{syntax.Diagnostic()})
			return
		}
		wire, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		var back Graph
		if err := json.Unmarshal(wire, &back); err != nil {
			t.Fatalf("%v: %s", err, wire)
		}
		again, err := json.Marshal(&back)
		if err != nil || !bytes.Equal(wire, again) {
			t.Fatalf("%v\n%s\n%s", err, wire, again)
		}
		b := Bundle{
			Target: "w.fabro", Args: Args{Inputs: []string{"x=1"}},
			Workflows: map[string]BundleWorkflow{"w.fabro": {Source: src, Files: map[string]string{"x": "{{ goal }}", "x.fabro": smallGraph, "y.fabro": src}}},
		}
		c, list, err := Compile(b, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.Rule == "" || d.Message == "" || d.Line < 0 || d.SpanStart < 0 || d.SpanLen < 0 {
				t.Fatalf("%+v", d)
			}
		}
		checkReport(t, list)
		if DrawText(c.Graph) == "" || DOT(c.Graph) == "" {
			t.Fatal("nothing is drawn")
		}
	})
}

func checkReport(t *testing.T, list []Diagnostic) {
	for _, r := range FormatDiagnostics(list) {
		if unicode.IsControl(r) && r != '\n' {
			t.Fatalf("the report has the control character %U", r)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, text := range []string{
		"", "outcome=succeeded", "a && !b || c!=\"d e\"", "context.n >= 3", "x contains y", `x matches "^a+\d$"`, "!!a", "a=", "a= && b", "a == b",
		"(a)", "a &", "\"k\\\"\" = \"v\\\\\"", "contains contains contains", "a matches [", "ä=ö", "a matches (a*)*b", "a>=<b",
	} {
		f.Add(text, "value")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		c, err := ParseCondition(text)
		if err != nil {
			var fault *ConditionError
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(text) || fault.Error() == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, v := range []any{value, nil, 1.5, true, []any{value, nil}, map[string]any{value: value}, json.RawMessage(value)} {
			lookup := func(string) (any, bool) { return v, v != nil }
			if c.Eval(lookup) != c.Eval(lookup) {
				t.Fatal("two answers")
			}
		}
		if len(c.Keys()) == 0 && strings.TrimSpace(text) != "" {
			t.Fatalf("%q looks at nothing", text)
		}
	})
}

func FuzzStylesheet(f *testing.F) {
	for _, text := range []string{
		"", "* { model: m; }", ".code { model: a-b.c; reasoning_effort: high }", "#id_1-x { backend: acp; } box { speed: \"fast\"; }",
		"/* c */ * { /* d */ }", "* {", "* { model }", ".A {}", "a, b {}", "* { model: { } }", "} {", "/*", "#", ".", "* { ;;; }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStylesheet(text)
		if err != nil {
			var fault *StylesheetError
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(text) || fault.Message == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		g, err := Parse("w", []byte(`digraph G { id_1 [class="code x"] b [shape=tab, model=own] }`))
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(g)
		if model, _ := g.Node("b").Attrs.String("model"); model != "own" {
			t.Fatalf("an attribute of the node's own became %q", model)
		}
	})
}

func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"", "_version = 1", "[run]\ngoal = {file = \"x\"}\ninputs = {a = 1}", "[run.prepare]\ntimeout = \"5m\"\nsteps = [{script = \"x\"}]",
		"[environments.x]\nprovider = \"local\"\n[run.environment]\nid = \"x\"", "[run.metadata]\na = \"{{ vars.x }}\"", "run = 1", "run.goal = 1979-05-27",
	} {
		f.Add(text, "k=v")
	}
	f.Fuzz(func(t *testing.T, text, input string) {
		b := Bundle{
			Target: "w", Workflows: map[string]BundleWorkflow{"w": {Source: smallGraph, ConfigPath: "workflow.toml", ConfigSource: text}},
			Args: Args{Inputs: []string{input}, Labels: []string{input}},
		}
		settings, err := MergeSettings(b, map[string]string{"x": "y"})
		if err != nil {
			return
		}
		if _, err := json.Marshal(settings); err != nil {
			t.Fatal(err)
		}
	})
}
