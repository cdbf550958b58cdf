package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Fold turns stored events back into Fabro's wire form. It is fed the events of one run in order, from the first or
// from any base on ([IsBase]), and keeps the state in between. The zero Fold is ready. Not safe for concurrent use.
//
// Rendering copies bytes and encodes nothing: a page of checkpoints of a long run is as large as it is, and should not
// be slow as well.
type Fold struct {
	scopes     map[string]*folded
	checkpoint *Checkpoint // the latest, without its state

	// changes are those of the run's own scope since a base. The first covered ones come to the state at the latest
	// checkpoint; they are only put together when somebody asks for it.
	changes []*stateChange
	covered int
	base    int // index of the latest base in changes
}

// folded is the state of one scope, ready to be copied.
type folded struct {
	context, outcomes, retries, visits, loops, restarts table
	completed                                           nodeList
}

func (f *folded) apply(c *stateChange) {
	if c.Base {
		*f = folded{}
	}
	for key, raw := range c.Set {
		f.context.put(key, raw)
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
	if len(f.completed) > 0 && len(c.Completed) > 0 {
		f.completed = append(f.completed, ',')
	}
	f.completed = append(f.completed, c.Completed...)
}

// A table is a JSON object whose members are encoded already. Names are sorted when they are needed in order.
type table struct {
	names   []string
	sorted  bool
	members map[string]encoded
}

type encoded struct{ name, value []byte } // name with its colon

func (t *table) put(name string, value []byte) {
	member, known := t.members[name]
	if !known {
		if t.members == nil {
			t.members = map[string]encoded{}
		}
		t.names, t.sorted = append(t.names, name), false
		member.name = append(appendString(nil, name), ':')
	}
	member.value = value
	t.members[name] = member
}

func (t *table) appendTo(b []byte) []byte {
	if !t.sorted {
		slices.Sort(t.names)
		t.sorted = true
	}
	b = append(b, '{')
	for i, name := range t.names {
		if i > 0 {
			b = append(b, ',')
		}
		member := t.members[name]
		b = append(append(b, member.name...), member.value...)
	}
	return append(b, '}')
}

// appendString appends text as a JSON string.
func appendString(b []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return append(b, quoteText(strings.ToValidUTF8(text, "\uFFFD"))...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
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

// stored is what observing needs of stored properties.
type stored struct {
	CurrentNode string       `json:"current_node"`
	NextNode    string       `json:"next_node_id"`
	State       *stateChange `json:"state"`
}

// Observe remembers the state of an event without rendering it, which is cheap.
func (f *Fold) Observe(event string, properties json.RawMessage) error {
	_, err := f.observe(event, properties)
	return err
}

// observe returns the state that the event leaves its scope in, or nil for an event without state.
func (f *Fold) observe(event string, properties json.RawMessage) (*folded, error) {
	if event != eventStageCompleted && event != eventCheckpointCompleted {
		return nil, nil
	}
	var s stored
	if err := json.Unmarshal(properties, &s); err != nil {
		return nil, fmt.Errorf("properties of %s: %w", event, err)
	}
	change := s.State
	if change == nil {
		return nil, nil
	}
	state := f.scopes[change.Scope]
	if state == nil {
		state = &folded{}
		if f.scopes == nil {
			f.scopes = map[string]*folded{}
		}
		f.scopes[change.Scope] = state
	}
	state.apply(change)
	if change.Scope != "" {
		return state, nil
	}
	if change.Base {
		f.base = len(f.changes)
		for scope := range f.scopes {
			if scope != "" {
				delete(f.scopes, scope) // child workflows end before their manager's stage does
			}
		}
	}
	f.changes = append(f.changes, change)
	if event == eventCheckpointCompleted {
		f.checkpoint = &Checkpoint{CurrentNode: s.CurrentNode, NextNode: s.NextNode}
		f.changes = slices.Delete(f.changes, 0, f.base) // the latest base makes all before it superfluous
		f.base, f.covered = 0, len(f.changes)
	}
	return state, nil
}

// Render returns the wire form of an event's stored properties and remembers the state they carry. Properties without
// state are returned as they are, so every event may be passed through it.
func (f *Fold) Render(event string, properties json.RawMessage) (json.RawMessage, error) {
	state, err := f.observe(event, properties)
	if err != nil || state == nil {
		return properties, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(properties, &members); err != nil {
		return nil, fmt.Errorf("properties of %s: %w", event, err)
	}
	delete(members, "state")
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

// Checkpoint returns the latest checkpoint of the run itself, or nil when there is none yet. Its time and ordinals are for
// the caller to fill in; both are in the event's envelope.
func (f *Fold) Checkpoint() *Checkpoint {
	if f.checkpoint == nil {
		return nil
	}
	cp := *f.checkpoint
	for _, change := range f.changes[:f.covered] {
		cp.apply(change)
	}
	return &cp
}
