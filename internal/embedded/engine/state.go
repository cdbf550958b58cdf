package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
	Unset           []string                   `json:"unset,omitempty"`
	Completed       []string                   `json:"completed,omitempty"` // appended
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
	for _, key := range c.Unset {
		delete(s.ContextValues, key)
	}
	s.CompletedNodes = append(s.CompletedNodes, c.Completed...)
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

// A Fold turns stored events back into Fabro's wire form. It is fed the events of one run in order, from the first or
// from any base on ([IsBase]), and keeps the state in between. The zero Fold is ready. Not safe for concurrent use.
type Fold struct {
	scopes     map[string]*State
	checkpoint *Checkpoint    // the latest, without its state
	settled    State          // the state at that checkpoint
	unsettled  []*stateChange // what came after it in the scope of the run
}

// IsBase reports whether folding may start at this event: it holds the whole state of the run, and no child workflow is
// under way.
func IsBase(event string, properties json.RawMessage) bool {
	if event != eventStageCompleted && event != eventCheckpointCompleted {
		return false
	}
	var p struct {
		State *struct {
			Scope string `json:"scope"`
			Base  bool   `json:"base"`
		} `json:"state"`
	}
	return json.Unmarshal(properties, &p) == nil && p.State != nil && p.State.Base && p.State.Scope == ""
}

// Render returns the wire form of an event's stored properties and remembers the state they carry. Properties without
// state are returned as they are, so every event may be passed through it.
func (f *Fold) Render(event string, properties json.RawMessage) (json.RawMessage, error) {
	change, members, err := f.observe(event, properties)
	if err != nil || change == nil {
		return properties, err
	}
	state := f.scopes[change.Scope]
	put := func(key string, size int, value any) {
		if err == nil && size > 0 {
			members[key], err = marshal(value)
		}
	}
	put("context_values", len(state.ContextValues), state.ContextValues)
	put("node_visits", len(state.NodeVisits), state.NodeVisits)
	put("loop_failure_signatures", len(state.LoopFailures), state.LoopFailures)
	put("restart_failure_signatures", len(state.RestartFailures), state.RestartFailures)
	if event == eventCheckpointCompleted {
		put("completed_nodes", len(state.CompletedNodes), state.CompletedNodes)
		put("node_outcomes", len(state.NodeOutcomes), state.NodeOutcomes)
		put("node_retries", len(state.NodeRetries), state.NodeRetries)
	}
	if err != nil {
		return nil, err
	}
	return marshal(members)
}

// Observe remembers the state of an event without rendering it, which is cheap.
func (f *Fold) Observe(event string, properties json.RawMessage) error {
	_, _, err := f.observe(event, properties)
	return err
}

func (f *Fold) observe(event string, properties json.RawMessage) (*stateChange, map[string]json.RawMessage, error) {
	if event != eventStageCompleted && event != eventCheckpointCompleted {
		return nil, nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(properties, &members); err != nil {
		return nil, nil, fmt.Errorf("properties of %s: %w", event, err)
	}
	raw, ok := members["state"]
	if !ok {
		return nil, nil, nil
	}
	var change stateChange
	if err := json.Unmarshal(raw, &change); err != nil {
		return nil, nil, fmt.Errorf("state of %s: %w", event, err)
	}
	delete(members, "state")
	state := f.scopes[change.Scope]
	if state == nil {
		state = &State{}
		if f.scopes == nil {
			f.scopes = map[string]*State{}
		}
		f.scopes[change.Scope] = state
	}
	state.apply(&change)
	if change.Base && change.Scope == "" {
		for scope := range f.scopes {
			if scope != "" {
				delete(f.scopes, scope) // child workflows end before their manager's stage does
			}
		}
	}
	if event == eventCheckpointCompleted && change.Scope == "" {
		cp := &Checkpoint{}
		if err := json.Unmarshal(properties, cp); err != nil {
			return nil, nil, fmt.Errorf("properties of %s: %w", event, err)
		}
		cp.State = State{}
		f.checkpoint = cp
	}
	if change.Scope == "" {
		f.unsettled = append(f.unsettled, &change)
		if event == eventCheckpointCompleted {
			for _, c := range f.unsettled {
				f.settled.apply(c)
			}
			f.unsettled = nil
		}
	}
	return &change, members, nil
}

// Checkpoint returns a copy of the latest checkpoint of the run itself, or nil when there is none yet. Its time and
// ordinals are for the caller to fill in; both are in the event's envelope.
func (f *Fold) Checkpoint() *Checkpoint {
	if f.checkpoint == nil {
		return nil
	}
	cp, s := *f.checkpoint, &f.settled
	cp.State = State{
		ContextValues:   maps.Clone(s.ContextValues),
		CompletedNodes:  slices.Clone(s.CompletedNodes),
		NodeOutcomes:    maps.Clone(s.NodeOutcomes),
		NodeRetries:     maps.Clone(s.NodeRetries),
		NodeVisits:      maps.Clone(s.NodeVisits),
		LoopFailures:    maps.Clone(s.LoopFailures),
		RestartFailures: maps.Clone(s.RestartFailures),
	}
	return &cp
}
