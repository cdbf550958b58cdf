package workflow

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// defaultEnvironments are the two environments every Fabro server knows without
// any file.
var defaultEnvironments = map[string]string{"default": "docker", "local": "local"}

// MergeSettings merges the settings files of a bundle for its target workflow
// and puts the arguments on top. Errors are *SettingsError, joined when there
// are several.
//
// vars are the values of `{{ vars.NAME }}` tokens in the settings.
func MergeSettings(b Bundle, vars map[string]string) (Settings, error) {
	return mergeSettings(b, vars, false)
}

// mergeSettings with forClient merges what a client needs to know (goal, working
// directory) and leaves to the server what only the server can judge: unknown
// keys, environments, variables.
func mergeSettings(b Bundle, vars map[string]string, forClient bool) (Settings, error) {
	m := merger{
		vars: vars, lenient: forClient,
		settings: Settings{
			GraphFile: "workflow.fabro", Mode: "normal", Approval: "prompt",
			Metadata: map[string]string{}, Inputs: map[string]any{}, Prepare: Prepare{Timeout: 5 * time.Minute},
			Environment: Environment{ID: "default", Env: map[string]string{}},
		},
		environments: map[string]Environment{},
	}
	for id, provider := range defaultEnvironments {
		m.environments[id] = Environment{Provider: provider, Env: map[string]string{}}
	}
	for _, kind := range []string{ConfigUser, ConfigProject} {
		for _, c := range b.Configs {
			if c.Type == kind {
				m.file(c.Path, c.Source, kind == ConfigProject)
			}
		}
	}
	if w := b.Workflows[b.Target]; w.ConfigPath != "" {
		m.file(w.ConfigPath, w.ConfigSource, true)
	}
	m.args(b.Args)
	if !forClient {
		m.environment()
		m.interpolate()
	}
	return m.settings, errors.Join(m.errs...)
}

type merger struct {
	settings     Settings
	environments map[string]Environment
	overrides    []environmentTable // of [run.environment], lowest layer first
	vars         map[string]string
	lenient      bool
	errs         []error
}

func (m *merger) fail(path, format string, args ...any) {
	m.errs = append(m.errs, &SettingsError{Path: path, Message: fmt.Sprintf(format, args...)})
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (m *merger) file(path, source string, strict bool) {
	f, err := parseSettings(path, source, strict && !m.lenient)
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	s, run := &m.settings, &f.Run
	set(&s.WorkflowName, f.Workflow.Name)
	set(&s.Description, f.Workflow.Description)
	set(&s.GraphFile, f.Workflow.Graph)
	m.goal(path, run.Goal)
	set(&s.WorkingDir, run.WorkingDir)
	if len(run.Metadata) > 0 {
		s.Metadata = maps.Clone(run.Metadata)
	}
	if run.Inputs != nil {
		s.Inputs = map[string]any{}
		for name, v := range run.Inputs {
			if !isScalar(v) {
				m.fail(path, "run.inputs.%s: an input is a string, a number or a boolean", name)
				continue
			}
			s.Inputs[name] = v
		}
	}
	set(&s.Model.Name, run.Model.Name)
	set(&s.Model.Provider, run.Model.Provider)
	m.choice(path, "run.execution.mode", &s.Mode, run.Execution.Mode, "normal", "dry_run")
	m.choice(path, "run.execution.approval", &s.Approval, run.Execution.Approval, "prompt", "auto")
	m.prepare(path, run)
	set(&s.Environment.ID, run.Environment.ID)
	m.overrides = append(m.overrides, run.Environment.environmentTable)
	for id, t := range f.Environments {
		if t.Cwd != nil && !m.lenient {
			m.fail(path, "environments.%s.cwd can only be set on the server; use run.working_dir instead", id)
			continue
		}
		e, known := m.environments[id]
		if !known {
			e.Env = map[string]string{}
		}
		e.merge(t)
		m.environments[id] = e
	}
}

// isScalar reports whether a TOML value can be an input. Infinity and NaN cannot:
// JSON has no form for them.
func isScalar(v any) bool {
	switch v := v.(type) {
	case string, int64, bool:
		return true
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	}
	return false
}

func (m *merger) goal(path string, goal any) {
	s := &m.settings
	switch g := goal.(type) {
	case nil:
	case string:
		s.Goal, s.GoalFile, s.GoalFrom = g, "", path
	case map[string]any:
		file, ok := g["file"].(string)
		if !ok || len(g) != 1 || file == "" {
			m.fail(path, "run.goal: a table has exactly one key, `file`, with a path")
			return
		}
		s.Goal, s.GoalFile, s.GoalFrom = "", file, path
	default:
		m.fail(path, "run.goal: expected a string or {file = \"…\"}")
	}
}

func (m *merger) choice(path, key string, to *string, value *string, choices ...string) {
	if value == nil {
		return
	}
	for _, c := range choices {
		if *value == c {
			*to = c
			return
		}
	}
	m.fail(path, "%s: %q is none of %s", key, *value, strings.Join(choices, ", "))
}

func (m *merger) prepare(path string, run *runTable) {
	s := &m.settings
	if run.Prepare.Timeout != nil {
		d, ok := parseDuration(*run.Prepare.Timeout)
		if !ok {
			m.fail(path, "run.prepare.timeout: %q is no duration; write a whole number with ms, s, m, h or d", *run.Prepare.Timeout)
		}
		s.Prepare.Timeout = d
	}
	if run.Prepare.Steps == nil {
		return
	}
	s.Prepare.Steps = nil
	for i, raw := range run.Prepare.Steps {
		step := PrepareStep{Env: raw.Env}
		if raw.Script != nil {
			step.Script = *raw.Script
		}
		switch c := raw.Command.(type) {
		case nil:
		case string:
			step.Command = []string{c}
		case []any:
			for _, word := range c {
				text, ok := word.(string)
				if !ok {
					m.fail(path, "run.prepare.steps[%d].command: expected strings", i)
					return
				}
				step.Command = append(step.Command, text)
			}
		default:
			m.fail(path, "run.prepare.steps[%d].command: expected a list of strings", i)
			return
		}
		if (strings.TrimSpace(step.Script) == "") == (len(step.Command) == 0) {
			m.fail(path, "run.prepare.steps[%d]: a step has either a script or a command", i)
			return
		}
		s.Prepare.Steps = append(s.Prepare.Steps, step)
	}
}

func (e *Environment) merge(t environmentTable) {
	set(&e.Provider, t.Provider)
	set(&e.Cwd, t.Cwd)
	if t.Env != nil {
		e.Env = maps.Clone(e.Env)
		maps.Copy(e.Env, t.Env)
	}
	if t.Lifecycle.Preserve != nil {
		e.Preserve = t.Lifecycle.Preserve
	}
	if t.Lifecycle.StopOnTerminal != nil {
		e.StopOnTerminal = t.Lifecycle.StopOnTerminal
	}
	set(&e.AutoStop, t.Lifecycle.AutoStop)
}

func (m *merger) args(a Args) {
	s := &m.settings
	if a.DryRun != nil {
		s.Mode = map[bool]string{true: "dry_run", false: "normal"}[*a.DryRun]
	}
	if a.AutoApprove != nil {
		s.Approval = map[bool]string{true: "auto", false: "prompt"}[*a.AutoApprove]
	}
	if a.Model != "" {
		s.Model.Name = a.Model
	}
	if a.Provider != "" {
		s.Model.Provider = a.Provider
	}
	if a.Environment != "" {
		s.Environment.ID = a.Environment
	}
	if len(a.Labels) > 0 {
		s.Metadata = map[string]string{}
	}
	for _, label := range a.Labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			m.fail("", "label %q: expected key=value", label)
			continue
		}
		s.Metadata[key] = value
	}
	for _, input := range a.Inputs {
		key, text, ok := strings.Cut(input, "=")
		if !ok || key == "" {
			m.fail("", "input %q: expected key=value", input)
			continue
		}
		value, err := ParseInput(text)
		if err != nil {
			m.fail("", "input %q: %s", key, err)
			continue
		}
		s.Inputs[key] = value
	}
	if a.PreserveSandbox != nil {
		t := environmentTable{}
		t.Lifecycle.Preserve = a.PreserveSandbox
		m.overrides = append(m.overrides, t)
	}
}

