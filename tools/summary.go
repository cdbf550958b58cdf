package tools

import (
	"fmt"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/plain"
)

// runSummary is a run as get, gather and interact show it. All keys are always
// present. The names are Fabro's; status_reason and error are ours.
type runSummary struct {
	RunID             string            `json:"run_id"`
	ParentID          *string           `json:"parent_id"`
	ChildrenCount     int               `json:"children_count"`
	WorkflowName      *string           `json:"workflow_name"`
	WorkflowGraphName *string           `json:"workflow_graph_name"`
	WorkflowSlug      *string           `json:"workflow_slug"`
	Status            string            `json:"status"`
	StatusReason      *string           `json:"status_reason"`
	Error             *string           `json:"error"`
	Archived          bool              `json:"archived"`
	CreatedAt         string            `json:"created_at"`
	StartedAt         *string           `json:"started_at"`
	CompletedAt       *string           `json:"completed_at"`
	Labels            map[string]string `json:"labels"`
	SourceDirectory   *string           `json:"source_directory"`
	RepoOriginURL     *string           `json:"repo_origin_url"`
	Goal              string            `json:"goal"`
}

// nullableString and the summary schemas below are fragments of output schemas.
// Output schemas are open objects: a newer Fabro may say more.
const (
	nullableString = `{"type":["string","null"]}`

	summaryHead = `"run_id":{"type":"string","description":"Complete run id (ULID)"},` +
		`"parent_id":` + nullableString + `,"children_count":{"type":"integer","minimum":0},` +
		`"workflow_name":` + nullableString + `,"workflow_graph_name":` + nullableString + `,"workflow_slug":` + nullableString + `,` +
		`"status":{"type":"string","description":"submitted, pending, runnable, starting, running, blocked, paused, removing, succeeded, failed, dead; gone for a run that was deleted meanwhile"},` +
		`"status_reason":` + nullableString + `,"error":` + nullableString + `,"archived":{"type":"boolean"},` +
		`"created_at":{"type":"string"},"started_at":` + nullableString + `,"completed_at":` + nullableString + `,` +
		`"labels":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"source_directory":` + nullableString + `,"repo_origin_url":` + nullableString
	summaryRequired = `"run_id","parent_id","children_count","workflow_name","workflow_graph_name","workflow_slug","status","status_reason","error","archived",` +
		`"created_at","started_at","completed_at","labels","source_directory","repo_origin_url"`

	summarySchema = `{"type":"object","properties":{` + summaryHead + `,"goal":{"type":"string"}},"required":[` + summaryRequired + `,"goal"]}`
)

