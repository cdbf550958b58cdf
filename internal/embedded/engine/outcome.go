package engine

import (
	"time"

	"fabro-mcp/fabroapi/wire"
)

// A Status is the result of a stage, in Fabro's words.
type Status string

// The results. Partial success is that of a parallel node of which some branches failed, of a node with allow_partial
// that still asked for another attempt at its last one, and of a stage whose output claims it.
const (
	Succeeded          Status = "succeeded"
	PartiallySucceeded Status = "partially_succeeded"
	Failed             Status = "failed"
	Skipped            Status = "skipped"
)

// addWork counts time spent working, as opposed to waiting. Without a language model it is tool time, except that of an
// agent command, which stands in for the model.
func addWork(t *wire.Timing, tool, inference time.Duration) {
	t.ToolTimeMS += millis(tool)
	t.InferenceTimeMS += millis(inference)
	t.ActiveTimeMS = t.ToolTimeMS + t.InferenceTimeMS
}

// An Outcome is what a handler made of its node. It is part of checkpoints, in this JSON form.
type Outcome struct {
	Status         Status         `json:"status"`
	PreferredLabel string         `json:"preferred_label,omitempty"`
	SuggestedNext  []string       `json:"suggested_next_ids,omitempty"`
	ContextUpdates map[string]any `json:"context_updates,omitempty"`
	JumpTo         string         `json:"jump_to_node,omitempty"`
	Notes          string         `json:"notes,omitempty"`
	Failure        *Failure       `json:"failure,omitempty"`
	Usage          *struct{}      `json:"usage"` // always null here: no model is billed
	Timing         *wire.Timing   `json:"timing,omitempty"`

	response       string        // of an agent or prompt stage, shown in stage.completed
	hasResponse    bool          // an empty response is a response too
	retryRequested bool          // a failure that asks for another attempt
	tool           time.Duration // time in commands
	inference      time.Duration // time in agent commands
}

func succeeded(notes string) *Outcome { return &Outcome{Status: Succeeded, Notes: notes} }

func failed(f *Failure) *Outcome { return &Outcome{Status: Failed, Failure: f} }

func failedWith(category, message string) *Outcome {
	return failed(&Failure{Message: message, Category: category})
}

func (o *Outcome) failed() bool { return o.Status == Failed }

func (o *Outcome) set(key string, value any) {
	if o.ContextUpdates == nil {
		o.ContextUpdates = map[string]any{}
	}
	o.ContextUpdates[key] = value
}

// A stageError is a handler that could not come to an outcome. Unlike a failed outcome it is tried again, where the
// retry policy leaves an attempt, unless final is set.
type stageError struct {
	failure   Failure
	final     bool
	tool      time.Duration
	inference time.Duration
	updates   map[string]any // what the context learns although the handler failed
}

func (e *stageError) Error() string { return e.failure.Message }

func retryable(message string) *stageError { return &stageError{failure: *failureFromText(message)} }

// outcome is the failed outcome that a handler error becomes when no attempt is left.
func (e *stageError) outcome() *Outcome {
	f := e.failure
	return &Outcome{Status: Failed, Failure: &f, ContextUpdates: e.updates, tool: e.tool, inference: e.inference}
}
