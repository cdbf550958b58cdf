package workflow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smallGraph = `digraph Small { start [shape=Mdiamond] exit [shape=Msquare] start -> exit }`

// tree writes files below a new directory and returns its real path.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLocate(t *testing.T) {
	dir := tree(t, map[string]string{
		"p/.fabro/project.toml":                        "_version = 1\n",
		"p/.fabro/workflows/hello/workflow.toml":       "_version = 1\n",
		"p/.fabro/workflows/hello/workflow.fabro":      smallGraph,
		"p/.fabro/workflows/release/workflow.toml":     "[workflow]\ngraph = \"graphs/main.fabro\"\n",
		"p/.fabro/workflows/release/graphs/main.fabro": smallGraph,
		"p/.fabro/workflows/bare/workflow.fabro":       smallGraph,
		"p/.fabro/workflows/gone/workflow.toml":        "[workflow]\ngraph = \"missing.fabro\"\n",
		"p/.fabro/workflows/broken/workflow.toml":      "[workflow\n",
		"p/.fabro/workflows/broken/workflow.fabro":     smallGraph,
		"p/deep/below/x":                               "",
		"p/loose.fabro":                                smallGraph,
		"home/workflows/mine/workflow.toml":            "",
		"home/workflows/mine/workflow.fabro":           smallGraph,
		"outside/flow.fabro":                           smallGraph,
		"outside/flows/a/workflow.toml":                "",
		"outside/flows/a/workflow.fabro":               smallGraph,
		"unmarked/.fabro/workflows/a/workflow.fabro":   smallGraph,
		"unmarked/below/x":                             "",
	})
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	cases := []struct {
		name, selector, cwd string
		want                Location
		fails               string
	}{
		{name: "a name", selector: "hello", cwd: "p", want: Location{Graph: at("p/.fabro/workflows/hello/workflow.fabro"), Config: at("p/.fabro/workflows/hello/workflow.toml"), Name: "hello", Slug: "hello"}},
		{name: "a name from below the project", selector: "hello", cwd: "p/deep/below", want: Location{Graph: at("p/.fabro/workflows/hello/workflow.fabro"), Config: at("p/.fabro/workflows/hello/workflow.toml"), Name: "hello", Slug: "hello"}},
		{name: "a name whose toml names the graph", selector: "release", cwd: "p", want: Location{Graph: at("p/.fabro/workflows/release/graphs/main.fabro"), Config: at("p/.fabro/workflows/release/workflow.toml"), Name: "release", Slug: "main"}},
		{name: "a name without toml", selector: "bare", cwd: "p", want: Location{Graph: at("p/.fabro/workflows/bare/workflow.fabro"), Name: "bare", Slug: "bare"}},
		{name: "a name at home", selector: "mine", cwd: "p", want: Location{Graph: at("home/workflows/mine/workflow.fabro"), Config: at("home/workflows/mine/workflow.toml"), Name: "mine", Slug: "mine"}},
		{name: "a name at home outside of projects", selector: "mine", cwd: "outside", want: Location{Graph: at("home/workflows/mine/workflow.fabro"), Config: at("home/workflows/mine/workflow.toml"), Name: "mine", Slug: "mine"}},
		{name: "a graph", selector: "loose.fabro", cwd: "p", want: Location{Graph: at("p/loose.fabro"), Name: "loose", Slug: "loose"}},
		{name: "a graph beside its toml", selector: ".fabro/workflows/hello/workflow.fabro", cwd: "p", want: Location{Graph: at("p/.fabro/workflows/hello/workflow.fabro"), Config: at("p/.fabro/workflows/hello/workflow.toml"), Name: "hello", Slug: "hello"}},
		{name: "a toml", selector: "../p/.fabro/workflows/release/workflow.toml", cwd: "outside", want: Location{Graph: at("p/.fabro/workflows/release/graphs/main.fabro"), Config: at("p/.fabro/workflows/release/workflow.toml"), Name: "main", Slug: "main"}},
		{name: "a missing graph", selector: "no.fabro", cwd: "p", fails: "workflow not found: " + at("p/no.fabro")},
		{name: "a toml whose graph is missing", selector: "gone", cwd: "p", fails: "workflow not found: " + at("p/.fabro/workflows/gone/missing.fabro")},
		{name: "a directory as a graph", selector: ".fabro", cwd: "p", fails: "workflow not found: " + at("p/.fabro") + "; it is a directory: name a workflow or its file"},
		{name: "an unknown name with a near one", selector: "helo", cwd: "p", fails: "Unknown workflow 'helo'\n\nAvailable workflows: bare, hello, mine, release\n\nDid you mean 'hello'?"},
		{name: "an unknown name with none near", selector: "zzzzzzz", cwd: "p", fails: "Unknown workflow 'zzzzzzz'\n\nAvailable workflows: bare, hello, mine, release"},
		{name: "an unknown name outside of projects", selector: "hello", cwd: "outside", fails: "workflow not found: " + at("outside/hello") + "; a name is looked for in a project, which this is not (no .fabro/project.toml here or above), and in " + at("home/workflows")},
		{name: "a directory outside of projects", selector: "flows/a", cwd: "outside", fails: "workflow not found: " + at("outside/flows/a") + "; it is a directory: name the file flows/a/workflow.toml"},
		{name: "a directory from a project", selector: ".fabro/workflows/bare", cwd: "p", fails: "workflow not found: " + at("p/.fabro/workflows/bare") + "; it is a directory: name the file .fabro/workflows/bare/workflow.fabro"},
		{name: "a name where no project is", selector: "a", cwd: "unmarked/below", fails: "workflow not found: " + at("unmarked/below/a") + "; " + at("unmarked") + " has a workflow of that name, but no .fabro/project.toml (it may be empty), which makes a directory a project"},
		{name: "a name that climbs", selector: "../../../outside/flow", cwd: "p", fails: "Unknown workflow '../../../outside/flow'\n\nAvailable workflows: bare, hello, mine, release"},
		{name: "home by its sign", selector: "~/x.fabro", cwd: "p", fails: "unsupported manifest workflow reference: ~/x.fabro (write the home directory out)"},
		{name: "nothing", selector: " ", cwd: "p", fails: "no workflow was named; give a name or the path of a .fabro file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Locate(c.selector, at(c.cwd), at("home"))
			if c.fails != "" {
				var locate *LocateError
				if !errors.As(err, &locate) {
					t.Fatalf("error %v", err)
				}
				if diff := cmp.Diff(c.fails, err.Error()); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a broken toml", func(t *testing.T) {
		_, err := Locate("broken", at("p"), "")
		var settings *SettingsError
		if !errors.As(err, &settings) || settings.Line == 0 || !strings.Contains(err.Error(), "Failed to parse run config TOML") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a toml of the old form", func(t *testing.T) {
		old := tree(t, map[string]string{"run.toml": "version = 1\ngraph = \"w.fabro\"\n", "w.fabro": smallGraph})
		_, err := Locate("run.toml", old, "")
		if err == nil || !strings.Contains(err.Error(), "use `_version`, not `version`") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("an empty project", func(t *testing.T) {
		empty := tree(t, map[string]string{".fabro/project.toml": ""})
		_, err := Locate("x", empty, "")
		want := "Unknown workflow 'x'\n\nNo workflows found in " + filepath.Join(empty, ".fabro", "workflows")
		if err == nil || err.Error() != want {
			t.Errorf("error %v", err)
		}
	})
}
