package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, src string) *Graph {
	t.Helper()
	g, err := Parse("test.fabro", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestValues(t *testing.T) {
	cases := []struct {
		name, text string
		want       Value
	}{
		{"quoted string", `"a b"`, String("a b")},
		{"escapes", `"q\"n\nt\tb\\"`, String("q\"n\nt\tb\\")},
		{"other escapes stay", `"\b\s\d\'"`, String(`\b\s\d\'`)},
		{"backslash newline stays", "\"a \\\n b\"", String("a \\\n b")},
		{"raw newline", "\"a\nb\"", String("a\nb")},
		{"comment signs in a string", `"https://x /* y */"`, String("https://x /* y */")},
		{"integer", `42`, Integer(42)},
		{"negative integer", `-1`, Integer(-1)},
		{"float", `0.5`, Float(0.5)},
		{"float without leading digit", `-.5`, Float(-0.5)},
		{"true", `true`, Boolean(true)},
		{"false", `false`, Boolean(false)},
		{"milliseconds", `250ms`, Duration(250 * time.Millisecond)},
		{"seconds", `30s`, Duration(30 * time.Second)},
		{"minutes", `5m`, Duration(5 * time.Minute)},
		{"hours", `2h`, Duration(2 * time.Hour)},
		{"days", `1d`, Duration(24 * time.Hour)},
		{"trap: quoted duration is a duration", `"900s"`, Duration(900 * time.Second)},
		{"trap: quoted integer stays text", `"20"`, String("20")},
		{"trap: quoted boolean stays text", `"true"`, String("true")},
		{"duration with a space is text", `"30 s"`, String("30 s")},
		{"huge duration is cut", `"99999999999d"`, Duration(1<<63 - 1)},
		{"number too big for a duration is text", `"99999999999999999999999s"`, String("99999999999999999999999s")},
		{"model id", `gpt-5.2-codex`, String("gpt-5.2-codex")},
		{"identifier", `Mdiamond`, String("Mdiamond")},
		{"word that begins like a boolean", `trueish`, String("trueish")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := mustParse(t, "digraph G { a [k="+c.text+"] }")
			got, _ := g.Node("a").Attrs.Get("k")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The accessors do not convert, as in Fabro.
func TestTypedAccessorsDoNotConvert(t *testing.T) {
	g := mustParse(t, `digraph G { graph [stall_timeout="300", max_node_visits="20"]
		a [label="30s", max_retries="5", goal_gate="true"]
		b [label=5]
		a -> b [weight="3"] }`)
	a, b := g.Node("a"), g.Node("b")
	if a.Label() != "a" || b.Label() != "b" {
		t.Errorf("labels %q, %q: a duration or an integer is no label", a.Label(), b.Label())
	}
	if _, ok := a.Attrs.Int("max_retries"); ok {
		t.Error("a quoted integer counts as an integer")
	}
	if _, ok := a.Attrs.Bool("goal_gate"); ok {
		t.Error("a quoted boolean counts as a boolean")
	}
	if _, ok := g.Attrs.Duration("stall_timeout"); ok {
		t.Error("a number without unit counts as a duration")
	}
	if w := g.Out("a")[0].Weight(); w != 0 {
		t.Errorf("quoted weight counts: %d", w)
	}
}

func TestStatements(t *testing.T) {
	cases := []struct{ name, body, want string }{
		{"empty", ``, `{"name":"G","nodes":{},"edges":[],"attrs":{}}`},
		{"graph attributes", `graph [goal="x"]; rankdir=LR`, `{"name":"G","nodes":{},"edges":[],"attrs":{"goal":{"String":"x"},"rankdir":{"String":"LR"}}}`},
		{"separators", `a [x=1, y=2; z=3
			w=4,]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":1},"y":{"Integer":2},"z":{"Integer":3},"w":{"Integer":4}}}},"edges":[],"attrs":{}}`},
		{"dotted key", `a [human.default_choice="b"] b []`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"human.default_choice":{"String":"b"}}},"b":{"id":"b","attrs":{}}},"edges":[],"attrs":{}}`},
		{"chain", `a b c a -> b -> c [weight=2]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{}},"b":{"id":"b","attrs":{}},"c":{"id":"c","attrs":{}}},"edges":[{"from":"a","to":"b","attrs":{"weight":{"Integer":2}}},{"from":"b","to":"c","attrs":{"weight":{"Integer":2}}}],"attrs":{}}`},
		{"trap: a node only edges mention is not created", `a a -> ghost`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{}}},"edges":[{"from":"a","to":"ghost","attrs":{}}],"attrs":{}}`},
		{"repeated node merges", `a [x=1,y=1] a [y=2]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":1},"y":{"Integer":2}}}},"edges":[],"attrs":{}}`},
		{"defaults in order", `a node [x=1] b node [x=2] b c`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{}},"b":{"id":"b","attrs":{"x":{"Integer":1}}},"c":{"id":"c","attrs":{"x":{"Integer":2}}}},"edges":[],"attrs":{}}`},
		{"defaults at the first mention by an edge", `node [x=1] a -> b node [x=2] a b`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":1}}},"b":{"id":"b","attrs":{"x":{"Integer":1}}}},"edges":[{"from":"a","to":"b","attrs":{}}],"attrs":{}}`},
		{"edge defaults", `a b edge [color="red", weight=1] a -> b [weight=2]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{}},"b":{"id":"b","attrs":{}}},"edges":[{"from":"a","to":"b","attrs":{"color":{"String":"red"},"weight":{"Integer":2}}}],"attrs":{}}`},
		{"subgraph defaults are hoisted and stay inside", `subgraph s { a node [x=1] b } c`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":1}}},"b":{"id":"b","attrs":{"x":{"Integer":1}}},"c":{"id":"c","attrs":{}}},"edges":[],"attrs":{}}`},
		{"of several hoisted defaults the last wins everywhere", `subgraph { node [x=1] a node [x=2] b }`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":2}}},"b":{"id":"b","attrs":{"x":{"Integer":2}}}},"edges":[],"attrs":{}}`},
		{"subgraph label is a class and a graph attribute", `label="Outer" subgraph cluster_x { label="My Step #1" a } b`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{},"classes":["my-step-1"]},"b":{"id":"b","attrs":{}}},"edges":[],"attrs":{"label":{"String":"My Step #1"}}}`},
		{"only the innermost subgraph gives a class", `subgraph { label="L" subgraph { a } a -> b } b`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{},"classes":["l"]},"b":{"id":"b","attrs":{},"classes":["l"]}},"edges":[{"from":"a","to":"b","attrs":{}}],"attrs":{"label":{"String":"L"}}}`},
		{"nested without label: none", `subgraph { label="L" subgraph { a } }`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{}}},"edges":[],"attrs":{"label":{"String":"L"}}}`},
		{"classes", `a [class="x y,x"]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"class":{"String":"x y,x"}},"classes":["x","y"]}},"edges":[],"attrs":{}}`},
		{"keywords as ids", `node -> edge graph node edge`, `{"name":"G","nodes":{"node":{"id":"node","attrs":{}},"edge":{"id":"edge","attrs":{}},"graph":{"id":"graph","attrs":{}}},"edges":[{"from":"node","to":"edge","attrs":{}}],"attrs":{}}`},
		{"comments", "// one\na /* two\nlines */ [x=1] // \"three\nb", `{"name":"G","nodes":{"a":{"id":"a","attrs":{"x":{"Integer":1}}},"b":{"id":"b","attrs":{}}},"edges":[],"attrs":{}}`},
		{"duration on the wire", `a [t=1500ms, u=0.5, v=2.0, w=true]`, `{"name":"G","nodes":{"a":{"id":"a","attrs":{"t":{"Duration":{"secs":1,"nanos":500000000}},"u":{"Float":0.5},"v":{"Float":2.0},"w":{"Boolean":true}}}},"edges":[],"attrs":{}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := mustParse(t, "digraph G {"+c.body+"}")
			got, err := marshalPlain(g)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Fatal(diff)
			}
			var back Graph
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			again, err := marshalPlain(&back)
			if err != nil || string(again) != string(got) {
				t.Errorf("read back and written again: %s, %v", again, err)
			}
		})
	}
}

