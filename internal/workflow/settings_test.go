package workflow

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func layers(user, project, flow string, args Args) Bundle {
	return Bundle{
		Target:    "w.fabro",
		Workflows: map[string]BundleWorkflow{"w.fabro": {Source: smallGraph, ConfigPath: "workflow.toml", ConfigSource: flow}},
		Configs:   []BundleConfig{{ConfigProject, "/p/.fabro/project.toml", project}, {ConfigUser, "/u/settings.toml", user}},
		Args:      args,
	}
}

func TestSettingsDefaults(t *testing.T) {
	got, err := MergeSettings(Bundle{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		GraphFile: "workflow.fabro", Mode: "normal", Approval: "prompt", Metadata: map[string]string{}, Inputs: map[string]any{},
		Prepare: Prepare{Timeout: 5 * time.Minute}, Environment: Environment{ID: "default", Provider: "docker", Env: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each layer wins over the ones below it.
func TestSettingsLayers(t *testing.T) {
	got, err := MergeSettings(layers(`
_version = 1
[cli.target]
type = "http"
[anything.newer]
x = 1
[run]
goal = "user"
working_dir = "user"
metadata = {team = "user", kept = "no"}
inputs = {a = 1, b = 2}
[run.model]
name = "user-model"
provider = "user-provider"
[run.execution]
approval = "auto"
[environments.lab]
provider = "local"
env = {A = "user", B = "user"}
`, `
[project]
name = "P"
[run]
goal = {file = "goal.md"}
metadata = {team = "project"}
inputs = {b = 3, c = "x", d = 1.5, e = true}
environment = {id = "lab"}
[run.prepare]
timeout = "90s"
steps = [{script = "make deps"}, {command = ["npm", "ci"], env = {CI = "{{ vars.ci }}"}}]
[environments.lab.env]
B = "project"
[environments.lab.lifecycle]
preserve = true
auto_stop = "10m"
`, `
[workflow]
name = "Release"
description = "ships"
graph = "w.fabro"
[run]
working_dir = "sub/{{ vars.dir }}"
[run.model]
name = "flow-model"
[run.environment.env]
C = "flow"
`, Args{
		DryRun: ptr(true), AutoApprove: ptr(false), Model: "arg-model", PreserveSandbox: ptr(false),
		Inputs: []string{"c=from=args", "n=7", `s="quoted"`, "f=0.25", "t=true", "u=2024-01-02x", "empty="},
	}), map[string]string{"ci": "1", "dir": "d"})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		WorkflowName: "Release", Description: "ships", GraphFile: "w.fabro", GoalFile: "goal.md", GoalFrom: "/p/.fabro/project.toml",
		WorkingDir: "sub/d", Metadata: map[string]string{"team": "project"},
		Inputs: map[string]any{"b": int64(3), "c": "from=args", "d": 1.5, "e": true, "n": int64(7), "s": "quoted", "f": 0.25, "t": true, "u": "2024-01-02x", "empty": ""},
		Model:  Model{Name: "arg-model", Provider: "user-provider"}, Mode: "dry_run", Approval: "prompt",
		Prepare: Prepare{Timeout: 90 * time.Second, Steps: []PrepareStep{
			{Script: "make deps", Env: map[string]string{}}, {Command: []string{"npm", "ci"}, Env: map[string]string{"CI": "1"}},
		}},
		Environment: Environment{ID: "lab", Provider: "local", Env: map[string]string{"A": "user", "B": "project", "C": "flow"}, Preserve: ptr(false), AutoStop: "10m"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsLabelsReplace(t *testing.T) {
	got, err := MergeSettings(layers("", "run.metadata = {a = \"1\"}", "", Args{Labels: []string{"team=core", "x=a=b"}, Environment: "local"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "core", "x": "a=b"}, got.Metadata); diff != "" {
		t.Error(diff)
	}
	if got.Environment.ID != "local" || got.Environment.Provider != "local" {
		t.Errorf("environment %+v", got.Environment)
	}
}

func TestSettingsErrors(t *testing.T) {
	cases := []struct{ name, toml, want string }{
		{"not TOML", "[run", "workflow.toml:1:4: not valid TOML"},
		{"old version key", "version = 1", "workflow.toml: settings files use `_version`, not `version`; rename the key"},
		{"newer version", "_version = 2", "workflow.toml: settings version 2 is not known here; this program knows version 1"},
		{"unknown table", "[runs]", "workflow.toml: unknown key `runs` at the top level; did you mean `run`?"},
		{"unknown key", "[run]\ninput = {}", "workflow.toml: unknown key `input` in [run]; did you mean `inputs`?"},
		{"unknown mode", "[run.execution]\nmode = \"dry-run\"", `workflow.toml: run.execution.mode: "dry-run" is none of normal, dry_run`},
		{"wrong type", "[run]\nworking_dir = 5", "workflow.toml:2:"},
		{"an input that is a list", "[run.inputs]\nx = [1]", "workflow.toml: run.inputs.x: an input is a string, a number or a boolean"},
		{"an input that is a date", "[run.inputs]\nx = 2024-01-02", "workflow.toml: run.inputs.x: an input is a string, a number or a boolean"},
		{"a goal that is neither", "[run]\ngoal = 5", "workflow.toml: run.goal: expected a string or {file = \"…\"}"},
		{"a goal table with more", "[run]\ngoal = {file = \"x\", text = \"y\"}", "workflow.toml: run.goal: a table has exactly one key"},
		{"a timeout without unit", "[run.prepare]\ntimeout = \"5\"", `workflow.toml: run.prepare.timeout: "5" is no duration`},
		{"a step with both", "[[run.prepare.steps]]\nscript = \"x\"\ncommand = [\"y\"]", "workflow.toml: run.prepare.steps[0]: a step has either a script or a command"},
		{"unknown environment", "[run.environment]\nid = \"moon\"", `run.environment.id: no environment "moon" is defined`},
		{"cwd of an environment", "[environments.x]\ncwd = \"/\"", "workflow.toml: environments.x.cwd can only be set on the server"},
		{"unset variable", "[run]\nworking_dir = \"{{ vars.no }}\"", `run.working_dir: variable "no", which {{ vars.no }} refers to, is not set`},
		{"process environment", "[run.metadata]\na = \"{{ env.HOME }}\"", "run.metadata.a: {{ env.HOME }} is not supported: settings do not read the process environment"},
		{"secrets", "[run.environment.env]\nA = \"{{ secrets.T }}\"", "environment env.A: {{ secrets.T }} is not supported by the embedded server"},
		{"goal in settings", "[run]\nworking_dir = \"{{ goal }}\"", "run.working_dir: {{ goal }} is not supported in settings"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := MergeSettings(layers("", "", c.toml, Args{}), nil)
			var settings *SettingsError
			if !errors.As(err, &settings) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s…", err, c.want)
			}
		})
	}
	for _, args := range []Args{{Labels: []string{"x"}}, {Inputs: []string{"=1"}}, {Inputs: []string{"x=[1]"}}, {Inputs: []string{"x=2024-01-02"}}, {Environment: "moon"}} {
		if _, err := MergeSettings(layers("", "", "", args), nil); err == nil {
			t.Errorf("%+v is accepted", args)
		}
	}
}

func TestInputsAreOneLine(t *testing.T) {
	for text, want := range map[string]any{
		"1\nx = 2": "1\nx = 2", "1 # one": int64(1), "a b": "a b", `"a\nb"`: "a\nb", "": "", "inf": "inf", "nan": "nan", "-1.5e3": -1500.0,
	} {
		got, err := ParseInput(text)
		if err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
}
