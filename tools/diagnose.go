package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// diagnoseParams are the arguments of fabro_run_diagnose.
type diagnoseParams struct {
	RunID    string
	LogLines args.Opt[int64]
}

func (p *diagnoseParams) fields() args.Fields {
	return args.Fields{
		{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc},
		{Name: "log_lines", Type: args.Count(&p.LogLines, 0, 200).Default(40), Doc: "Lines of the end of the failed stage's log to show."},
	}
}

func (p *diagnoseParams) check() error { return nil }

type diagnosis struct {
	RunID       string       `json:"run_id"`
	Summary     runSummary   `json:"summary"`
	FailedStage *failedStage `json:"failed_stage"`
	LogTail     string       `json:"log_tail"`
	Causes      []string     `json:"causes"`
	NextSteps   []string     `json:"next_steps"`
	WaitingFor  []waitingFor `json:"waiting_for"`
}

type failedStage struct {
	StageID string  `json:"stage_id"`
	Handler string  `json:"handler"`
	State   string  `json:"state"`
	Reason  *string `json:"reason"`
}

const diagnoseSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"summary":` + summarySchema + `,` +
	`"failed_stage":{"type":["object","null"],"properties":{"stage_id":{"type":"string"},"handler":{"type":"string"},"state":{"type":"string"},"reason":` + nullableString + `},"required":["stage_id","handler","state","reason"]},` +
	`"log_tail":{"type":"string"},"causes":{"type":"array","items":{"type":"string"}},"next_steps":{"type":"array","items":{"type":"string"}},` +
	`"waiting_for":{"type":"array","items":` + waitingSchema + `}},"required":["run_id","summary","failed_stage","log_tail","causes","next_steps","waiting_for"]}`

// diagnosedState is what a diagnosis reads of a run's state.
type diagnosedState struct {
	Conclusion *struct {
		Failure *wire.RunFailure `json:"failure"`
	} `json:"conclusion"`
	Stages map[string]struct {
		FirstEventSeq int64                 `json:"first_event_seq"`
		Completion    *wire.StageCompletion `json:"completion"`
		Handler       string                `json:"handler"`
		State         string                `json:"state"`
		Output        *string               `json:"output"`
	} `json:"stages"`
}

func (p *diagnoseParams) run(ctx context.Context, r *request) (*reply, error) {
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	raw, err := client.RunStateRaw(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	var state diagnosedState
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, fmt.Errorf("the state of %s cannot be read: %w", run.ID, err)
	}
	d := &diagnosis{RunID: run.ID, Summary: summarize(run), Causes: []string{}, NextSteps: []string{}, WaitingFor: []waitingFor{}}
	d.FailedStage = state.failed()
	if c := state.Conclusion; c != nil && c.Failure != nil {
		d.Causes = append(d.Causes, plain.Clip(plain.Clean(c.Failure.Detail.Message), 2000))
		for _, cause := range c.Failure.Detail.Causes {
			d.Causes = append(d.Causes, plain.Clip(plain.Clean(cause), 1000))
		}
	}
	if d.FailedStage != nil && p.LogLines.Value > 0 {
		if d.LogTail, err = stageTail(ctx, client, run.ID, d.FailedStage.StageID, int(p.LogLines.Value)); err != nil {
			return nil, err
		}
		if d.LogTail == "" {
			d.LogTail = lastLines(plain.Clean(inlineOutput(state.Stages[d.FailedStage.StageID].Output)), int(p.LogLines.Value))
		}
	}
	if run.Lifecycle.Status.Kind == wire.StatusBlocked {
		questions, err := client.Questions(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		for i := range questions {
			d.WaitingFor = append(d.WaitingFor, r.waiting(run.ID, &questions[i]))
		}
	}
	d.NextSteps = r.nextSteps(run, d)
	return &reply{text: r.diagnosisText(run, d), structured: d, links: linksTo(run, "", "state", "events")}, nil
}

// failed is the stage that failed last, nil where none did.
func (s *diagnosedState) failed() *failedStage {
	var out *failedStage
	latest := int64(-1)
	for id, stage := range s.Stages {
		failed := stage.State == wire.StageFailed || stage.Completion != nil && stage.Completion.Outcome == wire.OutcomeFailed
		if !failed || stage.FirstEventSeq < latest || stage.FirstEventSeq == latest && out != nil && id < out.StageID {
			continue
		}
		latest = stage.FirstEventSeq
		out = &failedStage{StageID: id, Handler: stage.Handler, State: stage.State}
		if stage.Completion != nil && stage.Completion.FailureReason != nil {
			reason := plain.Clip(plain.Clean(*stage.Completion.FailureReason), 2000)
			out.Reason = &reason
		}
	}
	return out
}

// inlineOutput is a stage's output where the state has it itself. The reference to a
// blob that may stand there instead means nothing to a reader.
func inlineOutput(output *string) string {
	if output == nil || strings.HasPrefix(*output, "blob://") {
		return ""
	}
	return *output
}

// stageTail is the end of a stage's log; a stage without one has an empty end.
func stageTail(ctx context.Context, client *fabroapi.Client, runID, stageID string, lines int) (string, error) {
	data, _, err := logTail(ctx, client, runID, stageID, maxTailBytes)
	if isGone(err) || isRefusal(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return lastLines(plain.Clean(string(data)), lines), nil
}

// maxTailBytes is the end of a log in which lines are looked for.
const maxTailBytes = 64 << 10

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// nextSteps says what one would do about it, by the reason of the failure.
func (h *host) nextSteps(run *wire.Run, d *diagnosis) []string {
	status := run.Lifecycle.Status
	steps := []string{}
	if status.Kind != wire.StatusFailed && status.Kind != wire.StatusDead {
		if step := h.nextStep(run); step != "" {
			steps = append(steps, step)
		}
		return steps
	}
	switch status.Reason {
	case wire.FailedCancelled:
		steps = append(steps, "Somebody cancelled the run; nothing is wrong with it.")
	case wire.FailedApprovalDenied:
		steps = append(steps, "The run was denied. Ask who decided before creating it again.")
	case wire.FailedTerminated:
		steps = append(steps, "The server stopped while the run was going on. Nothing is wrong with the workflow; a new run does it again.")
	case wire.FailedTransientInfra, wire.FailedLaunchFailed, wire.FailedSandboxInitFailed:
		steps = append(steps, "The surroundings failed, not the workflow: try the same run once more.")
	case wire.FailedBudgetExhausted:
		steps = append(steps, "The budget is used up: raise it, or make the task smaller.")
	case wire.FailedBootstrapFailed:
		steps = append(steps, "Preparing the run failed: look at the prepare steps in workflow.toml.")
	default:
		steps = append(steps, "Correct what the error names, then create the run again.")
	}
	if d.FailedStage != nil && h.offers(nameLogs) {
		steps = append(steps, fmt.Sprintf(`More of the log: %s {"run_id":"%s","stage_id":"%s","tail_lines":200}`, nameLogs, run.ID, d.FailedStage.StageID))
	}
	if h.offers(nameEvents) {
		steps = append(steps, fmt.Sprintf(`What happened before: %s {"action":"list","run_id":"%s","direction":"desc","first":50}`, nameEvents, run.ID))
	}
	return steps
}

func (h *host) diagnosisText(run *wire.Run, d *diagnosis) string {
	page := &plain.Page{Rest: "The structured result has everything."}
	page.Line("%s (%s): %s", run.ID, workflowLabel(run), run.Lifecycle.Status)
	if s := d.FailedStage; s != nil {
		page.Line("Failed stage: %s (%s)", plain.Line(s.StageID, 80), plain.Line(s.Handler, 40))
		if s.Reason != nil {
			page.Quote("Its error", *s.Reason)
		}
	} else if run.Lifecycle.Status.Kind == wire.StatusFailed {
		page.Line("No stage failed by itself.")
	}
	quoteError(page, run)
	if len(d.Causes) > 0 && !slices.Equal(d.Causes, []string{deref(d.Summary.Error)}) {
		page.Quote("Causes", strings.Join(d.Causes, "\n"))
	}
	page.Quote("End of its log", d.LogTail)
	for i := range d.WaitingFor {
		h.pageQuestion(page, &d.WaitingFor[i])
	}
	for _, step := range d.NextSteps {
		page.Line("Next: %s", step)
	}
	return page.String()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var errNoStage = errors.New("the run has no stage with a log yet")
