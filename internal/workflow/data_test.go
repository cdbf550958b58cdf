package workflow

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// referenceDir is the folder of real workflow files.
func referenceDir(t testing.TB) string {
	dir := os.Getenv("FABRO_REFERENCE_DATA")
	if dir == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the real workflow files are not here")
	}
	return filepath.Join(dir, "data", "workflows")
}

func realFiles(t testing.TB, dir string) []string {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".fabro" {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// findings writes errors and warnings, and with infos everything, one a line.
func findings(list []Diagnostic, infos bool) []string {
	lines := []string{}
	for _, d := range list {
		if infos || d.Severity != SeverityInfo {
			about := d.NodeID
			if about == "" && d.Edge != nil {
				about = d.Edge[0] + "->" + d.Edge[1]
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d:%d %s %s %s", d.Line, d.Column, d.Severity, d.Rule, about)))
		}
	}
	return lines
}

// compileFile bundles and compiles a real file as `fabro validate` does.
func compileFile(t testing.TB, dir, file string) (*Compiled, []Diagnostic, error) {
	t.Helper()
	loc, err := Locate(file, dir, "")
	if err != nil {
		return nil, nil, err
	}
	b, err := BundleFiles(loc, dir, BundleOptions{})
	if err != nil {
		return nil, nil, err
	}
	return Compile(*b, CompileOptions{})
}

// Every real file parses and compiles. The findings are those known from Fabro;
// files without an entry have none.
func TestRealFiles(t *testing.T) {
	dir := referenceDir(t)
	gate := func(line int, node string) string {
		return fmt.Sprintf("%d:5 warning goal_gate_has_retry %s", line, node)
	}
	want := map[string][]string{
		"test/branching.fabro":      {gate(9, "implement")},
		"test/edge_only_node.fabro": {"8:14 error edge_target_exists misspelled_node"},
		"test/invalid.fabro":        {"1:9 error start_node", "5:5 error exit_no_outgoing exit"},
		"test/templated_unbound.fabro": {
			"2:26 warning template_undefined_variable", "7:44 warning template_undefined_variable work",
		},
		"test/templated_unbound_imported/workflow.fabro": {"1:12 warning template_undefined_variable work"},
		"test/templated_unbound_partial/workflow.fabro":  {"1:4 warning template_undefined_variable test_imported_include"},
		"project-workflows/smoke/workflow.fabro": {
			gate(8, "toolchain"), gate(9, "compile_rust"), gate(10, "compile_typescript"),
			gate(11, "lint_rust"), gate(12, "test_rust"), gate(13, "test_typescript"),
		},
	}
	fails := map[string]string{
		"test/dot-compatibility/subworkflow-manager.fabro": `child workflow "implement-and-test.fabro": workflow not found`,
		"test/templates/missing_dependency/workflow.fabro": "missing template dependency `missing.tpl.md`",
	}
	files := realFiles(t, dir)
	if len(files) < 40 {
		t.Fatalf("only %d files", len(files))
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			c, list, err := compileFile(t, dir, file)
			if fails[file] != "" {
				if err == nil || !strings.Contains(err.Error(), fails[file]) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			expected := want[file]
			if expected == nil {
				expected = []string{}
			}
			if diff := cmp.Diff(expected, findings(list, false)); diff != "" {
				t.Error(diff)
			}
			if DrawText(c.Graph) == "" || DOT(c.Graph) == "" || FormatDiagnostics(list) == "" && len(list) > 0 {
				t.Error("nothing is drawn")
			}
		})
	}
}

// Sizes known from Fabro's own tests.
func TestRealFileSizes(t *testing.T) {
	dir := referenceDir(t)
	for file, want := range map[string][2]int{
		"test/simple.fabro": {4, 3}, "test/branching.fabro": {6, 6}, "test/invalid.fabro": {2, 1}, "test/edge_only_node.fabro": {2, 2},
	} {
		c, _, err := compileFile(t, dir, file)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{len(c.Graph.Nodes), len(c.Graph.Edges)}; got != want {
			t.Errorf("%s: %v nodes and edges, want %v", file, got, want)
		}
	}
}

// What real files become.
func TestRealFileContents(t *testing.T) {
	dir := referenceDir(t)
	prompt := func(file, node, key string) string {
		c, list, err := compileFile(t, dir, file)
		if err != nil || HasErrors(list) {
			t.Fatalf("%s: %v %v", file, err, list)
		}
		if node == "" {
			return c.Goal
		}
		text, _ := c.Graph.Node(node).Attrs.String(key)
		return text
	}
	cases := []struct{ name, file, node, key, want string }{
		{"inputs of the sibling workflow.toml", "test/templated_inputs/workflow.fabro", "work", "prompt", "Work in /srv/app"},
		{"goal with an input", "test/templated_inputs/workflow.fabro", "", "", "Demo /srv/app"},
		{"goal file with an include", "test/templates/static_dependencies/workflow.fabro", "", "", "Ship the include fix."},
		{"prompt file with an include", "test/templates/static_dependencies/workflow.fabro", "file_prompt", "prompt", "Use the included prompt."},
		{"inline include", "test/templates/static_dependencies/workflow.fabro", "inline_prompt", "prompt", "Use the inline include."},
		{"include from a directory beside", "test/templates/sibling_partial/workflow.fabro", "audit", "prompt", "Audit this change:\n\nShared audit checklist."},
		{"trap: $goal is not expanded", "test/branching.fabro", "plan", "prompt", "Plan the implementation for: $goal"},
		{"trap: undefined variable renders as nothing", "test/templated_unbound.fabro", "work", "prompt", "Work in "},
		{"stylesheet by id", "test/styled.fabro", "critical_review", "model", "gpt-5.2"},
		{"stylesheet by class", "test/styled.fabro", "implement", "model", "claude-opus-4-6"},
		{"stylesheet for all", "test/styled.fabro", "plan", "model", "claude-sonnet-4-5"},
		{"backslash at the end of a line stays", "test/docs/workflows/transitions/transition-patterns.fabro", "review", "prompt",
			"Review the implementation for correctness and \\\n            code quality. If changes are needed, respond with: \\\n            {\"preferred_next_label\": \"fix\"}. If everything \\\n            looks good, respond with: \\\n            {\"preferred_next_label\": \"approve\"}."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, prompt(c.file, c.node, c.key)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("subgraph label is a class of its nodes", func(t *testing.T) {
		src, err := os.ReadFile(filepath.Join(dir, "test/dot-compatibility/subworkflow-manager.fabro"))
		if err != nil {
			t.Fatal(err)
		}
		g := mustParse(t, string(src))
		got := map[string][]string{}
		for _, n := range g.Nodes {
			got[n.ID] = n.Classes
		}
		want := map[string][]string{"start": nil, "exit": nil, "plan": {"delivery"}, "impl": {"delivery"}, "review": nil}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
