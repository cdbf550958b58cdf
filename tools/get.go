package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/plain"
)

type getResult struct {
	RunID      string          `json:"run_id"`
	Summary    runSummary      `json:"summary"`
	Projection json.RawMessage `json:"projection"`
	Questions  []wire.Question `json:"questions"`
}

const (
	questionSchema = `{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"},"stage":{"type":"string"},"question_type":{"type":"string"},` +
		`"options":{"type":"array","items":{"type":"object"}},"allow_freeform":{"type":"boolean"}},"required":["id","text","question_type"]}`
	getSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"summary":` + summarySchema + `,` +
		`"projection":{"type":"object","description":"The state of the run as its events tell it"},` +
		`"questions":{"type":"array","description":"Open questions","items":` + questionSchema + `}},"required":["run_id","summary","projection","questions"]}`
)

func (p *getParams) run(ctx context.Context, r *request) (*reply, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	run, err := client.ResolveRun(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	state, err := client.RunStateRaw(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	questions, err := client.Questions(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	if questions == nil {
		questions = []wire.Question{}
	}
	out := getResult{RunID: run.ID, Summary: summarize(run), Projection: state, Questions: questions}
	return &reply{text: r.getText(run, state, questions), structured: out, links: linksTo(run, "", "state", "events")}, nil
}

// getText shows a run with its stages and open questions.
func (h *host) getText(run *wire.Run, state json.RawMessage, questions []wire.Question) string {
	page := &plain.Page{Rest: "The whole state: " + runURI(run.ID, "state")}
	page.Line("%s", h.shownLine(run, len(questions)))
	if simulated(state) {
		page.Line("Dry run: its stages are simulated, its human gates answer themselves.")
	}
	page.Line("Created %s by %s%s", stamp(run.Timestamps.CreatedAt), actorName(&run.CreatedBy), labelText(run.Labels))
	if run.ParentID != nil {
		page.Line("Child of %s", *run.ParentID)
	}
	if run.ChildrenCount > 0 {
		page.Line("%s", plural.Count(run.ChildrenCount, "child run"))
	}
	page.Quote("Goal", plain.Clip(run.Goal, 2000))
	quoteError(page, run)
	for _, line := range stageLines(state) {
		page.Line("%s", line)
	}
	for i := range questions {
		w := h.waiting(run.ID, &questions[i])
		h.pageQuestion(page, &w)
	}
	return page.String()
}

// simulated reports whether a projection is that of a dry run. The run as lists
// have it does not say so.
func simulated(state json.RawMessage) bool {
	var projection struct {
		Spec struct {
			Settings json.RawMessage `json:"settings"`
		} `json:"spec"`
	}
	return json.Unmarshal(state, &projection) == nil && wire.DryRun(projection.Spec.Settings)
}

// maxStageLines bounds the stages in a text; the last ones are shown.
const maxStageLines = 60

// stageLines shows the stages of a projection in the order they started.
func stageLines(state json.RawMessage) []string {
	var projection struct {
		Stages map[string]struct {
			FirstEventSeq int64                 `json:"first_event_seq"`
			State         string                `json:"state"`
			Handler       string                `json:"handler"`
			Timing        *wire.Timing          `json:"timing"`
			Completion    *wire.StageCompletion `json:"completion"`
		} `json:"stages"`
	}
	if err := json.Unmarshal(state, &projection); err != nil || len(projection.Stages) == 0 {
		return nil
	}
	ids := make([]string, 0, len(projection.Stages))
	for id := range projection.Stages {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if d := projection.Stages[a].FirstEventSeq - projection.Stages[b].FirstEventSeq; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
	lines := []string{plural.Count(len(ids), "stage") + ":"}
	if skip := len(ids) - maxStageLines; skip > 0 {
		lines = append(lines, fmt.Sprintf("  (the first %d are not shown)", skip))
		ids = ids[skip:]
	}
	for _, id := range ids {
		s := projection.Stages[id]
		line := fmt.Sprintf("  %s %s", plain.Line(id, 80), plain.Line(s.State, 40))
		if s.Handler != "" {
			line += " (" + plain.Line(s.Handler, 40) + ")"
		}
		if s.Timing != nil {
			line += fmt.Sprintf(", %d ms", s.Timing.WallTimeMS)
		}
		if s.Completion != nil && s.Completion.FailureReason != nil {
			line += ": " + plain.Line(*s.Completion.FailureReason, 160)
		}
		lines = append(lines, line)
	}
	return lines
}

func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	keys := make([]string, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	b.WriteString(", labels")
	for _, k := range keys {
		fmt.Fprintf(&b, " %s=%s", plain.Line(k, 60), plain.Line(labels[k], 60))
	}
	return b.String()
}

func actorName(a *wire.Actor) string {
	for _, name := range []string{a.Login, a.UserName} {
		if name != "" {
			return plain.Line(name, 60)
		}
	}
	if a.Kind == "" {
		return "somebody"
	}
	return plain.Line(a.Kind, 60)
}

// runURI is the resource of a run, or of a part of it.
func runURI(id, part string) string {
	if part == "" {
		return "fabro://runs/" + id
	}
	return "fabro://runs/" + id + "/" + part
}

// maxLinks bounds the links in one result.
const maxLinks = 20

// linksTo makes resource links to parts of a run; "" is the run itself.
func linksTo(run *wire.Run, parts ...string) []protocol.Content {
	out := make([]protocol.Content, 0, len(parts))
	for _, part := range parts {
		name := "run " + run.ID
		if part != "" {
			name = part + " of run " + run.ID
		}
		out = append(out, protocol.ResourceLink{URI: runURI(run.ID, part), Name: name, Title: strings.TrimSpace(workflowLabel(run) + " " + part), MIMEType: "application/json"})
	}
	return out
}

// runLinks links to the runs of a gather.
func runLinks(runs []*followed) []protocol.Content {
	var out []protocol.Content
	for _, w := range runs {
		if !w.gone && len(out) < maxLinks {
			out = append(out, linksTo(w.run, "")...)
		}
	}
	return out
}

// listLinks links to the runs of a list.
func listLinks(runs []*wire.Run) []protocol.Content {
	var out []protocol.Content
	for _, run := range runs {
		if len(out) < maxLinks {
			out = append(out, linksTo(run, "")...)
		}
	}
	return out
}

// resolveOne finds the run a selector means.
func (r *request) resolveOne(ctx context.Context, selector string) (*fabroapi.Client, *wire.Run, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, nil, err
	}
	run, err := client.ResolveRun(ctx, selector)
	return client, run, err
}