func summarize(run *wire.Run) runSummary {
	s := runSummary{
		RunID:             run.ID,
		ParentID:          run.ParentID,
		ChildrenCount:     run.ChildrenCount,
		WorkflowName:      run.Workflow.Name,
		WorkflowGraphName: run.Workflow.GraphName,
		WorkflowSlug:      run.Workflow.Slug,
		Status:            run.Lifecycle.Status.Kind,
		StatusReason:      statusReason(run.Lifecycle.Status),
		Archived:          run.Lifecycle.Archived,
		CreatedAt:         stamp(run.Timestamps.CreatedAt),
		StartedAt:         stampOrNull(run.Timestamps.StartedAt),
		CompletedAt:       stampOrNull(run.Timestamps.CompletedAt),
		Labels:            run.Labels,
		SourceDirectory:   run.SourceDirectory,
		Goal:              run.Goal,
	}
	if run.Lifecycle.Error != nil {
		text := plain.Clean(run.Lifecycle.Error.Message)
		s.Error = &text
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	if run.Repository != nil {
		s.RepoOriginURL = run.Repository.OriginURL
	}
	return s
}

func statusReason(s wire.RunStatus) *string {
	for _, reason := range []string{s.Reason, s.BlockedReason, s.PriorBlock} {
		if reason != "" {
			return &reason
		}
	}
	return nil
}

// stamp renders a time as Fabro's tools do: "+00:00" and never "Z", with no
// fraction or the shortest of 3, 6 or 9 digits.
func stamp(t time.Time) string {
	t = t.UTC()
	layout := "2006-01-02T15:04:05"
	switch ns := t.Nanosecond(); {
	case ns == 0:
	case ns%1_000_000 == 0:
		layout += ".000"
	case ns%1_000 == 0:
		layout += ".000000"
	default:
		layout += ".000000000"
	}
	return t.Format(layout) + "+00:00"
}

func stampOrNull(t *time.Time) *string {
	if t == nil || t.IsZero() {
		return nil
	}
	s := stamp(*t)
	return &s
}

// workflowLabel is the name under which people know the workflow of a run.
func workflowLabel(run *wire.Run) string {
	for _, name := range []*string{run.Workflow.Slug, run.Workflow.Name, run.Workflow.GraphName} {
		if name == nil {
			continue
		}
		if label := plain.Line(*name, 80); label != "" {
			return label
		}
	}
	return "unnamed workflow"
}

// runLine is the short line for one run: id, workflow, status, what to do next.
func (h *host) runLine(run *wire.Run) string { return h.runLineWith(run, h.nextStep(run)) }

// shownLine is runLine for a run whose open questions follow in the same text.
func (h *host) shownLine(run *wire.Run, questions int) string {
	if questions > 0 {
		return h.runLineWith(run, "Waits for a person's answer, see below.")
	}
	return h.runLine(run)
}

func (h *host) runLineWith(run *wire.Run, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", run.ID, workflowLabel(run), run.Lifecycle.Status)
	if run.Lifecycle.Archived {
		b.WriteString(", archived")
	}
	if took := runTime(run); took != "" {
		fmt.Fprintf(&b, ", %s", took)
	}
	if control := run.Lifecycle.PendingControl; control != nil {
		fmt.Fprintf(&b, ", %s requested", *control)
	}
	if next != "" {
		b.WriteString(". ")
		b.WriteString(next)
	}
	return b.String()
}

// listLine is the line for a run in a long list: the next step in a few words.
func (h *host) listLine(run *wire.Run) string {
	line := fmt.Sprintf("%s (%s): %s", run.ID, workflowLabel(run), run.Lifecycle.Status)
	if run.Lifecycle.Archived {
		line += ", archived"
	}
	if next := h.nextWords(run); next != "" {
		line += ", next: " + next
	}
	return line
}

// nextWords names what one would do next, for nextStep's details see there.
func (h *host) nextWords(run *wire.Run) string {
	interact := map[string]string{
		wire.StatusSubmitted: "start it", wire.StatusPending: "approve or deny it", wire.StatusBlocked: "read its question (get_questions)",
	}
	kind := run.Lifecycle.Status.Kind
	switch {
	case interact[kind] != "" && h.offers(nameInteract):
		return interact[kind] + " with " + nameInteract
	case kind == wire.StatusBlocked:
		return "a person has to answer"
	case (kind == wire.StatusRunnable || kind == wire.StatusStarting || kind == wire.StatusRunning) && h.offers(nameGather):
		return "wait with " + nameGather
	case (kind == wire.StatusFailed || kind == wire.StatusDead) && h.offers(nameDiagnose):
		return nameDiagnose
	case (kind == wire.StatusFailed || kind == wire.StatusDead) && h.offers(nameEvents):
		return "its last events with " + nameEvents
	}
	return ""
}

// runTime says how long a run took or has taken; the last event stands in for the
// present, so that the text does not depend on our clock.
func runTime(run *wire.Run) string {
	started, end := run.Timestamps.StartedAt, run.Timestamps.CompletedAt
	if end == nil {
		end = run.Timestamps.LastEventAt
	}
	if started == nil || end == nil || end.Before(*started) {
		return ""
	}
	return "after " + end.Sub(*started).Round(time.Second).String()
}

// nextStep says what one would do next with a run. It names only tools that this
// server offers.
func (h *host) nextStep(run *wire.Run) string {
	interact := func(action, what string) string {
		if !h.offers(nameInteract) {
			return ""
		}
		return fmt.Sprintf(`%s: %s {"action":"%s","run_id":"%s"}`, what, nameInteract, action, run.ID)
	}
	switch status := run.Lifecycle.Status; status.Kind {
	case wire.StatusSubmitted:
		return interact("start", "Not started. Start it")
	case wire.StatusPending:
		return interact("approve", "Waits for approval. Approve (or deny) it")
	case wire.StatusBlocked:
		if control := run.Lifecycle.PendingControl; control != nil && *control == wire.ControlCancel {
			return "" // nobody has to answer any more
		}
		if step := interact("get_questions", "Waits for a person's answer. Read the question"); step != "" {
			return step
		}
		return "Waits for a person's answer."
	case wire.StatusPaused:
		return "Paused: somebody has to unpause it."
	case wire.StatusRunnable, wire.StatusStarting, wire.StatusRunning:
		if h.offers(nameGather) {
			return fmt.Sprintf(`Wait for it: %s {"run_ids":["%s"],"until":"attention"}`, nameGather, run.ID)
		}
	case wire.StatusSucceeded:
		return "Done. State: " + runURI(run.ID, "state")
	case wire.StatusFailed, wire.StatusDead:
		if h.offers(nameDiagnose) {
			return fmt.Sprintf(`Find out why: %s {"run_id":"%s"}`, nameDiagnose, run.ID)
		}
		if h.offers(nameEvents) {
			return fmt.Sprintf(`Find out why: %s {"action":"list","run_id":"%s","direction":"desc","first":20}`, nameEvents, run.ID)
		}
	case wire.StatusRemoving:
		return "Being deleted."
	}
	return ""
}

// quoteError adds the error of a failed run, as text of the run.
func quoteError(p *plain.Page, run *wire.Run) {
	if run.Lifecycle.Error != nil {
		p.Quote("Error of "+run.ID, plain.Clip(run.Lifecycle.Error.Message, 2000))
	}
}
