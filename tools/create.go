package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/plain"
)

type createdRun struct {
	RunID          string  `json:"run_id"`
	ParentID       *string `json:"parent_id"`
	ChildrenCount  int     `json:"children_count"`
	Workflow       string  `json:"workflow"`
	StartRequested bool    `json:"start_requested"`
	Status         string  `json:"status"`
}

type failedRun struct {
	Index       int               `json:"index"`
	Workflow    string            `json:"workflow"`
	RunID       *string           `json:"run_id"` // created, but not started
	Error       string            `json:"error"`
	Diagnostics []wire.Diagnostic `json:"diagnostics"`
}

type createResult struct {
	Runs []createdRun `json:"runs"`
	// Failed is the item at which the batch ended, NotTried are those after it.
	Failed   *failedRun `json:"failed"`
	NotTried []int      `json:"not_tried"`
	Repeated bool       `json:"repeated"` // the runs are those of an earlier call
}

const createSchema = `{"type":"object","properties":{"runs":{"type":"array","items":{"type":"object","properties":{"run_id":{"type":"string"},"parent_id":` + nullableString + `,` +
	`"children_count":{"type":"integer","minimum":0},"workflow":{"type":"string"},"start_requested":{"type":"boolean"},"status":{"type":"string"}},` +
	`"required":["run_id","parent_id","children_count","workflow","start_requested","status"]}},` +
	`"failed":{"type":["object","null"],"description":"The item that failed; those after it were not tried","properties":{"index":{"type":"integer"},"workflow":{"type":"string"},"run_id":` + nullableString + `,` +
	`"error":{"type":"string"},"diagnostics":{"type":"array","items":{"type":"object"}}},"required":["index","workflow","run_id","error","diagnostics"]},` +
	`"not_tried":{"type":"array","items":{"type":"integer"}},"repeated":{"type":"boolean","description":"The runs of an earlier call with the same request_key"}},` +
	`"required":["runs","failed","not_tried","repeated"]}`

// creation is one create call under way.
type creation struct {
	r       *request
	p       *createParams
	client  *fabroapi.Client
	parents map[string]string // resolved in this batch, by selector
	record  *keyRecord        // nil without a request_key
	out     createResult
	runs    []*wire.Run
	reused  int // runs of an earlier call
	notes   []string
}

func (p *createParams) run(ctx context.Context, r *request) (*reply, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	c := &creation{r: r, p: p, client: client, parents: map[string]string{},
		out: createResult{Runs: []createdRun{}, NotTried: []int{}}}
	if p.RequestKey != "" {
		arguments := digest(r.call.Arguments)
		record, done, err := r.keys.open(ctx, client.Target().String(), p.RequestKey, arguments, r.now())
		if err != nil {
			return nil, err
		}
		defer done()
		c.record = record
		if err := c.settle(ctx); err != nil {
			return nil, err
		}
		if len(record.Runs) == 0 { // nothing came of the key yet
			record.Digest, record.otherArguments = arguments, false
		}
		if record.otherArguments {
			c.notes = append(c.notes, "The arguments differ from those of the first call with this request_key; they were not used. For new runs choose a new key.")
		}
	}
	for i := range p.Runs {
		if c.record != nil && c.record.otherArguments && i >= len(c.record.Runs) {
			break
		}
		c.r.call.Progress(float64(i), float64(len(p.Runs)), fmt.Sprintf("creating run %d of %d: %s", i+1, len(p.Runs), plain.Line(p.Runs[i].Workflow, 80)))
		err := c.one(ctx, i)
		if ctx.Err() != nil && len(c.runs) == 0 {
			return nil, ctx.Err()
		}
		if err != nil {
			c.fail(i, err)
			break
		}
	}
	return c.reply(), nil
}

