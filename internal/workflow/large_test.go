package workflow

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// chain is a workflow of n agents in a row.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("digraph Chain {\n  node [timeout=\"900s\"]\n  start [shape=Mdiamond]\n  exit [shape=Msquare]\n")
	for i := range n {
		fmt.Fprintf(&b, "  n%d [label=\"Step %d\", prompt=\"Do it with \\\"care\\\"\", max_retries=2]\n", i, i)
	}
	b.WriteString("  start")
	for i := range n {
		fmt.Fprintf(&b, " -> n%d", i)
	}
	b.WriteString(" -> exit\n}\n")
	return b.String()
}

// hostile are workflows made to be slow or large. Each is compiled, and what is
// alive afterwards is bounded.
func hostile() map[string]string {
	const thousands = 100_000 / scale
	const bytes = 1 << 20 / scale
	mega := strings.Repeat("x", bytes)
	var missing, oneLine strings.Builder
	for i := range thousands {
		fmt.Fprintf(&missing, "a -> m%d\n", i)
		fmt.Fprintf(&oneLine, "ä%d", i)
	}
	start := "digraph G { start [shape=Mdiamond] exit [shape=Msquare] start -> exit\n"
	return map[string]string{
		"a hundred thousand nodes":               chain(thousands),
		"thirty thousand nodes on one line":      strings.ReplaceAll(chain(thousands/3), "\n", " /* ä */ "),
		"a hundred thousand missing nodes":       start + "a [prompt=x]\n" + missing.String() + "}",
		"a megabyte in each of three attributes": start + "a [" + "k0=\"" + mega + "\" k1=\"" + mega + "\" k2=\"" + mega + "\"" + "] }",
		"a megabyte of classes":                  start + "a [class=\"" + strings.Repeat("c ", bytes/2) + "\"] }",
		"a megabyte of different classes":        start + "a [class=\"" + oneLine.String() + " " + strings.ReplaceAll(oneLine.String(), "ä", " ") + "\"] }",
		"a condition of a megabyte":              start + "a [prompt=x] a -> exit [condition=\"" + strings.Repeat("!", bytes) + "x\"] }",
		"a condition of many clauses":            start + "a [prompt=x] a -> exit [condition=\"" + strings.Repeat("a=b && ", bytes/8) + "x\"] }",
		"a hundred thousand variables":           start + "a [prompt=\"" + strings.Repeat("\\\"{{ inputs.x }}", thousands) + "\"] }",
		"a script of variables":                  start + "a [script=\"" + strings.Repeat("{{ inputs.x }}", thousands) + "\"] }",
		"open braces":                            start + "a [prompt=\"" + strings.Repeat("{", bytes) + "\", script=\"" + strings.Repeat("{{", bytes/2) + "\"] }",
		"a stylesheet of open rules":             start + "model_stylesheet=\"" + strings.Repeat("*{", bytes/2) + "\" }",
		"twenty thousand start nodes":            strings.ReplaceAll(chain(thousands/5), "max_retries=2", "shape=Mdiamond"),
		"a hundred thousand attributes":          start + "a [" + manyKeys(thousands) + "] }",
		"comments":                               start + strings.Repeat("/*", bytes/2),
		"slashes":                                start + strings.Repeat("/", bytes),
		"quotes":                                 start + strings.Repeat("\"", bytes),
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d=%d ", i, i)
	}
	return b.String()
}

func TestHostileGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("large inputs are left out in short mode")
	}
	for name, src := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			c, list, err := Compile(Bundle{Target: "w.fabro", Workflows: map[string]BundleWorkflow{"w.fabro": {Source: src}}}, CompileOptions{})
			runtime.ReadMemStats(&after)
			if err == nil && c == nil {
				t.Error("neither a workflow nor an error")
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<30 {
				t.Errorf("%d MB allocated", allocated>>20)
			}
			FormatDiagnostics(list)
		})
	}
}

// The cost of a node does not grow with the graph: ten times the nodes allocate
// about ten times the memory.
func TestParseIsLinear(t *testing.T) {
	cost := func(n int) float64 {
		src := []byte(chain(n))
		return testing.AllocsPerRun(1, func() {
			if _, err := Parse("w", src); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := cost(2_000), cost(20_000); large > 12*small {
		t.Errorf("%.0f allocations for 2,000 nodes, %.0f for 20,000", small, large)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		src := []byte(chain(n))
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("w", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		bundle := Bundle{Target: "w", Workflows: map[string]BundleWorkflow{"w": {Source: chain(n)}}}
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(bundle.Workflows["w"].Source)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Compile(bundle, CompileOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCondition(b *testing.B) {
	c, err := ParseCondition(`outcome=succeeded && context.kept_count > 0 || context.command.output contains PASS`)
	if err != nil {
		b.Fatal(err)
	}
	lookup := func(key string) (any, bool) { return "3", true }
	b.ReportAllocs()
	for b.Loop() {
		c.Eval(lookup)
	}
}
