package engine

import (
	"encoding/json"

	"fabro-mcp/fabroapi/wire"
)

// stageCompleted are the properties of stage.completed, in stored form.
type stageCompleted struct {
	Index          int             `json:"index"`
	Timing         wire.Timing     `json:"timing"`
	Status         Status          `json:"status"`
	PreferredLabel string          `json:"preferred_label,omitempty"`
	SuggestedNext  []string        `json:"suggested_next_ids,omitempty"`
	Failure        *Failure        `json:"failure,omitempty"`
	Notes          string          `json:"notes,omitempty"`
	ContextUpdates map[string]any  `json:"context_updates,omitempty"`
	JumpTo         string          `json:"jump_to_node,omitempty"`
	State          json.RawMessage `json:"state,omitempty"`
	Response       *string         `json:"response,omitempty"`
	Attempt        int             `json:"attempt"`
	MaxAttempts    int             `json:"max_attempts"`
}

// stageFailed are the properties of stage.failed.
type stageFailed struct {
	Index     int         `json:"index"`
	Failure   *Failure    `json:"failure,omitempty"`
	WillRetry bool        `json:"will_retry"`
	Timing    wire.Timing `json:"timing"`
}

// checkpointCompleted are the properties of checkpoint.completed, in stored form.
type checkpointCompleted struct {
	Status      Status          `json:"status"`
	CurrentNode string          `json:"current_node"`
	NextNode    string          `json:"next_node_id,omitempty"`
	State       json.RawMessage `json:"state"`
	GraphVisit  int             `json:"graph_visit"`
	ResumedFrom string          `json:"resumed_from_stage_id,omitempty"`
}

// ended is the event with which a stage ends.
func (w *walk) ended(s *stage, o *Outcome, attempt int) (Event, error) {
	if o.failed() {
		return s.failed(o.Failure, false), nil
	}
	state, err := w.takeState()
	if err != nil {
		return Event{}, err
	}
	props := stageCompleted{
		Index: w.index, Timing: s.timing(), Status: o.Status,
		PreferredLabel: o.PreferredLabel, SuggestedNext: o.SuggestedNext, Failure: o.Failure, Notes: o.Notes,
		ContextUpdates: o.ContextUpdates, JumpTo: o.JumpTo, State: state,
		Attempt: attempt, MaxAttempts: s.policy.attempts,
	}
	if o.hasResponse {
		props.Response = &o.response
	}
	return s.event(eventStageCompleted, props), nil
}

// checkpoint is the event that closes the books on a node. Its label is the node's id, as in Fabro.
func (w *walk) checkpoint(s *stage, o *Outcome, next string) (Event, error) {
	outcome, err := marshal(o)
	if err != nil {
		return Event{}, err
	}
	note(&w.changes.Outcomes, s.node.ID, outcome)
	if w.scope != "" {
		return Event{}, nil // child workflows do not checkpoint; the next stage carries the change
	}
	state, err := w.takeState()
	if err != nil {
		return Event{}, err
	}
	e := s.event(eventCheckpointCompleted, checkpointCompleted{
		Status: o.Status, CurrentNode: s.node.ID, NextNode: next, State: state, GraphVisit: s.visit, ResumedFrom: s.resumedFrom,
	})
	e.NodeLabel = s.node.ID
	return e, nil
}

// takeState returns what changed since the last event that carried state, or everything when the changes have come to half
// the size of that: so both the bytes a run writes and the way back to a base grow with the run and not with its square.
func (w *walk) takeState() (json.RawMessage, error) {
	whole := w.nextBase || w.sinceBase > max(minBase, w.baseSize/2)
	change := w.changes
	if whole {
		change = stateChange{
			Base: true, Completed: nodeListOf(w.completed), Retries: w.retries, Visits: w.visits,
			LoopFailures: w.loops, RestartFailures: w.restarts,
		}
		for node, o := range w.outcomes {
			raw, err := marshal(o)
			if err != nil {
				return nil, err
			}
			note(&change.Outcomes, node, raw)
		}
	}
	change.Scope = w.scope
	var err error
	if change.Set, err = w.ctx.take(whole); err != nil {
		return nil, err
	}
	raw, err := marshal(change)
	if err != nil {
		return nil, err
	}
	w.changes, w.nextBase = stateChange{}, false
	if whole {
		w.baseSize, w.sinceBase = len(raw), 0
	} else {
		w.sinceBase += len(raw)
	}
	return raw, nil
}
