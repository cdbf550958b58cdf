package engine

import (
	"encoding/json"
	"maps"
	"time"
)

// Names of the events that carry state, see [Fold].
const (
	eventStageCompleted      = "stage.completed"
	eventCheckpointCompleted = "checkpoint.completed"
)

// minBase keeps small runs from writing their whole state again and again: below this many bytes of changes no new base
// is written.
const minBase = 64 << 10

// A State is what a run knows between two nodes. In Fabro's wire form every checkpoint carries all of it and every
// completed stage most of it; stored that way a run of n stages would cost n² bytes. The engine appends changes instead,
// and [Fold] renders the whole on reading.
type State struct {
	ContextValues   map[string]json.RawMessage `json:"context_values,omitempty"`
	CompletedNodes  []string                   `json:"completed_nodes,omitempty"`
	NodeOutcomes    map[string]json.RawMessage `json:"node_outcomes,omitempty"`
	NodeRetries     map[string]int             `json:"node_retries,omitempty"`
	NodeVisits      map[string]int             `json:"node_visits,omitempty"`
	LoopFailures    map[string]int             `json:"loop_failure_signatures,omitempty"`
	RestartFailures map[string]int             `json:"restart_failure_signatures,omitempty"`
}

// A Checkpoint is the state after a node, and where the run goes from there. It is what a run resumes from.
type Checkpoint struct {
	Timestamp   time.Time `json:"timestamp"`
	CurrentNode string    `json:"current_node"`
	NextNode    string    `json:"next_node_id,omitempty"` // empty: the run ended here
	State

	// Ordinals holds, for each node, the highest stage ordinal the run has used. It is not part of the record: the
	// stage ids of the events say it, also for stages that no checkpoint covers.
	Ordinals map[string]int `json:"-"`
}

// stateChange is the member "state" of the stored properties of stage.completed and checkpoint.completed: what is other
// than at the event before it in the same scope. The run itself is the scope "", a child workflow the stage id of its
// manager. A base holds everything; what was known before is forgotten.
type stateChange struct {
	Scope           string                     `json:"scope,omitempty"`
	Base            bool                       `json:"base,omitempty"`
	Set             map[string]json.RawMessage `json:"set,omitempty"`
	Completed       nodeList                   `json:"completed,omitempty"` // appended
	Outcomes        map[string]json.RawMessage `json:"outcomes,omitempty"`
	Retries         map[string]int             `json:"retries,omitempty"`
	Visits          map[string]int             `json:"visits,omitempty"`
	LoopFailures    map[string]int             `json:"loop_failures,omitempty"`
	RestartFailures map[string]int             `json:"restart_failures,omitempty"`
}

func (s *State) apply(c *stateChange) {
	if c.Base {
		*s = State{}
	}
	s.ContextValues = mergeInto(s.ContextValues, c.Set)
	s.CompletedNodes = append(s.CompletedNodes, c.Completed.ids()...)
	s.NodeOutcomes = mergeInto(s.NodeOutcomes, c.Outcomes)
	s.NodeRetries = mergeInto(s.NodeRetries, c.Retries)
	s.NodeVisits = mergeInto(s.NodeVisits, c.Visits)
	s.LoopFailures = mergeInto(s.LoopFailures, c.LoopFailures)
	s.RestartFailures = mergeInto(s.RestartFailures, c.RestartFailures)
}

func mergeInto[V any](into, from map[string]V) map[string]V {
	if len(from) == 0 {
		return into
	}
	if into == nil {
		into = make(map[string]V, len(from))
	}
	maps.Copy(into, from)
	return into
}
