package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A Fold turns stored events back into Fabro's wire form. It is fed the events of one run in order, from the first or
// from any base on ([IsBase]), and keeps the state in between. The zero Fold is ready. Not safe for concurrent use.
//
// Rendering copies bytes and encodes nothing: a page of checkpoints of a long run is as large as it is, and should not
// be slow as well.
type Fold struct {
	scopes     map[string]*folded
	checkpoint *Checkpoint    // the latest, without its state
	settled    State          // the state at that checkpoint
	unsettled  []*stateChange // what came after it in the scope of the run
}

// folded is the state of one scope, ready to be copied.
type folded struct {
	context, outcomes, retries, visits, loops, restarts table
	completed                                           []byte // the elements of a JSON array, with commas between
}

func (f *folded) apply(c *stateChange) {
	if c.Base {
		*f = folded{}
	}
	for key, raw := range c.Set {
		f.context.put(key, raw)
	}
	for _, key := range c.Unset {
		f.context.remove(key)
	}
	for key, raw := range c.Outcomes {
		f.outcomes.put(key, raw)
	}
	for _, counts := range []struct {
		from map[string]int
		into *table
	}{{c.Retries, &f.retries}, {c.Visits, &f.visits}, {c.LoopFailures, &f.loops}, {c.RestartFailures, &f.restarts}} {
		for key, n := range counts.from {
			counts.into.put(key, strconv.AppendInt(nil, int64(n), 10))
		}
	}
	for _, node := range c.Completed {
		if len(f.completed) > 0 {
			f.completed = append(f.completed, ',')
		}
		f.completed = appendString(f.completed, node)
	}
}

// A table is a JSON object whose members are encoded already, in the order of their names.
type table struct {
	names   []string
	members map[string][]byte // "name":value
}

func (t *table) put(name string, value []byte) {
	if t.members == nil {
		t.members = map[string][]byte{}
	}
	if _, known := t.members[name]; !known {
		at, _ := slices.BinarySearch(t.names, name)
		t.names = slices.Insert(t.names, at, name)
	}
	member := append(appendString(nil, name), ':')
	t.members[name] = append(member, value...)
}

func (t *table) remove(name string) {
	if at, known := slices.BinarySearch(t.names, name); known {
		t.names = slices.Delete(t.names, at, at+1)
		delete(t.members, name)
	}
}

func (t *table) appendTo(b []byte) []byte {
	b = append(b, '{')
	for i, name := range t.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.members[name]...)
	}
	return append(b, '}')
}

// appendString appends text as a JSON string.
func appendString(b []byte, text string) []byte {
	raw, err := marshal(text)
	if err != nil {
		return append(b, `""`...) // a string always has a JSON form
	}
	return append(b, raw...)
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
	b := make([]byte, 0, len(properties)+len(state.completed)+256*len(state.context.names))
	b = append(b, '{')
	name := func(key string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		name(key)
		b = append(b, members[key]...)
	}
	put := func(key string, t *table) {
		if len(t.names) > 0 {
			name(key)
			b = t.appendTo(b)
		}
	}
	put("context_values", &state.context)
	put("node_visits", &state.visits)
	put("loop_failure_signatures", &state.loops)
	put("restart_failure_signatures", &state.restarts)
	if event == eventCheckpointCompleted {
		if len(state.completed) > 0 {
			name("completed_nodes")
			b = append(append(append(b, '['), state.completed...), ']')
		}
		put("node_outcomes", &state.outcomes)
		put("node_retries", &state.retries)
	}
	return append(b, '}'), nil
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
		state = &folded{}
		if f.scopes == nil {
			f.scopes = map[string]*folded{}
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
