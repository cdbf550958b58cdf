package workflow

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func bundleOf(t testing.TB, dir, selector string, opts BundleOptions) (*Bundle, error) {
	t.Helper()
	loc, err := Locate(selector, dir, opts.FabroHome)
	if err != nil {
		t.Fatal(err)
	}
	return BundleFiles(loc, dir, opts)
}

// A project that uses every way a workflow can refer to a file.
func TestBundleFiles(t *testing.T) {
	const root = ".fabro/workflows/root/"
	dir := tree(t, map[string]string{
		".fabro/project.toml":                   "[environments.p.image]\ndockerfile = {path=\"Project.Dockerfile\"}\n",
		".fabro/Project.Dockerfile":             "FROM p",
		root + "workflow.toml":                  "[run.environment.image]\ndockerfile = {path=\"Dockerfile\"}\n",
		root + "Dockerfile":                     "FROM w",
		root + "workflow.fabro":                 `digraph Root { graph [goal="@goals/goal.md"] start [shape=Mdiamond] exit [shape=Msquare] a [prompt="@prompts/plan.md", output_schema="@schemas/output.json"] b [import="./imports/shared.fabro"] c [shape=house, stack.child_workflow="../child/workflow.fabro"] d [prompt="{% include 'prompts/inline.md' %}"] start -> a -> b -> c -> d -> exit }`,
		root + "goals/goal.md":                  "Ship",
		root + "prompts/plan.md":                "{% if x %}{% include 'partial.md' %}{% else %}{% from \"helpers.md\" import f %}{% endif %}",
		root + "prompts/partial.md":             "{% include \"deep.md\" %}",
		root + "prompts/helpers.md":             "{% macro f() %}{% endmacro %}",
		root + "prompts/deep.md":                "deep {% include \"partial.md\" %}",
		root + "prompts/inline.md":              "inline {% include 'none.md' ignore missing %}",
		root + "prompts/shared.md":              "shared",
		root + "schemas/output.json":            "{}",
		root + "imports/shared.fabro":           `digraph Shared { start [shape=Mdiamond] exit [shape=Msquare] s [prompt="@../prompts/shared.md"] t [import="shared.fabro"] start -> s -> exit }`,
		".fabro/workflows/child/workflow.toml":  "[run]\ngoal = \"child\"\n",
		".fabro/workflows/child/workflow.fabro": smallGraph,
		"user.toml":                             "[cli.target]\ntype = \"http\"\n",
	})
	got, err := bundleOf(t, dir, "root", BundleOptions{UserSettings: filepath.Join(dir, "user.toml")})
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	refs := map[string]FileRef{
		".fabro/Project.Dockerfile":   {RefDockerfile, "Project.Dockerfile", ".fabro/project.toml"},
		root + "Dockerfile":           {RefDockerfile, "Dockerfile", root + "workflow.toml"},
		root + "goals/goal.md":        {RefFileInline, "goals/goal.md", root + "workflow.fabro"},
		root + "imports/shared.fabro": {RefImport, "./imports/shared.fabro", root + "workflow.fabro"},
		root + "prompts/plan.md":      {RefFileInline, "prompts/plan.md", root + "workflow.fabro"},
		root + "prompts/partial.md":   {RefFileInline, root + "prompts/partial.md", root + "prompts/plan.md"},
		root + "prompts/helpers.md":   {RefFileInline, root + "prompts/helpers.md", root + "prompts/plan.md"},
		root + "prompts/deep.md":      {RefFileInline, root + "prompts/deep.md", root + "prompts/plan.md"},
		root + "prompts/inline.md":    {RefFileInline, root + "prompts/inline.md", root + "workflow.fabro"},
		root + "prompts/shared.md":    {RefFileInline, "../prompts/shared.md", root + "imports/shared.fabro"},
		root + "schemas/output.json":  {RefFileInline, "schemas/output.json", root + "workflow.fabro"},
	}
	files := map[string]string{}
	for key := range refs {
		files[key] = text(key)
	}
	want := &Bundle{
		Target: root + "workflow.fabro",
		Workflows: map[string]BundleWorkflow{
			root + "workflow.fabro": {Source: text(root + "workflow.fabro"), ConfigPath: root + "workflow.toml", ConfigSource: text(root + "workflow.toml"), Files: files, Refs: refs},
			".fabro/workflows/child/workflow.fabro": {
				Source: smallGraph, ConfigPath: ".fabro/workflows/child/workflow.toml", ConfigSource: text(".fabro/workflows/child/workflow.toml"),
				Files: map[string]string{}, Refs: map[string]FileRef{},
			},
		},
		Configs: []BundleConfig{
			{ConfigProject, filepath.Join(dir, ".fabro", "project.toml"), text(".fabro/project.toml")},
			{ConfigUser, filepath.Join(dir, "user.toml"), text("user.toml")},
		},
		Goal:       &BundleGoal{"graph", "Ship"},
		WorkingDir: dir, Labels: map[string]string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBundleGoal(t *testing.T) {
	files := map[string]string{
		".fabro/project.toml":               "[run]\ngoal = {file = \"goal.md\"}\nworking_dir = \"sub\"\n",
		".fabro/goal.md":                    "of the project",
		"sub/mine.md":                       "of the run",
		".fabro/workflows/a/workflow.fabro": `digraph A { goal="of the graph" start [shape=Mdiamond] exit [shape=Msquare] start -> exit }`,
		".fabro/workflows/b/workflow.toml":  "[run]\ngoal = \"of the toml\"\nenvironment.id = \"only-the-server-knows\"\n",
		".fabro/workflows/b/workflow.fabro": smallGraph,
	}
	dir := tree(t, files)
	value := "given"
	cases := []struct {
		name, workflow string
		opts           BundleOptions
		want           BundleGoal
	}{
		{"given", "b", BundleOptions{Goal: &value, GoalFile: "mine.md"}, BundleGoal{"value", "given"}},
		{"file, relative to the working directory", "b", BundleOptions{GoalFile: "mine.md"}, BundleGoal{"file", "of the run"}},
		{"workflow.toml", "b", BundleOptions{}, BundleGoal{"value", "of the toml"}},
		{"project.toml, relative to itself", "a", BundleOptions{}, BundleGoal{"file", "of the project"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, err := bundleOf(t, dir, c.workflow, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, b.Goal); diff != "" {
				t.Error(diff)
			}
			if b.WorkingDir != filepath.Join(dir, "sub") {
				t.Errorf("working directory %s", b.WorkingDir)
			}
		})
	}
	_, err := bundleOf(t, dir, "a", BundleOptions{GoalFile: "none.md"})
	if err == nil || !strings.HasPrefix(err.Error(), "failed to resolve --goal-file contents: Failed to read ") {
		t.Errorf("error %v", err)
	}
}

func TestBundleErrors(t *testing.T) {
	graph := func(body string) string {
		return "digraph G { start [shape=Mdiamond] exit [shape=Msquare] " + body + " }"
	}
	cases := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no graph", map[string]string{"w.fabro": "graph"}, "Failed to parse DIR/w.fabro: w.fabro:1:1: a workflow is a directed graph"},
		{"missing file", map[string]string{"w.fabro": graph(`a [prompt="@no.md"]`)}, "Failed to read DIR/no.md: no such file"},
		{"a directory", map[string]string{"w.fabro": graph(`a [prompt="@d"]`), "d/x": ""}, "Failed to read DIR/d: it is a directory"},
		{"absolute", map[string]string{"w.fabro": graph(`a [prompt="@/etc/passwd"]`)}, `unsupported manifest reference: /etc/passwd: "/etc/passwd" is absolute; write it relative to the run's directory`},
		{"home", map[string]string{"w.fabro": graph(`a [output_schema="@~/x"]`)}, `unsupported manifest reference: ~/x: "~/x" begins with ~; write it relative to the run's directory`},
		{"goal", map[string]string{"w.fabro": graph(`goal="@~x"`)}, `unsupported manifest goal reference: @~x: "~x" begins with ~; write it relative to the run's directory`},
		{"escape", map[string]string{"w.fabro": graph(`a [prompt="@../../../../../../../../../../etc/passwd"]`)}, "reference `../../../../../../../../../../etc/passwd` from `w.fabro` leads to /etc/passwd, outside of DIR"},
		{"template in a reference", map[string]string{"w.fabro": graph(`a [prompt="@{{ inputs.x }}"]`)}, "templates are not supported in file inline references: {{ inputs.x }}"},
		{"template in an import", map[string]string{"w.fabro": graph(`a [import="{{ x }}"]`)}, "templates are not supported in import references: {{ x }}"},
		{"template in a child", map[string]string{"w.fabro": graph(`a [stack.child_workflow="{{ x }}"]`)}, "templates are not supported in child workflow references: {{ x }}"},
		{"template in a goal", map[string]string{"w.fabro": graph(`goal="@{{ x }}"`)}, "templates are not supported in graph goal file references: {{ x }}"},
		{"child at home", map[string]string{"w.fabro": graph(`a [stack.child_workflow="~/c.fabro"]`)}, "unsupported manifest workflow reference: ~/c.fabro"},
		{"missing child", map[string]string{"w.fabro": graph(`a [stack.child_workflow="c.fabro"]`)}, `child workflow "c.fabro": workflow not found: DIR/c.fabro`},
		{"dynamic include", map[string]string{"w.fabro": graph(`a [prompt="{% include name %}"]`)}, "failed to discover template dependencies: dynamic template dependency in `w.fabro` must be declared explicitly"},
		{"list include", map[string]string{"w.fabro": graph(`a [prompt="{% include ['a'] %}"]`)}, "failed to discover template dependencies: dynamic template dependency in `w.fabro` must be declared explicitly"},
		{"missing include", map[string]string{"w.fabro": graph(`a [prompt="{% include 'no.md' %}"]`)}, "failed to discover template dependencies: missing template dependency `no.md` from `w.fabro`"},
		{"include above the root", map[string]string{"s/w.fabro": graph(`a [prompt="{% include '../x.md' %}"]`), "x.md": ""}, "failed to discover template dependencies: failed to load a template dependency of `s/w.fabro`: template reference `../x.md` from `s/w.fabro` escapes template root `DIR/s`"},
		{"absolute include", map[string]string{"w.fabro": graph(`a [prompt="{% include '/x' %}"]`)}, "failed to discover template dependencies: unsafe template reference `/x` from `w.fabro`: \"/x\" is absolute; write it relative to the run's directory"},
		{"broken template", map[string]string{"w.fabro": graph(`a [prompt="{% include 'a"]`)}, "failed to discover template dependencies: invalid template `w.fabro`: a string in the template is never closed"},
		{"broken toml", map[string]string{"w.fabro": graph(""), ".fabro/project.toml": "x = \n"}, "Failed to parse run config TOML"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, c.files)
			selector := "w.fabro"
			if _, ok := c.files[selector]; !ok {
				selector = "s/w.fabro"
			}
			_, err := bundleOf(t, dir, selector, BundleOptions{})
			var bundle *BundleError
			if !errors.As(err, &bundle) {
				t.Fatalf("error %v", err)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestBundleRefusesSymlinksOut(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	outside := tree(t, map[string]string{"secret": "key"})
	for _, attribute := range []string{`prompt="@link"`, `output_schema="@dir/secret"`, `import="link"`, `prompt="{% include 'link' %}"`} {
		dir := tree(t, map[string]string{"w.fabro": "digraph G { a [" + attribute + "] }"})
		if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "dir")); err != nil {
			t.Fatal(err)
		}
		_, err := bundleOf(t, dir, "w.fabro", BundleOptions{})
		if err == nil || !strings.Contains(err.Error(), "outside of") && !strings.Contains(err.Error(), "escapes template root") {
			t.Errorf("%s: error %v", attribute, err)
		}
	}
	// Links that stay inside are fine.
	dir := tree(t, map[string]string{"w.fabro": `digraph G { a [prompt="@link"] }`, "real": "text"})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	b, err := bundleOf(t, dir, "w.fabro", BundleOptions{})
	if err != nil || b.Workflows["w.fabro"].Files["link"] != "text" {
		t.Errorf("%+v, %v", b, err)
	}
}

// An error about a reference shows the reference.
func TestDiagnosticsOf(t *testing.T) {
	dir := tree(t, map[string]string{
		"w.fabro": "digraph G {\n  a [import=\"sub/i.fabro\"]\n}", "sub/i.fabro": "digraph I {\n  b [prompt=\"@no.md\"]\n}",
		"x.fabro": "digraph", ".fabro/project.toml": "",
	})
	show := func(selector string) string {
		_, err := bundleOf(t, dir, selector, BundleOptions{})
		return strings.ReplaceAll(FormatDiagnostics(DiagnosticsOf(err)), dir, "DIR")
	}
	want := "sub/i.fabro:2:13: error: Failed to read DIR/sub/no.md: no such file [unresolved_file_ref]\n    2 |   b [prompt=\"@no.md\"]\n      |             ^~~~~~~~\n      = fix: " + bundleFix + "\n"
	if diff := cmp.Diff(want, show("w.fabro")); diff != "" {
		t.Error(diff)
	}
	if got := show("x.fabro"); !strings.HasPrefix(got, "x.fabro:1:8: error: expected the name of the graph") {
		t.Error(got)
	}
	_, err := MergeSettings(layers("", "", "[run]\nx = 1", Args{Environment: "moon"}), nil)
	want = "workflow.toml: error: unknown key `x` in [run]; known keys: " + strings.Join(settingsKeys["run"], ", ") + " [settings]\n" +
		"error: run.environment.id: no environment \"moon\" is defined [settings]\n"
	if diff := cmp.Diff(want, FormatDiagnostics(DiagnosticsOf(err))); diff != "" {
		t.Error(diff)
	}
	if list := DiagnosticsOf(errors.New("x")); list != nil {
		t.Errorf("%+v", list)
	}
}

// A client does not refuse what a server may know better.
func TestCheckBundle(t *testing.T) {
	check := func(body string) []string {
		list, err := CheckBundle(Bundle{Target: "w", Workflows: map[string]BundleWorkflow{"w": {
			Source: frame(body), ConfigPath: "workflow.toml", ConfigSource: "[run.environment]\nid = \"only-the-server-knows\"\n[run.metadata]\nx = \"{{ vars.y }}\"",
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return findings(list, false)
	}
	if got := check(`b [prompt="{{ vars.x }}{% if vars.x %}{% endif %}", model="new"] c [script="{{ vars.x }}"] a -> b -> c -> exit`); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := check(`b [prompt="{{ inputs.x }}"] a -> b -> exit`); len(got) != 1 || !strings.Contains(got[0], "error template_undefined_variable") {
		t.Errorf("%v", got)
	}
}

// Workflows that run each other end the collection.
func TestBundleChildCycle(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.fabro": `digraph A { x [shape=house, stack.child_workflow="b.fabro"] }`,
		"b.fabro": `digraph B { x [shape=house, stack.child_workflow="a.fabro"] }`,
	})
	b, err := bundleOf(t, dir, "a.fabro", BundleOptions{})
	if err != nil || len(b.Workflows) != 2 {
		t.Errorf("%d workflows, %v", len(b.Workflows), err)
	}
}
