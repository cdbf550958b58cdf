package workflow

import (
	"path/filepath"
	"strings"
	"testing"
)

// marked puts a byte-order mark before every text.
func marked(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[name] = byteOrderMark + text
	}
	return out
}

// A byte-order mark in any file that a workflow is made of changes nothing.
func TestMarkedFiles(t *testing.T) {
	const root = ".fabro/workflows/main/"
	dir := tree(t, marked(map[string]string{
		".fabro/project.toml":                   "[run.inputs]\nname = \"Ada\"\n",
		root + "workflow.toml":                  "[workflow]\ndescription = \"Marked\"\n[run.environment.image]\ndockerfile = {path=\"Dockerfile\"}\n",
		root + "Dockerfile":                     "FROM w",
		root + "workflow.fabro":                 `digraph Root { graph [goal="@goal.md"] start [shape=Mdiamond] exit [shape=Msquare] a [prompt="@plan.md", output_schema="@out.json"] b [import="./shared.fabro"] c [shape=house, stack.child_workflow="../child/workflow.fabro"] d [prompt="{% include 'inline.md' %}"] start -> a -> b -> c -> d -> exit }`,
		root + "goal.md":                        "Ship",
		root + "plan.md":                        "Plan for {{ inputs.name }}",
		root + "inline.md":                      "inline",
		root + "out.json":                       `{"type":"object"}`,
		root + "shared.fabro":                   `digraph Shared { start [shape=Mdiamond] exit [shape=Msquare] s [prompt="shared"] start -> s -> exit }`,
		".fabro/workflows/child/workflow.fabro": smallGraph,
		"user.toml":                             "[run]\ngoal = \"unused\"\n",
	}))
	bundle, err := bundleOf(t, dir, "main", BundleOptions{UserSettings: filepath.Join(dir, "user.toml")})
	if err != nil {
		t.Fatal(err)
	}
	for key, w := range bundle.Workflows {
		texts := map[string]string{key: w.Source, w.ConfigPath: w.ConfigSource}
		for name, file := range w.Files {
			texts[name] = file
		}
		for name, text := range texts {
			if strings.Contains(text, byteOrderMark) {
				t.Errorf("%s travels with its mark: %q", name, text)
			}
		}
	}
	for _, c := range bundle.Configs {
		if strings.Contains(c.Source, byteOrderMark) {
			t.Errorf("%s travels with its mark: %q", c.Path, c.Source)
		}
	}
	compiled, findings, err := Compile(*bundle, CompileOptions{})
	if err != nil || HasErrors(findings) {
		t.Fatalf("%v %v", findings, err)
	}
	if got, _ := compiled.Graph.Node("a").Attrs.String("prompt"); got != "Plan for Ada" {
		t.Errorf("the prompt is %q", got)
	}
}

// What comes with a mark from another client, or in another encoding, is refused by name, or read.
func TestMarkNamed(t *testing.T) {
	_, err := Parse("w.fabro", []byte(byteOrderMark+smallGraph))
	if err == nil || !strings.Contains(err.Error(), "byte-order mark") {
		t.Errorf("a marked graph: %v", err)
	}
	if _, err := parseSettings("workflow.toml", byteOrderMark+"[workflow]\nname = \"x\"\n", true); err != nil {
		t.Errorf("marked settings: %v", err)
	}
	for name, text := range map[string]string{"little.fabro": "\xff\xfed\x00i\x00", "big.fabro": "\xfe\xff\x00d\x00i"} {
		dir := tree(t, map[string]string{name: text})
		if _, err := bundleOf(t, dir, name, BundleOptions{}); err == nil || !strings.Contains(err.Error(), name+": it is in UTF-16, not in UTF-8; save it as UTF-8") {
			t.Errorf("%v", err)
		}
	}
}