// one creates and starts the run at index i, or takes it from the record of an
// earlier call.
func (c *creation) one(ctx context.Context, i int) error {
	spec := &c.p.Runs[i]
	start := spec.Start.Value
	var run *wire.Run
	var err error
	if earlier := c.record.at(i); earlier != nil {
		if run, err = c.client.GetRun(ctx, earlier.RunID); err != nil {
			return fmt.Errorf("run %s of the first call with this request_key: %w", earlier.RunID, err)
		}
		c.out.Repeated = true
		c.reused++
		start = earlier.Start
	} else {
		if run, err = c.create(ctx, i); err != nil {
			return err
		}
		c.keep(keyRun{RunID: run.ID, Workflow: spec.Workflow, Start: start})
	}
	if start && run.Lifecycle.Status.Kind == wire.StatusSubmitted {
		started, err := c.client.StartRun(ctx, run.ID, false)
		if err != nil {
			c.out.Failed = &failedRun{RunID: &run.ID}
			return fmt.Errorf("created, but not started: %w", err)
		}
		run = started
	}
	c.runs = append(c.runs, run)
	workflow := spec.Workflow
	if earlier := c.record.at(i); earlier != nil {
		workflow = earlier.Workflow
	}
	c.out.Runs = append(c.out.Runs, createdRun{
		RunID: run.ID, ParentID: run.ParentID, ChildrenCount: run.ChildrenCount, Workflow: workflow,
		StartRequested: start, Status: run.Lifecycle.Status.Kind,
	})
	return nil
}

// create builds the manifest of the spec at index i and sends it.
func (c *creation) create(ctx context.Context, i int) (*wire.Run, error) {
	spec := &c.p.Runs[i]
	parent, err := c.parent(ctx, spec.ParentID)
	if err != nil {
		return nil, err
	}
	manifest, err := fabroapi.BuildManifest(ctx, c.r.cfg.Env, fabroapi.ManifestSpec{
		Workflow: spec.Workflow, Cwd: c.r.directory(spec.Cwd.Value), ParentID: parent,
		Goal: spec.Goal.Value, HasGoal: spec.Goal.Set, GoalFile: spec.GoalFile.Value,
		Inputs: spec.Inputs, Labels: spec.Labels.Value, Marks: c.marks(i),
		DryRun: spec.DryRun.Pointer(), AutoApprove: spec.AutoApprove.Pointer(), PreserveSandbox: spec.PreserveSandbox.Pointer(),
		Model: spec.Model, Provider: spec.Provider, Environment: spec.Environment,
		Roots: c.r.cfg.Roots, AgentCommand: c.r.cfg.AgentCommand,
	})
	if err != nil {
		return nil, err
	}
	if err := c.record.begin(begunRun{At: c.r.now().UTC(), Workflow: spec.Workflow, Start: spec.Start.Value}); err != nil {
		return nil, fmt.Errorf("request_key cannot be kept: %w", err)
	}
	return c.client.CreateRun(ctx, manifest)
}

// directory is where a spec's paths start: its cwd, below ours when relative.
func (h *host) directory(cwd string) string {
	switch {
	case cwd == "":
		return h.cfg.Cwd
	case filepath.IsAbs(cwd) || h.cfg.Cwd == "":
		return cwd
	}
	return filepath.Join(h.cfg.Cwd, cwd)
}

// parent resolves a parent's selector, once in a batch; a complete id is taken as
// it is.
func (c *creation) parent(ctx context.Context, selector string) (string, error) {
	if selector == "" || isULID(selector) {
		return strings.ToUpper(selector), nil
	}
	if id, known := c.parents[selector]; known {
		return id, nil
	}
	run, err := c.client.ResolveRun(ctx, selector)
	if err != nil {
		return "", fmt.Errorf("parent run %q: %w", selector, err)
	}
	c.parents[selector] = run.ID
	return run.ID, nil
}