// ParseInput reads the right side of an `input` argument: a TOML scalar, or text
// as it is when it is no finite TOML value.
func ParseInput(text string) (any, error) {
	if strings.ContainsAny(text, "\n\r") {
		return text, nil
	}
	var raw map[string]any
	if err := toml.Unmarshal([]byte("v = "+text), &raw); err != nil || len(raw) != 1 {
		return text, nil
	}
	v := raw["v"]
	if isScalar(v) {
		return v, nil
	}
	if _, number := v.(float64); number {
		return text, nil
	}
	return nil, fmt.Errorf("%s is a date, a list or a table; an input is a string, a number or a boolean", text)
}

// environment picks the run's environment and applies what `[run.environment]`
// changes in it.
func (m *merger) environment() {
	s := &m.settings
	id := s.Environment.ID
	e, known := m.environments[id]
	if !known {
		m.fail("", "run.environment.id: no environment %q is defined", id)
		return
	}
	for _, t := range m.overrides {
		e.merge(t)
	}
	e.ID = id
	s.Environment = e
}

// interpolate puts values in place of `{{ vars.NAME }}` in the settings that are
// used on this machine.
func (m *merger) interpolate() {
	s := &m.settings
	text := func(key string, v *string) {
		out, err := interpolateSetting(*v, m.vars)
		if err != nil {
			m.fail("", "%s: %s", key, err)
			return
		}
		*v = out
	}
	table := func(key string, t map[string]string) map[string]string {
		out := make(map[string]string, len(t))
		for name, v := range t {
			text(key+"."+name, &v)
			out[name] = v
		}
		return out
	}
	text("run.working_dir", &s.WorkingDir)
	text("run.model.name", &s.Model.Name)
	text("run.model.provider", &s.Model.Provider)
	s.Metadata = table("run.metadata", s.Metadata)
	text("environment cwd", &s.Environment.Cwd)
	s.Environment.Env = table("environment env", s.Environment.Env)
	for i := range s.Prepare.Steps {
		step := &s.Prepare.Steps[i]
		key := fmt.Sprintf("run.prepare.steps[%d]", i)
		text(key+".script", &step.Script)
		for j := range step.Command {
			text(key+".command", &step.Command[j])
		}
		step.Env = table(key+".env", step.Env)
	}
}
