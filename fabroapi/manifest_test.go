package fabroapi_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// tree writes the files of a txtar text into a directory of its own, which is
// also free of symbolic links.
func tree(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// envIn is an environment whose Fabro home is a directory below dir.
func envIn(dir string) fabroapi.Environment {
	return fabroapi.Environment{Getenv: func(name string) string {
		return map[string]string{"FABRO_HOME": filepath.Join(dir, "home")}[name]
	}}
}

const project = `
-- repo/.fabro/project.toml --
_version = 1
[run.metadata]
team = "core"
-- repo/.fabro/workflows/release/workflow.toml --
_version = 1
[workflow]
name = "Release"
[run.inputs]
tag = "v0"
-- repo/.fabro/workflows/release/workflow.fabro --
digraph Release {
  graph [goal="Ship {{ inputs.tag }}"]
  start [shape=Mdiamond]
  plan  [prompt="@prompts/plan.md"]
  child [shape=house, stack.child_workflow="../child/workflow.fabro"]
  exit  [shape=Msquare]
  start -> plan -> child -> exit
}
-- repo/.fabro/workflows/release/prompts/plan.md --
Plan. {% include "part.md" %}
-- repo/.fabro/workflows/release/prompts/part.md --
A part.
-- repo/.fabro/workflows/child/workflow.fabro --
digraph Child {
  start [shape=Mdiamond]
  exit  [shape=Msquare]
  start -> exit
}
-- home/settings.toml --
_version = 1
[server.secrets]
key = "top-secret"
[cli.target]
type = "http"
url = "https://fabro.example.com"
[run.model]
name = "m" # a comment
[environments.mine]
provider = "local"
[environments.mine.env]
A = "b"
-- home/workflows/mine/workflow.fabro --
digraph Mine {
  start [shape=Mdiamond]
  exit  [shape=Msquare]
  start -> exit
}
-- elsewhere/goal.md --
A goal from elsewhere.
`

// TestMarks: marks are added to the labels that a run has anyway, which labels in
// the arguments would replace.
func TestMarks(t *testing.T) {
	dir := tree(t, `
-- plain/workflow.fabro --
digraph D { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exit }
-- labelled/workflow.fabro --
digraph D { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exit }
-- labelled/workflow.toml --
_version = 1
[run.metadata]
team = "a"
`)
	for _, c := range []struct {
		name, workflow string
		labels, marks  map[string]string
		want           []string
	}{
		{"no mark", "labelled/workflow.toml", nil, nil, nil},
		{"nothing else", "plain/workflow.fabro", nil, map[string]string{"mark": "1"}, []string{"mark=1"}},
		{"labels of the settings", "labelled/workflow.toml", nil, map[string]string{"mark": "1"}, []string{"mark=1", "team=a"}},
		{"labels of the call", "labelled/workflow.toml", map[string]string{"x": "y"}, map[string]string{"mark": "1"}, []string{"mark=1", "x=y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest, err := fabroapi.BuildManifest(t.Context(), envIn(dir), fabroapi.ManifestSpec{Workflow: c.workflow, Cwd: dir, Labels: c.labels, Marks: c.marks})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if manifest.Args != nil {
				got = manifest.Args.Label
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBuildManifest(t *testing.T) {
	dir := tree(t, project)
	repo := filepath.Join(dir, "repo")
	no := false
	manifest, err := fabroapi.BuildManifest(t.Context(), envIn(dir), fabroapi.ManifestSpec{
		Workflow: "release", Cwd: repo, ParentID: runID, Title: "A release",
		Inputs: map[string]any{"tag": "v1 \"q\"\n", "n": int64(3), "ratio": 2.0, "on": true, "big": json.Number("9223372036854775808")},
		Labels: map[string]string{"b": "2=3", "a": "1"}, DryRun: &no, Model: "opus", AgentCommand: []string{"agent"},
	})
	if err != nil {
		t.Fatal(err)
	}
	base := ".fabro/workflows/release/"
	release := manifest.Workflows[base+"workflow.fabro"]
	if got := slices.Sorted(maps.Keys(manifest.Workflows)); !slices.Equal(got, []string{".fabro/workflows/child/workflow.fabro", base + "workflow.fabro"}) {
		t.Errorf("workflows %q", got)
	}
	files := map[string]wire.ManifestFileRef{}
	for key, file := range release.Files {
		files[key] = file.Ref
	}
	wantFiles := map[string]wire.ManifestFileRef{
		base + "prompts/plan.md": {Type: "file_inline", Original: "prompts/plan.md", From: wire.Ptr(base + "workflow.fabro")},
		base + "prompts/part.md": {Type: "file_inline", Original: base + "prompts/part.md", From: wire.Ptr(base + "prompts/plan.md")},
	}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Error(diff)
	}
	if release.Config == nil || release.Config.Path != base+"workflow.toml" {
		t.Errorf("config %v", release.Config)
	}
	manifest.Workflows = nil
	want := &wire.RunManifest{
		Version: 1, Cwd: repo, Target: wire.ManifestTarget{Path: base + "workflow.fabro"}, ParentID: wire.Ptr(runID), Title: wire.Ptr("A release"),
		Goal: &wire.ManifestGoal{Type: "graph", Text: "Ship {{ inputs.tag }}"},
		Args: &wire.ManifestArgs{Model: "opus", DryRun: &no, Label: []string{"a=1", "b=2=3"},
			Input: []string{"big=9.223372036854776e+18", "n=3", "on=true", "ratio=2.0", `tag="v1 \"q\"\n"`}},
		Configs: []wire.ManifestConfig{
			{Type: "project", Path: wire.Ptr(filepath.Join(repo, ".fabro", "project.toml")), Source: wire.Ptr("_version = 1\n[run.metadata]\nteam = \"core\"\n")},
			{Type: "user", Path: wire.Ptr(filepath.Join(dir, "home", "settings.toml")), Source: wire.Ptr("_version = 1\n\n[environments]\n[environments.mine]\nprovider = 'local'\n\n[environments.mine.env]\nA = 'b'\n\n[run]\n[run.model]\nname = 'm'\n")},
		},
		AgentCommand: []string{"agent"},
	}
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Error(diff)
	}
	text, _ := json.Marshal(manifest)
	if strings.Contains(string(text), "top-secret") || strings.Contains(string(text), "fabro.example.com") || !strings.Contains(string(text), `"dry_run":false`) {
		t.Errorf("on the wire: %s", text)
	}
}

func TestBuildManifestFits(t *testing.T) {
	api := needOpenAPI(t)
	dir := tree(t, project)
	manifest, err := fabroapi.BuildManifest(t.Context(), envIn(dir), fabroapi.ManifestSpec{Workflow: "release", Cwd: filepath.Join(dir, "repo")})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(manifest)
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	if err := api.Validate("/components/schemas/RunManifest", value); err != nil {
		t.Error(err)
	}
}

func TestManifestGoals(t *testing.T) {
	dir := tree(t, project+`
-- repo/goal.md --
From a file.
-- repo/sub/goal.md --
From below.
-- repo/sub.toml --
[workflow]
graph = ".fabro/workflows/child/workflow.fabro"
[run]
working_dir = "sub"
-- repo/filed.toml --
[workflow]
graph = ".fabro/workflows/child/workflow.fabro"
[run]
goal = {file = "goal.md"}
`)
	tests := []struct {
		name string
		spec fabroapi.ManifestSpec
		want *wire.ManifestGoal
	}{
		{"text", fabroapi.ManifestSpec{Workflow: "release", Goal: "Mine"}, &wire.ManifestGoal{Type: "value", Text: "Mine"}},
		{"empty text on purpose", fabroapi.ManifestSpec{Workflow: "release", HasGoal: true}, &wire.ManifestGoal{Type: "value"}},
		{"file", fabroapi.ManifestSpec{Workflow: "release", GoalFile: "goal.md"}, &wire.ManifestGoal{Type: "file", Text: "From a file.\n"}},
		{"file from the working directory", fabroapi.ManifestSpec{Workflow: "sub.toml", GoalFile: "goal.md"}, &wire.ManifestGoal{Type: "file", Text: "From below.\n"}},
		{"file of the settings", fabroapi.ManifestSpec{Workflow: "filed.toml"}, &wire.ManifestGoal{Type: "file", Text: "From a file.\n"}},
		{"the graph's", fabroapi.ManifestSpec{Workflow: "release"}, &wire.ManifestGoal{Type: "graph", Text: "Ship {{ inputs.tag }}"}},
		{"none", fabroapi.ManifestSpec{Workflow: "child"}, nil},
		{"the user's workflow", fabroapi.ManifestSpec{Workflow: "mine"}, nil},
	}
	for _, test := range tests {
		test.spec.Cwd = filepath.Join(dir, "repo")
		manifest, err := fabroapi.BuildManifest(t.Context(), envIn(dir), test.spec)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, manifest.Goal); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		if manifest.Args != nil {
			t.Errorf("%s: args %v", test.name, manifest.Args)
		}
	}
}

func TestManifestErrors(t *testing.T) {
	dir := tree(t, project+`
-- repo/broken.fabro --
digraph Broken {
  start [shape=
}
-- repo/loose.fabro --
digraph Loose {
  start [shape=Mdiamond]
  a [shape=parallelogram]
  exit [shape=Msquare]
  start -> a -> exit
}
-- repo/missing.fabro --
digraph Missing {
  start [shape=Mdiamond]
  a [prompt="@nowhere.md"]
  exit [shape=Msquare]
  start -> a -> exit
}
`)
	type spec = fabroapi.ManifestSpec
	tests := []struct {
		name  string
		spec  spec
		fails []string
		rule  string // of a diagnostic
	}{
		{"unknown name", spec{Workflow: "releese"}, []string{"Unknown workflow 'releese'", "Did you mean 'release'?"}, ""},
		{"unknown file", spec{Workflow: "no.fabro"}, []string{"workflow not found: "}, ""},
		{"no such cwd", spec{Workflow: "release", Cwd: filepath.Join(dir, "none")}, []string{"is no directory"}, ""},
		{"cwd without a name in UTF-8", spec{Workflow: "release", Cwd: dir + "/\xff"}, []string{`\xff" has a name that is not UTF-8`}, ""},
		{"syntax", spec{Workflow: "broken.fabro"}, []string{"the workflow has an error", "broken.fabro:3:"}, "*"},
		{"lint", spec{Workflow: "loose.fabro"}, []string{"loose.fabro:3:", "command_requires_script"}, "command_requires_script"},
		{"missing file", spec{Workflow: "missing.fabro"}, []string{"missing.fabro:3:13", "nowhere.md", "no such file"}, "unresolved_file_ref"},
		{"missing goal file", spec{Workflow: "release", GoalFile: "none.md"}, []string{"failed to resolve --goal-file contents", "none.md"}, ""},
		{"input list", spec{Workflow: "release", Inputs: map[string]any{"x": []any{1}}}, []string{"input `x` does not support"}, ""},
		{"input null", spec{Workflow: "release", Inputs: map[string]any{"x": nil}}, []string{"input `x` cannot be null"}, ""},
		{"input infinite", spec{Workflow: "release", Inputs: map[string]any{"x": math.Inf(1)}}, []string{"outside TOML's supported range"}, ""},
		{"input name", spec{Workflow: "release", Inputs: map[string]any{"a=b": 1}}, []string{"must not be blank or contain `=`"}, ""},
		{"label name", spec{Workflow: "release", Labels: map[string]string{" ": ""}}, []string{"label name"}, ""},
	}
	for _, test := range tests {
		if test.spec.Cwd == "" {
			test.spec.Cwd = filepath.Join(dir, "repo")
		}
		_, err := fabroapi.BuildManifest(t.Context(), envIn(dir), test.spec)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		for _, want := range test.fails {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", test.name, err, want)
			}
		}
		var manifest *fabroapi.ManifestError
		if errors.As(err, &manifest) != (test.rule != "") {
			t.Errorf("%s: diagnostics: %v", test.name, err)
		}
		if test.rule != "" && !slices.ContainsFunc(manifest.Diagnostics, func(d wire.Diagnostic) bool {
			return (test.rule == "*" || d.Rule == test.rule) && d.Line != nil && d.Column != nil && d.SourcePath != nil
		}) {
			t.Errorf("%s: diagnostics %+v", test.name, manifest.Diagnostics)
		}
	}
}

// TestManifestLeavesToTheServer: what only a server knows is no error here.
func TestManifestLeavesToTheServer(t *testing.T) {
	dir := tree(t, project+`
-- repo/w.toml --
[workflow]
graph = ".fabro/workflows/child/workflow.fabro"
[run]
[run.metadata]
who = "{{ vars.WHO }}"
[run.environment]
id = "of-the-server"
[run.agent.mcps.x]
id = "of-the-server"
`)
	_, err := fabroapi.BuildManifest(t.Context(), envIn(dir), fabroapi.ManifestSpec{Workflow: "w.toml", Cwd: filepath.Join(dir, "repo"), Environment: "other"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestManifestRoots(t *testing.T) {
	dir := tree(t, project+`
-- repo/outgoal.toml --
[workflow]
graph = ".fabro/workflows/child/workflow.fabro"
[run]
goal = {file = "../elsewhere/goal.md"}
-- repo/outdir.toml --
[workflow]
graph = ".fabro/workflows/child/workflow.fabro"
[run]
working_dir = "../elsewhere"
-- elsewhere/w.fabro --
digraph W {
  start [shape=Mdiamond]
  exit  [shape=Msquare]
  start -> exit
}
`)
	repo := filepath.Join(dir, "repo")
	for link, target := range map[string]string{"out": filepath.Join(dir, "elsewhere"), "out.fabro": filepath.Join(dir, "elsewhere", "w.fabro"), "in": repo} {
		if err := os.Symlink(target, filepath.Join(repo, link)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	type spec = fabroapi.ManifestSpec
	tests := []struct {
		name  string
		spec  spec
		fails string
	}{
		{"inside", spec{Workflow: "release", Cwd: repo}, ""},
		{"a link that stays inside", spec{Workflow: "release", Cwd: filepath.Join(repo, "in")}, ""},
		{"cwd", spec{Workflow: "w.fabro", Cwd: filepath.Join(dir, "elsewhere")}, "cwd "},
		{"cwd that does not exist", spec{Workflow: "w.fabro", Cwd: filepath.Join(dir, "none")}, "is outside of the allowed directories"},
		{"cwd with dots", spec{Workflow: "w.fabro", Cwd: filepath.Join(repo, "..", "elsewhere")}, "cwd "},
		{"cwd behind a link", spec{Workflow: "w.fabro", Cwd: filepath.Join(repo, "out")}, "cwd "},
		{"cwd next to it with the same beginning", spec{Workflow: "w.fabro", Cwd: repo + "2"}, "cwd "},
		{"workflow", spec{Workflow: filepath.Join(dir, "elsewhere", "w.fabro"), Cwd: repo}, "workflow "},
		{"workflow behind a link", spec{Workflow: "out.fabro", Cwd: repo}, "workflow "},
		{"workflow of the user", spec{Workflow: "mine", Cwd: repo}, "workflow "},
		{"goal file", spec{Workflow: "release", Cwd: repo, GoalFile: filepath.Join(dir, "elsewhere", "goal.md")}, "goal file "},
		{"goal file with dots", spec{Workflow: "release", Cwd: repo, GoalFile: "../elsewhere/goal.md"}, "goal file "},
		{"goal file behind a link", spec{Workflow: "release", Cwd: repo, GoalFile: "out/goal.md"}, "goal file "},
		{"goal file of the settings", spec{Workflow: "outgoal.toml", Cwd: repo}, "goal file "},
		{"working directory of the settings", spec{Workflow: "outdir.toml", Cwd: repo}, "working directory "},
	}
	for _, test := range tests {
		test.spec.Roots = []string{repo}
		_, err := fabroapi.BuildManifest(t.Context(), envIn(dir), test.spec)
		if (err != nil) != (test.fails != "") || err != nil && (!strings.HasPrefix(err.Error(), test.fails) && !strings.Contains(err.Error(), test.fails) || !strings.Contains(err.Error(), "is outside of the allowed directories")) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.fails)
		}
	}
	if _, err := fabroapi.BuildManifest(t.Context(), envIn(dir), spec{Workflow: "release", Cwd: repo, Roots: []string{filepath.Join(dir, "none")}}); err == nil || !strings.Contains(err.Error(), "--root") {
		t.Errorf("a root that does not exist: %v", err)
	}
}

func TestManifestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here: ", err)
	}
	dir := tree(t, project)
	repo := filepath.Join(dir, "repo")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	build := func() *wire.ManifestGit {
		t.Helper()
		manifest, err := fabroapi.BuildManifest(t.Context(), envIn(dir), fabroapi.ManifestSpec{Workflow: "release", Cwd: repo})
		if err != nil {
			t.Fatal(err)
		}
		return manifest.Git
	}
	check := func(what string, want *wire.ManifestGit) {
		t.Helper()
		got := build()
		if got != nil {
			if want.SHA != nil && (got.SHA == nil || len(*got.SHA) != 40) {
				t.Errorf("%s: sha %v", what, got.SHA)
			}
			got.SHA, want.SHA = nil, nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if got := build(); got != nil {
		t.Errorf("without a repository: %v", got)
	}
	run("init", "-q", "-b", "trunk")
	if got := build(); got != nil {
		t.Errorf("without a commit: %v", got)
	}
	run("add", ".")
	run("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
	sha := wire.Ptr("x")
	check("clean", &wire.ManifestGit{Branch: "trunk", Dirty: "clean", SHA: sha})
	run("remote", "add", "origin", "git@github.com:acme/app.git")
	if err := os.WriteFile(filepath.Join(repo, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check("dirty", &wire.ManifestGit{Branch: "trunk", Dirty: "dirty", OriginURL: "https://github.com/acme/app", SHA: sha})
	run("checkout", "-q", "--detach")
	check("detached", &wire.ManifestGit{Branch: "HEAD", Dirty: "dirty", OriginURL: "https://github.com/acme/app", SHA: sha})
	for remote, want := range map[string]string{
		"https://user:secret@host.example/a/b.git/": "https://host.example/a/b",
		"ssh://git@host.example:2222/a/b":           "https://host.example/a/b",
		"host.example:a/b.git":                      "https://host.example/a/b",
		"/srv/git/b.git":                            "/srv/git/b",
	} {
		run("remote", "set-url", "origin", remote)
		if got := build(); got.OriginURL != want {
			t.Errorf("%s: %s, want %s", remote, got.OriginURL, want)
		}
	}
	toml := filepath.Join(repo, ".fabro", "project.toml")
	if err := os.WriteFile(toml, []byte("[run.scm]\nprovider = \"GitHub\"\nowner = \"o\"\nrepository = \"r\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := build(); got.OriginURL != "https://github.com/o/r" {
		t.Errorf("[run.scm]: %s", got.OriginURL)
	}
}