func TestShapesAndHandlers(t *testing.T) {
	cases := []struct {
		attrs, shape, handler string
		terminal              bool
	}{
		{``, "box", "agent", false},
		{`shape=Mdiamond`, "Mdiamond", "start", false},
		{`shape=Msquare`, "Msquare", "exit", true},
		{`shape=tab`, "tab", "prompt", false},
		{`shape=hexagon`, "hexagon", "human", false},
		{`shape=diamond`, "diamond", "conditional", false},
		{`shape=component`, "component", "parallel", false},
		{`shape=tripleoctagon`, "tripleoctagon", "parallel.fan_in", false},
		{`shape=parallelogram`, "parallelogram", "command", false},
		{`shape=house`, "house", "stack.manager_loop", false},
		{`shape=insulator`, "insulator", "wait", false},
		{`shape=circle`, "circle", "agent", false},
		{`script="echo"`, "parallelogram", "command", false},
		{`script="echo", shape=box`, "box", "agent", false},
		{`script="echo", type="prompt"`, "box", "prompt", false},
		{`type="tool", shape=hexagon`, "hexagon", "command", false},
		{`type="nonsense", shape=hexagon`, "hexagon", "human", false},
		{`type="nonsense"`, "box", "agent", false},
		{`type="exit"`, "box", "exit", true},
	}
	for _, c := range cases {
		t.Run(c.attrs, func(t *testing.T) {
			n := mustParse(t, "digraph G { exit ["+c.attrs+"] }").Node("exit")
			got := []any{n.Shape(), n.Handler(), n.Terminal()}
			if diff := cmp.Diff([]any{c.shape, c.handler, c.terminal}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	cases := []struct{ name, src, want string }{
		{"empty", "", "f:1:1: the file holds no graph"},
		{"strict", "strict digraph G {}", "f:1:1: `strict` is not part of this dialect"},
		{"undirected", "graph G {}", "f:1:1: a workflow is a directed graph"},
		{"no name", "digraph {}", "f:1:9: expected the name of the graph, found `{`"},
		{"quoted name", `digraph "G" {}`, "f:1:9: expected the name of the graph, found a string"},
		{"text after", "digraph G {}\nx", "f:2:1: expected nothing after the graph's closing `}`, found `x`"},
		{"two graphs", "digraph G {} digraph H {}", "f:1:14: expected nothing after the graph's closing `}`, found `digraph`"},
		{"not closed", "digraph G {\n a\n", "f:3:1: the graph is never closed"},
		{"undirected edge", "digraph G { a -- b }", "f:1:15: expected `->`, found `--`"},
		{"quoted id", `digraph G { "a" -> b }`, "f:1:13: node ids are not quoted"},
		{"quoted target", `digraph G { a -> "b" }`, "f:1:18: node ids are not quoted"},
		{"numeric id", "digraph G { 1 }", "f:1:13: a node id starts with a letter or _, found `1`"},
		{"port", "digraph G { a:n -> b }", "f:1:14: ports (`node:port`) are not part of this dialect"},
		{"group", "digraph G { a -> {b c} }", "f:1:18: an edge leads to one node, not to a group"},
		{"html", "digraph G { a [label=<b>] }", "f:1:22: HTML strings are not part of this dialect"},
		{"concatenation", `digraph G { a [label="x" + "y"] }`, "f:1:26: strings are not joined with `+` in this dialect"},
		{"second block", "digraph G { a [x=1] [y=2] }", "f:1:21: a statement has one attribute block; this is a second one"},
		{"bare key", "digraph G { a [bold] }", "f:1:16: attribute `bold` has no value"},
		{"dotted key as a statement", "digraph G { a.b = 1 }", "f:1:14: a dot may not stand in a node id or a graph attribute written as key = value"},
		{"open string", "digraph G {\n a [x=\"y] }", "f:2:7: this string is never closed"},
		{"open block", "digraph G { a [x=1 ", "f:1:15: this attribute block is never closed"},
		{"open comment", "digraph G { a\n/* b\n", "f:2:1: this comment is never closed"},
		{"hash comment", "digraph G {\n# a\n}", "f:2:1: `#` starts no comment here"},
		{"unit that is none", "digraph G { a [t=5min] }", "f:1:18: \"5min\" is neither a number nor a duration"},
		{"composed duration", "digraph G { a [t=1h30m] }", "f:1:18: \"1h30m\" is neither a number nor a duration"},
		{"negative duration", "digraph G { a [t=-5s] }", "f:1:18: the duration -5s is negative"},
		{"integer out of range", "digraph G { a [t=9223372036854775808] }", "f:1:18: the integer 9223372036854775808 does not fit in 64 bits"},
		{"number with a bare point", "digraph G { a [t=5.] }", "f:1:18: expected a number, found `5`"},
		{"column counts characters", "digraph G { a [x=\"äöü\" !] }", "f:1:24: expected an attribute or `]`, found `!`"},
		{"not UTF-8", "digraph G { a [x=\"\xff\"] }", "f:1:19: the file is not valid UTF-8"},
		{"NUL", "digraph G { \x00 }", "f:1:13: expected a statement, found the character U+0000"},
		{"deep nesting", "digraph G {" + strings.Repeat("subgraph {", 300), "f:1:2012: subgraphs are nested more than 200 deep"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.src))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if syntax.Fix == "" {
				t.Error("no fix is named")
			}
		})
	}
}

func TestUnclosedCommentKeepsTheLastCharacter(t *testing.T) {
	mustParse(t, "digraph G { a }\n/* the end\n")
	mustParse(t, "digraph G { a /* the end }")
}

// What a small file expands to is bounded, not only what is written.
func TestExpansionIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("digraph G { node [")
	for i := range 2000 {
		fmt.Fprintf(&b, "k%d=1 ", i)
	}
	b.WriteString("]\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "n%d\n", i)
	}
	b.WriteString("}")
	_, err := Parse("f", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "more than 2000000 attributes") {
		t.Errorf("error %v", err)
	}
}