// fail keeps where the batch ended.
func (c *creation) fail(i int, err error) {
	failed := c.out.Failed
	if failed == nil {
		failed = &failedRun{}
	}
	failed.Index, failed.Workflow, failed.Error = i, c.p.Runs[i].Workflow, c.r.sentence(err)
	failed.Diagnostics = []wire.Diagnostic{}
	var invalid *fabroapi.ManifestError
	if errors.As(err, &invalid) && invalid.Diagnostics != nil {
		failed.Diagnostics = invalid.Diagnostics
	}
	c.out.Failed = failed
	for j := i + 1; j < len(c.p.Runs); j++ {
		c.out.NotTried = append(c.out.NotTried, j)
	}
}

func (c *creation) reply() *reply {
	page := &plain.Page{Rest: "The structured result has all runs and diagnostics."}
	started := 0
	for _, run := range c.out.Runs {
		if run.StartRequested {
			started++
		}
	}
	if len(c.out.Runs) > 0 || c.out.Failed == nil {
		verb := "created"
		if c.reused > 0 {
			verb = fmt.Sprintf("in all, %d of them created by an earlier call with this request_key", c.reused)
		}
		page.Line("%s %s, start requested for %d.", plural.Count(len(c.out.Runs), "Fabro run"), verb, started)
	}
	for _, run := range c.runs {
		page.Line("%s", c.r.runLine(run))
	}
	c.pageFailure(page)
	for _, note := range c.notes {
		page.Line("%s", note)
	}
	out := &reply{text: page.String(), structured: c.out, links: listLinks(c.runs), failed: c.out.Failed != nil}
	if out.failed {
		out.outcome = "failed: " + plain.Line(c.out.Failed.Error, 200)
	}
	return out
}

func (c *creation) pageFailure(page *plain.Page) {
	failed := c.out.Failed
	if failed == nil {
		return
	}
	what := fmt.Sprintf("runs[%d] (%s)", failed.Index, plain.Line(failed.Workflow, 120))
	if failed.RunID != nil {
		page.Line("%s: %s", what, failed.Error)
		page.Line(`The run %s exists and is not started. Start it with %s {"action":"start","run_id":"%s"}.`, *failed.RunID, nameInteract, *failed.RunID)
	} else {
		page.Line("%s was not created: %s", what, failed.Error)
	}
	for _, d := range failed.Diagnostics {
		if !strings.Contains(failed.Error, d.Message) { // the error shows the errors
			page.Line("  %s", diagnosticLine(&d))
		}
	}
	if len(c.out.NotTried) > 0 {
		page.Line("Not tried: runs[%d] to runs[%d].", c.out.NotTried[0], c.out.NotTried[len(c.out.NotTried)-1])
	}
	switch {
	case c.record != nil:
		page.Line("Correct what is wrong, then make the same call again: with its request_key nothing is created twice.")
	case len(c.p.Runs) > 1:
		page.Line("Correct what is wrong, then call again with the items that were not created.")
	default:
		page.Line("Correct what is wrong, then call again.")
	}
}

// diagnosticLine shows a finding as "file:line:column: severity: message [rule]".
func diagnosticLine(d *wire.Diagnostic) string {
	var b strings.Builder
	if d.SourcePath != nil {
		b.WriteString(plain.Line(*d.SourcePath, 200))
		if d.Line != nil {
			fmt.Fprintf(&b, ":%d", *d.Line)
			if d.Column != nil {
				fmt.Fprintf(&b, ":%d", *d.Column)
			}
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s: %s", d.Severity, plain.Line(d.Message, 400))
	if d.SourcePath == nil && d.NodeID != nil {
		fmt.Fprintf(&b, " (node %s)", plain.Line(*d.NodeID, 80))
	}
	if d.Fix != nil {
		fmt.Fprintf(&b, " Fix: %s", plain.Line(*d.Fix, 200))
	}
	if d.Rule != "" {
		fmt.Fprintf(&b, " [%s]", d.Rule)
	}
	return b.String()
}
