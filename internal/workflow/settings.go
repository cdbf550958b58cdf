package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Settings are the merged settings of one run, highest layer first: args,
// workflow.toml, project.toml, the user's settings.toml, defaults. Merging is by
// key, with these exceptions: a non-empty `run.metadata` replaces the lower one,
// `run.inputs` replaces the lower one (args add to it), `run.prepare.steps`
// replaces the lower list.
type Settings struct {
	WorkflowName string // [workflow] name
	Description  string
	GraphFile    string // [workflow] graph of workflow.toml; "workflow.fabro" by default

	Goal        string // [run] goal as text
	GoalFile    string // [run] goal = {file=…}, as written
	GoalFrom    string // path of the settings file that set either
	WorkingDir  string // as written; "" for the manifest's cwd
	Metadata    map[string]string
	Inputs      map[string]any // string, int64, float64 or bool
	Model       Model
	Mode        string // normal or dry_run
	Approval    string // prompt or auto
	Prepare     Prepare
	Environment Environment
}

// Model is `[run.model]`.
type Model struct{ Name, Provider string }

// Prepare is `[run.prepare]`: what is run before the first stage.
type Prepare struct {
	Steps   []PrepareStep
	Timeout time.Duration // of all steps together; 5 minutes by default
}

// PrepareStep has either a script or a command.
type PrepareStep struct {
	Script  string
	Command []string
	Env     map[string]string
}

// Environment is the environment `[run.environment] id` names, with what the
// run overrides in it.
type Environment struct {
	ID             string // "default" unless set
	Provider       string // local, docker, daytona; "" when nothing says
	Cwd            string
	Env            map[string]string
	Preserve       *bool
	StopOnTerminal *bool
	AutoStop       string
}

// DryRun reports whether stages are only simulated.
func (s *Settings) DryRun() bool { return s.Mode == "dry_run" }

// AutoApprove reports whether human gates answer themselves.
func (s *Settings) AutoApprove() bool { return s.Approval == "auto" }

// SettingsError is a fault of a settings file or of an argument.
type SettingsError struct {
	Path         string // of the file; "" for an argument
	Line, Column int    // 1-based, 0 when unknown
	Message      string
}

func (e *SettingsError) Error() string {
	switch {
	case e.Path == "":
		return e.Message
	case e.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Message)
	default:
		return e.Path + ": " + e.Message
	}
}

// settingsFile is the part of a settings file that matters here.
type settingsFile struct {
	Workflow struct {
		Name, Description, Graph *string
	} `toml:"workflow"`
	Run          runTable                    `toml:"run"`
	Environments map[string]environmentTable `toml:"environments"`
}

type runTable struct {
	Goal       any               `toml:"goal"`
	WorkingDir *string           `toml:"working_dir"`
	Metadata   map[string]string `toml:"metadata"`
	Inputs     map[string]any    `toml:"inputs"`
	Model      struct {
		Name, Provider *string
	} `toml:"model"`
	Execution struct {
		Mode, Approval *string
	} `toml:"execution"`
	Prepare struct {
		Steps []struct {
			Script  *string
			Command any
			Env     map[string]string
		} `toml:"steps"`
		Timeout *string
	} `toml:"prepare"`
	Environment struct {
		ID *string
		environmentTable
	} `toml:"environment"`
}

type environmentTable struct {
	Provider  *string
	Cwd       *string
	Env       map[string]string
	Lifecycle struct {
		Preserve       *bool   `toml:"preserve"`
		StopOnTerminal *bool   `toml:"stop_on_terminal"`
		AutoStop       *string `toml:"auto_stop"`
	} `toml:"lifecycle"`
	Image struct {
		Dockerfile any
	} `toml:"image"`
}

// settingsKeys are the names known below each table whose content is used here.
// The tables that only Fabro's cloud parts read are listed by name and not
// looked into.
var settingsKeys = map[string][]string{
	"":                {"_version", "project", "workflow", "environments", "run", "cli", "server", "llm"},
	"workflow":        {"name", "description", "graph", "metadata"},
	"run":             {"goal", "working_dir", "metadata", "inputs", "model", "git", "prepare", "execution", "checkpoint", "clone", "run_branch", "meta_branch", "environment", "notifications", "interviews", "agent", "hooks", "scm", "pull_request", "artifacts", "integrations"},
	"run.model":       {"name", "provider", "fallbacks", "controls"},
	"run.execution":   {"mode", "approval"},
	"run.prepare":     {"steps", "timeout"},
	"run.environment": {"id", "provider", "cwd", "image", "resources", "network", "lifecycle", "labels", "env"},
}

// parseSettings reads one settings file. Unknown keys are refused, as in Fabro,
// except in the user's file, which other programs share.
func parseSettings(path, source string, strict bool) (*settingsFile, error) {
	fail := func(format string, args ...any) error {
		return &SettingsError{Path: path, Message: fmt.Sprintf(format, args...)}
	}
	source = strings.TrimPrefix(source, byteOrderMark) // another client may have sent it
	var raw map[string]any
	if err := toml.Unmarshal([]byte(source), &raw); err != nil {
		e := &SettingsError{Path: path, Message: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
		if decode, ok := err.(*toml.DecodeError); ok {
			e.Line, e.Column = decode.Position()
		}
		return nil, e
	}
	if _, old := raw["version"]; old {
		return nil, fail("settings files use `_version`, not `version`; rename the key")
	}
	if v, ok := raw["_version"]; ok && v != int64(1) {
		return nil, fail("settings version %v is not known here; this program knows version 1", v)
	}
	if strict {
		for _, table := range slices.Sorted(maps.Keys(settingsKeys)) {
			if err := checkKeys(raw, table, fail); err != nil {
				return nil, err
			}
		}
	}
	var file settingsFile
	if err := toml.Unmarshal([]byte(source), &file); err != nil {
		fault := TOMLFaultOf(err)
		e := &SettingsError{Path: path, Message: fault.Message, Line: fault.Line, Column: fault.Column}
		if fault.Key != "" {
			e.Message = fault.Key + ": " + e.Message
		}
		return nil, e
	}
	return &file, nil
}

func checkKeys(raw map[string]any, table string, fail func(string, ...any) error) error {
	in := raw
	if table != "" {
		for name := range strings.SplitSeq(table, ".") {
			next, ok := in[name].(map[string]any)
			if !ok {
				return nil
			}
			in = next
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if slices.Contains(settingsKeys[table], key) {
			continue
		}
		where := "at the top level"
		if table != "" {
			where = "in [" + table + "]"
		}
		hint := "known keys: " + strings.Join(settingsKeys[table], ", ")
		if near := nearest(key, settingsKeys[table]); near != "" {
			hint = "did you mean `" + near + "`?"
		}
		return fail("unknown key `%s` %s; %s", key, where, hint)
	}
	return nil
}
