package runs

import (
	"encoding/json"

	"fabro-mcp/internal/workflow"
)

// object is a JSON object written out by hand.
type object = map[string]any

// settingsJSON is a run's settings in the shape of Fabro's WorkflowSettings. What only a real Fabro server acts on (git
// branches, pull requests, notifications, …) is there with the value that means "off". Like the settings that a real
// server stores, it has no list of environments beside the one of the run.
func settingsJSON(c *workflow.Compiled) (json.RawMessage, error) {
	s := &c.Settings
	var goal any
	if c.Goal != "" {
		goal = object{"type": "inline", "value": c.Goal}
	}
	steps := []object{}
	for _, step := range s.Prepare.Steps {
		o := object{"type": "script", "script": step.Script}
		if len(step.Command) > 0 {
			o = object{"type": "command", "command": step.Command}
		}
		if len(step.Env) > 0 {
			o["env"] = step.Env
		}
		steps = append(steps, o)
	}
	inputs := s.Inputs
	if inputs == nil {
		inputs = object{}
	}
	preserve, stop := false, true
	if s.Environment.Preserve != nil {
		preserve = *s.Environment.Preserve
	}
	if s.Environment.StopOnTerminal != nil {
		stop = *s.Environment.StopOnTerminal
	}
	// Commands run on this machine whatever provider the files name; a run that asked for another is told by a notice of the engine.
	environment := object{
		"id": s.Environment.ID, "provider": "local", "cwd": orNull(s.Environment.Cwd),
		"image":     object{"docker": nil, "dockerfile": nil},
		"resources": object{"cpu": nil, "memory": nil, "disk": nil},
		"network":   object{"mode": "allow_all", "allow": []string{}},
		"lifecycle": object{"preserve": preserve, "stop_on_terminal": stop, "auto_stop": orNull(s.Environment.AutoStop)},
		"labels":    object{}, "env": orEmpty(s.Environment.Env),
	}
	return marshal(object{
		"project":  object{"name": nil, "description": nil, "metadata": object{}},
		"workflow": object{"name": orNull(s.WorkflowName), "description": orNull(s.Description), "graph": s.GraphFile, "metadata": object{}},
		"run": object{
			"goal": goal, "working_dir": orNull(s.WorkingDir), "metadata": orEmpty(s.Metadata), "inputs": inputs,
			"model":         object{"provider": orNull(s.Model.Provider), "name": orNull(s.Model.Name), "fallbacks": object{}},
			"git":           object{"author": nil},
			"prepare":       object{"steps": steps, "timeout_ms": s.Prepare.Timeout.Milliseconds()},
			"execution":     object{"mode": s.Mode, "approval": s.Approval},
			"checkpoint":    object{"exclude_globs": []string{}, "skip_git_hooks": false},
			"clone":         object{"enabled": false},
			"run_branch":    object{"enabled": false, "push": false},
			"meta_branch":   object{"enabled": false, "push": false},
			"environment":   environment,
			"notifications": object{}, "interviews": object{"provider": nil, "slack": nil},
			"agent": object{"fabro_tools": false, "mcps": object{}}, "hooks": []object{},
			"scm":          object{"provider": nil, "owner": nil, "repository": nil, "github": nil},
			"pull_request": nil, "artifacts": object{"include": []string{}},
			"integrations": object{"github": object{"permissions": object{}}},
		},
	})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
