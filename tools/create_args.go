package tools

import (
	"encoding/json"
	"fmt"

	"fabro-mcp/tools/args"
)

const maxCreate = 50 // runs in one create call

// createParams are the arguments of fabro_run_create.
type createParams struct {
	Runs       []runSpec
	RequestKey string
}

// runSpec is one run to create.
type runSpec struct {
	Workflow        string
	Cwd             args.Opt[string]
	ParentID        string
	Goal            args.Opt[string]
	GoalFile        args.Opt[string]
	Inputs          map[string]any
	Labels          args.Opt[map[string]string]
	DryRun          args.Opt[bool]
	AutoApprove     args.Opt[bool]
	Model           string
	Provider        string
	Environment     string
	PreserveSandbox args.Opt[bool]
	Start           args.Opt[bool]
}

func (s *runSpec) fields() args.Fields {
	return args.Fields{
		{Name: "workflow", Required: true, Type: args.Text(&s.Workflow).Trimmed().NotBlank(""),
			Doc: "Workflow name (.fabro/workflows/<name> of the project, or of the user), or the path of a workflow.toml or graph file."},
		{Name: "cwd", Type: args.OptText(&s.Cwd).NotBlank(""),
			Doc: "Directory in which the workflow, goal_file and git context are looked up, and where a local server runs commands. Default: the working directory of this MCP server."},
		{Name: "parent_id", Type: args.Text(&s.ParentID).Trimmed().NotBlank(""),
			Doc: "Parent run: its id, a prefix of it, or its workflow's name (then the newest run of it)."},
		{Name: "goal", Type: args.OptText(&s.Goal),
			Doc: "Goal text that replaces the workflow's own. Not together with goal_file."},
		{Name: "goal_file", Type: args.OptText(&s.GoalFile).NotBlank(""),
			Doc: "File whose text replaces the workflow's goal, relative to cwd. Not together with goal."},
		{Name: "inputs", Type: args.Scalars(&s.Inputs, "input"),
			Doc: "Values for the inputs of the workflow, by name."},
		{Name: "labels", Type: args.Map(&s.Labels),
			Doc: "Labels to find the run by later."},
		{Name: "dry_run", Type: args.Flag(&s.DryRun),
			Doc: "Simulate every stage: nothing is executed, no model is asked, human gates answer themselves. Absent: what the workflow's settings say."},
		{Name: "auto_approve", Type: args.Flag(&s.AutoApprove),
			Doc: "Answer human gates automatically. Absent: what the workflow's settings say."},
		{Name: "model", Type: args.Text(&s.Model), Doc: "Model instead of the workflow's."},
		{Name: "provider", Type: args.Text(&s.Provider), Doc: "Model provider instead of the workflow's."},
		{Name: "environment", Type: args.Text(&s.Environment), Doc: "Environment (by its id in the settings) in which to run."},
		{Name: "preserve_sandbox", Type: args.Flag(&s.PreserveSandbox), Doc: "Keep the sandbox after the run."},
		{Name: "start", Type: args.Flag(&s.Start).Default(true), Doc: "Start the run at once; false leaves it submitted."},
	}
}

func (s *runSpec) check(at string) error {
	if s.Goal.Set && s.GoalFile.Set {
		return args.Errorf("%s: goal and goal_file are mutually exclusive; use exactly one", at)
	}
	return nil
}

func (p *createParams) fields() args.Fields {
	return args.Fields{
		{Name: "runs", Required: true, Type: args.Items(1, maxCreate, "workflow names or objects", specSchema, p.decodeSpec),
			Doc: "The runs to create, one after another: each a workflow name or path, or an object with options."},
		{Name: "request_key", Type: args.Text(&p.RequestKey).Trimmed().NotBlank("").Max(200),
			Doc: "Makes the call safe to repeat: the same key within 24 hours returns the runs of the first call instead of creating them again. Choose a fresh one (a UUID) for each thing to be done."},
	}
}

func specSchema(b []byte) []byte {
	b = append(b, `{"anyOf":[{"type":"string","minLength":1,"pattern":"\\S","description":"Short for an object with only workflow."},`...)
	b = new(runSpec).fields().AppendObject(b, "A run with options.")
	return append(b, `]}`...)
}

func (p *createParams) decodeSpec(at string, item json.RawMessage) error {
	var spec runSpec
	switch kind := args.Kind(item); kind {
	case "string":
		// The short form is the object {"workflow": item}.
		item = json.RawMessage(fmt.Sprintf(`{"workflow":%s}`, item))
	case "object":
	default:
		return args.Errorf("%s: expected workflow string shorthand or create spec object, got %s", at, kind)
	}
	if err := spec.fields().DecodeNested(at, item); err != nil {
		return err
	}
	if err := spec.check(at); err != nil {
		return err
	}
	p.Runs = append(p.Runs, spec)
	return nil
}

func (p *createParams) check() error { return nil }
