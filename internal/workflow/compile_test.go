package workflow

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// attributes writes the attributes of all nodes, "id.key=value" a line.
func attributes(g *Graph, keys ...string) []string {
	var lines []string
	for _, n := range g.Nodes {
		for _, key := range keys {
			if v, ok := n.Attrs.Get(key); ok {
				lines = append(lines, n.ID+"."+key+"="+v.Text())
			}
		}
	}
	return lines
}

func edgesOf(g *Graph) []string {
	var lines []string
	for _, e := range g.Edges {
		line := e.From + " -> " + e.To
		if text := edgeText(e); text != "" {
			line += " " + text
		}
		lines = append(lines, line)
	}
	return lines
}

func TestScripts(t *testing.T) {
	cases := []struct{ name, script, want string }{
		{"a word as it is", `echo {{ inputs.dir }}`, `echo /srv/app-1`},
		{"a word in quotes", `echo {{inputs.text}}`, `echo 'it'\''s $HOME "now"'`},
		{"empty", `echo {{ inputs.empty }}`, `echo ''`},
		{"numbers and booleans", `echo {{ inputs.n }} {{ inputs.f }} {{ inputs.b }}`, `echo 3 0.5 true`},
		{"the goal", `echo {{ goal }}`, `echo 'ship 3'`},
		{"vars", `echo {{ vars.team }}`, `echo core`},
		{"trap: undefined stays", `echo {{ inputs.none }}`, `echo {{ inputs.none }}`},
		{"other braces stay", `echo {{ 1 + 1 }} {% x %} ${x} {{goals}} {{ inputs.dir | upper }}`, `echo {{ 1 + 1 }} {% x %} ${x} {{goals}} {{ inputs.dir | upper }}`},
		{"inserted text is not looked at again", `echo {{ inputs.nested }}`, `echo '{{ inputs.dir }}'`},
		{"trap: $goal is a shell variable", `echo $goal`, `echo $goal`},
	}
	args := Args{Inputs: []string{"dir=/srv/app-1", `text="it's $HOME \"now\""`, "empty=", "n=3", "f=0.5", "b=true", `nested="{{ inputs.dir }}"`}}
	opts := CompileOptions{Vars: map[string]string{"team": "core"}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			compiled, _ := compileText(t, frame("goal=\"ship {{ inputs.n }}\"\nb [script=\""+c.script+"\"] a -> b -> exit"), nil, opts, args)
			got, _ := compiled.Graph.Node("b").Attrs.String("script")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("python", func(t *testing.T) {
		compiled, _ := compileText(t, frame(`b [language=python, script="print({{ inputs.text }}, {{ inputs.n }})"] a -> b -> exit`), nil, opts, args)
		got, _ := compiled.Graph.Node("b").Attrs.String("script")
		if want := `print("it's $HOME \"now\"", "3")`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestGoals(t *testing.T) {
	src := frame(`goal="graph's" b [prompt="{{ goal }}"] a -> b -> exit`)
	toml := func(goal string) BundleWorkflow {
		return BundleWorkflow{Source: src, ConfigPath: "workflow.toml", ConfigSource: "[run]\ngoal = \"" + goal + "\"\n[run.inputs]\nx = 1"}
	}
	cases := []struct {
		name string
		b    Bundle
		want string
	}{
		{"of the graph", Bundle{Workflows: map[string]BundleWorkflow{"w": {Source: src}}}, "graph's"},
		{"graph in the manifest is information only", Bundle{Workflows: map[string]BundleWorkflow{"w": {Source: src}}, Goal: &BundleGoal{"graph", "other"}}, "graph's"},
		{"of the settings", Bundle{Workflows: map[string]BundleWorkflow{"w": toml("set {{ inputs.x }}")}}, "set 1"},
		{"of the manifest", Bundle{Workflows: map[string]BundleWorkflow{"w": toml("set")}, Goal: &BundleGoal{"value", "given {{ inputs.x }}"}}, "given 1"},
		{"of a file in the manifest", Bundle{Workflows: map[string]BundleWorkflow{"w": toml("set")}, Goal: &BundleGoal{"file", "from a file\n"}}, "from a file\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.b.Target = "w"
			compiled, list, err := Compile(c.b, CompileOptions{})
			if err != nil || HasErrors(list) {
				t.Fatal(err, list)
			}
			prompt, _ := compiled.Graph.Node("b").Attrs.String("prompt")
			if compiled.Goal != c.want || prompt != c.want {
				t.Errorf("goal %q, prompt %q, want %q", compiled.Goal, prompt, c.want)
			}
		})
	}
}

func TestFilesInAttributes(t *testing.T) {
	files := map[string]string{
		"p/plan.md":     "Plan {{ goal }} {% include 'sub/part.md' %}\n",
		"p/sub/part.md": "in {{ inputs.x }}{# not this #}\n",
		"s.json":        `{"properties":{"{{ x }}":{}}}`,
		"plain.md":      "plain\n",
	}
	c, list := compileText(t, frame(`goal="go" b [prompt="@p/plan.md", output_schema="@s.json"] d [prompt="@plain.md"] a -> b -> d -> exit`), files, CompileOptions{}, Args{})
	want := []string{"a.prompt=work", "b.prompt=Plan go in ", `b.output_schema={"properties":{"{{ x }}":{}}}`, "d.prompt=plain\n"}
	got := attributes(c.Graph, "prompt", "output_schema")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(list) != 1 || list[0].SourcePath != "p/sub/part.md" || list[0].Line != 1 || list[0].Column != 7 {
		t.Fatalf("%+v", list)
	}
	if diff := cmp.Diff([]Related{{Message: "included from here", SourcePath: "p/plan.md", Line: 1, Column: 28}}, list[0].Related); diff != "" {
		t.Error(diff)
	}
}

func TestImports(t *testing.T) {
	const shared = `digraph Shared { node [timeout=5s] start [shape=Mdiamond] exit [shape=Msquare]
		build [script="make", retry_target=check] check [prompt="@c.md", class="own", model=mine] h [shape=hexagon, human.default_choice="build"]
		start -> build -> check -> h  h -> build [label=again]  h -> leave  leave [prompt="x"] leave -> exit }`
	files := map[string]string{
		"lib/shared.fabro": shared, "lib/c.md": "checked",
		"lib/bypass.fabro": `digraph B { start [shape=Mdiamond] exit [shape=Msquare] start -> exit }`,
		"lib/nested.fabro": `digraph N { start [shape=Mdiamond] exit [shape=Msquare] deep [import="shared.fabro"] start -> deep -> exit }`,
	}
	t.Run("splice", func(t *testing.T) {
		c, list := compileText(t, frame(`my_step [import="./lib/shared.fabro", model=theirs, max_retries=2, class="extra"] a -> my_step [label=go] my_step -> exit [condition="outcome=failed"] my_step -> a`), files, CompileOptions{}, Args{})
		if HasErrors(list) {
			t.Fatal(FormatDiagnostics(list))
		}
		if diff := cmp.Diff([]string{
			"start -> a", "a -> exit", "my_step.build -> my_step.check", "my_step.check -> my_step.h", "my_step.h -> my_step.build again", "my_step.h -> my_step.leave",
			"a -> my_step.build go", "my_step.leave -> exit if outcome=failed", "my_step.leave -> a",
		}, edgesOf(c.Graph)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{
			"a.prompt=work", "my_step.build.timeout=5000ms", "my_step.build.max_retries=2", "my_step.build.retry_target=my_step.check",
			"my_step.check.prompt=checked", "my_step.check.timeout=5000ms", "my_step.check.model=mine", "my_step.check.max_retries=2",
			"my_step.h.timeout=5000ms", "my_step.h.max_retries=2", "my_step.h.human.default_choice=my_step.build",
			"my_step.leave.prompt=x", "my_step.leave.timeout=5000ms", "my_step.leave.model=theirs", "my_step.leave.max_retries=2",
		}, attributes(c.Graph, "prompt", "timeout", "model", "max_retries", "retry_target", "human.default_choice")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"own", "extra", "my-step"}, c.Graph.Node("my_step.check").Classes); diff != "" {
			t.Error(diff)
		}
		if c.Graph.Node("my_step") != nil {
			t.Error("the placeholder is still there")
		}
	})
	t.Run("bypass", func(t *testing.T) {
		c, list := compileText(t, frame(`b [import="lib/bypass.fabro"] a -> b [weight=3] b -> exit [label=x]`), files, CompileOptions{}, Args{})
		if HasErrors(list) {
			t.Fatal(FormatDiagnostics(list))
		}
		if diff := cmp.Diff([]string{"start -> a", "a -> exit", "a -> exit x, weight 3"}, edgesOf(c.Graph)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nested", func(t *testing.T) {
		c, list := compileText(t, frame(`b [import="lib/nested.fabro"] a -> b -> exit`), files, CompileOptions{}, Args{})
		if HasErrors(list) {
			t.Fatal(FormatDiagnostics(list))
		}
		n := c.Graph.Node("b.deep.build")
		if target, _ := n.Attrs.String("retry_target"); target != "b.deep.check" {
			t.Errorf("retry target %q", target)
		}
	})
	errs := []struct{ name, node, file, want string }{
		{"missing", `import="none.fabro"`, "", "import failed: there is no file none.fabro"},
		{"not a path", `import=5`, "", "import failed: `import` is not the path of a file"},
		{"template", `import="{{ x }}"`, "", "import failed: templates are not supported in the path of an import"},
		{"absolute", `import="/x.fabro"`, "", `import failed: the path "/x.fabro" is absolute; write it relative to the run's directory`},
		{"attribute", `import="x.fabro", prompt="x"`, smallGraph, "import failed: attribute `prompt` has no meaning on a node that imports a workflow"},
		{"syntax", `import="x.fabro"`, "digraph {", "import failed: x.fabro:1:9: expected the name of the graph, found `{`"},
		{"itself", `import="x.fabro"`, `digraph X { start [shape=Mdiamond] exit [shape=Msquare] b [import="x.fabro"] start -> b -> exit }`, "import failed: x.fabro imports itself: w.fabro → x.fabro → x.fabro"},
		{"the importer", `import="w.fabro"`, "", "import failed: w.fabro imports itself: w.fabro → w.fabro"},
		{"two starts", `import="x.fabro"`, `digraph X { start [shape=Mdiamond] s [shape=Mdiamond] exit [shape=Msquare] start -> exit }`, "import failed: x.fabro has 2 start and 1 exit nodes; an imported workflow has one of each"},
		{"two ways in", `import="x.fabro"`, `digraph X { start [shape=Mdiamond] exit [shape=Msquare] b c start -> b -> exit start -> c }`, "import failed: the start of x.fabro needs exactly one outgoing and no incoming edge"},
		{"two ways out", `import="x.fabro"`, `digraph X { start [shape=Mdiamond] exit [shape=Msquare] b c start -> b -> exit b -> c -> exit }`, "import failed: the exit of x.fabro needs exactly one incoming and no outgoing edge"},
		{"meaning on a boundary", `import="x.fabro"`, `digraph X { start [shape=Mdiamond] exit [shape=Msquare] b start -> b -> exit [condition="x"] }`, "import failed: the edge start -> b of x.fabro is dropped by the import, so it may not have `condition`"},
	}
	for _, c := range errs {
		t.Run(c.name, func(t *testing.T) {
			compiled, list := compileText(t, frame("b ["+c.node+"] a -> b -> exit"), map[string]string{"x.fabro": c.file}, CompileOptions{}, Args{})
			found := ""
			for _, d := range list {
				if d.Rule == "import_error" && found == "" {
					found = d.Message
				}
			}
			if diff := cmp.Diff(c.want, found); diff != "" {
				t.Error(diff)
			}
			if n := compiled.Graph.Node("b"); n != nil && !n.Attrs.Has("import_error") {
				t.Error("the placeholder has no import_error")
			}
		})
	}
}

func TestChildren(t *testing.T) {
	const child = `digraph Child { goal="own" start [shape=Mdiamond] exit [shape=Msquare] c [prompt="{{ goal }}"] start -> c -> exit }`
	b := Bundle{
		Target: "flows/parent.fabro",
		Workflows: map[string]BundleWorkflow{
			"flows/parent.fabro": {Source: frame(`one [shape=house, stack.child_workflow="../kids/child.fabro"]
				two [shape=house, stack.child_workflow="named"]
				three [shape=house, stack.child_workflow="../other/workflow.toml"]
				four [shape=house, stack.child_dot_source="digraph In { start [shape=Mdiamond] exit [shape=Msquare] c [prompt=\"{{ inputs.x }}\"] start -> c -> exit }"]
				five [shape=house, stack.child_workflow="gone.fabro"] six [shape=house] a -> one -> two -> three -> four -> five -> six -> exit`)},
			"kids/child.fabro":                      {Source: child},
			".fabro/workflows/named/workflow.fabro": {Source: child, ConfigPath: ".fabro/workflows/named/workflow.toml", ConfigSource: "[run]\ngoal = \"not this\""},
			"other/main.fabro":                      {Source: child, ConfigPath: "other/workflow.toml"},
		},
		Args: Args{Inputs: []string{"x=1"}},
	}
	c, list, err := Compile(b, CompileOptions{})
	if err != nil || HasErrors(list) {
		t.Fatal(err, FormatDiagnostics(list))
	}
	for node, want := range map[string]string{"one": "kids/child.fabro", "two": ".fabro/workflows/named/workflow.fabro", "three": "other/main.fabro"} {
		child, list, err := c.Child(c.Graph.Node(node))
		if err != nil || HasErrors(list) {
			t.Fatal(node, err, list)
		}
		prompt, _ := child.Graph.Node("c").Attrs.String("prompt")
		if child.Path != want || prompt != "own" || child.Goal != "own" {
			t.Errorf("%s: path %s, prompt %q, goal %q", node, child.Path, prompt, child.Goal)
		}
	}
	_, list, err = c.Child(c.Graph.Node("four"))
	if err != nil || !HasErrors(list) {
		t.Errorf("trap: the parent's inputs reach the child: %v %v", err, findings(list, true))
	}
	for node, want := range map[string]string{"five": "was not sent along", "six": "names no child"} {
		if _, _, err := c.Child(c.Graph.Node(node)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", node, err)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	var syntax *SyntaxError
	_, _, err := Compile(Bundle{Target: "w", Workflows: map[string]BundleWorkflow{"w": {Source: "digraph"}}}, CompileOptions{})
	if !errors.As(err, &syntax) {
		t.Errorf("error %v", err)
	}
	var target *TargetError
	_, _, err = Compile(Bundle{Target: "x", Workflows: map[string]BundleWorkflow{"w": {}}}, CompileOptions{})
	if !errors.As(err, &target) {
		t.Errorf("error %v", err)
	}
	for _, key := range []string{"/w", "~/w", `a\w`, "c:w", "", "\x00"} {
		var bad *KeyError
		_, _, err = Compile(Bundle{Target: key, Workflows: map[string]BundleWorkflow{key: {}}}, CompileOptions{})
		if !errors.As(err, &bad) {
			t.Errorf("%q: error %v", key, err)
		}
	}
}

// What files and templates add is bounded, however often they are named.
func TestCompiledTextIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("digraph G { goal=\"@big.md\" start [shape=Mdiamond] exit [shape=Msquare] start -> exit\n")
	for i := range 600 {
		fmt.Fprintf(&b, "n%d [prompt=\"{{ goal }}\"]\n", i)
	}
	b.WriteString("}")
	_, list := compileText(t, b.String(), map[string]string{"big.md": strings.Repeat("x", 1<<20)}, CompileOptions{}, Args{})
	count := 0
	for _, d := range list {
		if d.Rule == "size_limit" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d findings about the size", count)
	}
}

// A template that doubles at each include stops at the limits.
func TestTemplateBombs(t *testing.T) {
	files := map[string]string{"loop.md": "{% include 'loop.md' %}", "last.md": strings.Repeat("x", 1000), "e30.md": ""}
	for i := range 30 {
		next := fmt.Sprintf("b%d.md", i+1)
		if i == 29 {
			next = "last.md"
		}
		files[fmt.Sprintf("e%d.md", i)] = fmt.Sprintf("{%% include 'e%d.md' %%}{%% include 'e%d.md' %%}", i+1, i+1)
		files[fmt.Sprintf("b%d.md", i)] = fmt.Sprintf("{%% include '%s' %%}{%% include '%s' %%}", next, next)
	}
	for file, want := range map[string]string{"b0.md": "the rendered text is longer than", "e0.md": "steps to render", "loop.md": "include each other more than"} {
		_, list := compileText(t, frame(`b [prompt="@`+file+`"] a -> b -> exit`), files, CompileOptions{}, Args{})
		if len(list) != 1 || !strings.Contains(list[0].Message, want) {
			t.Errorf("%s: %v", file, FormatDiagnostics(list))
		}
	}
	script := `b [script="` + strings.Repeat("{{ goal }}", 1000) + `"] a -> b -> exit`
	_, list := compileText(t, frame(`goal="@last.md" `+script), map[string]string{"last.md": strings.Repeat("x", 100_000)}, CompileOptions{}, Args{})
	if len(list) != 1 || list[0].Rule != "size_limit" {
		t.Errorf("%v", findings(list, true))
	}
}

// The example of docs/workflows.md is clean.
func TestDocumentedExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```\n")
	src, _, _ := strings.Cut(rest, "```")
	_, list := compileText(t, src, map[string]string{"prompts/notes.md": "Write notes for {{ goal }}."}, CompileOptions{StrictVariables: true}, Args{Inputs: []string{"version=1.2"}})
	if len(list) > 0 {
		t.Error(FormatDiagnostics(list))
	}
	for _, rule := range []string{"ignored_value", "diamond_own_outcome", "default_choice_without_timeout", "edge_attribute_ignored", "exit_not_terminal", "parallel_branch_goal_gate", "goal_missing", "child_workflow", "template_unsupported"} {
		if !strings.Contains(string(page), "`"+rule+"`") {
			t.Errorf("docs/workflows.md does not name %s", rule)
		}
	}
}
