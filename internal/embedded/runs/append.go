package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/projection"
	"fabro-mcp/internal/embedded/store"
)

// event is an event before it has its place in the log.
type event struct {
	name       string
	actor      *wire.Actor // nil: none
	properties any         // nil: {}
	at         time.Time   // zero: now

	nodeID, nodeLabel, stageID, groupID, branchID string
}

// TooLargeError ends a run that has stored as much as it may.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the run's events and outputs have reached the limit of %d bytes (runs.max_run_bytes in embedded.toml)", e.Limit)
}

// head is an envelope without its properties; the order of members is the order on the wire.
type head struct {
	Seq              int64       `json:"seq"`
	ID               string      `json:"id"`
	TS               time.Time   `json:"ts"`
	RunID            string      `json:"run_id"`
	Event            string      `json:"event"`
	NodeID           string      `json:"node_id,omitempty"`
	NodeLabel        string      `json:"node_label,omitempty"`
	StageID          string      `json:"stage_id,omitempty"`
	ParallelGroupID  string      `json:"parallel_group_id,omitempty"`
	ParallelBranchID string      `json:"parallel_branch_id,omitempty"`
	Actor            *wire.Actor `json:"actor,omitempty"`
}

// propertiesKey separates the two parts of a stored event. It cannot occur in the first: a quote inside a string is escaped, and no
// member of an actor has this name.
const propertiesKey = `,"properties":`

func splitEvent(body []byte) (head, properties []byte, ok bool) {
	at := bytes.Index(body, []byte(propertiesKey))
	if at < 0 {
		return nil, nil, false
	}
	return body[:at], body[at+len(propertiesKey) : len(body)-1], true
}

func joinEvent(head, properties []byte) []byte {
	out := make([]byte, 0, len(head)+len(propertiesKey)+len(properties)+1)
	out = append(append(append(out, head...), propertiesKey...), properties...)
	return append(out, '}')
}

// marshal writes JSON without escaping <, > and &, which scripts are full of.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encode gives events their place after the state's last one and applies them to the state.
func encode(id string, s *projection.State, now time.Time, events []event) (recs []store.Record, size int64, changed, terminal bool, err error) {
	now = now.UTC().Truncate(time.Microsecond)
	if last := s.Run.Timestamps.LastEventAt; last != nil && now.Before(*last) {
		now = *last // the clock was set back; a log does not run backwards
	}
	for _, ev := range events {
		uid, err := uuid.NewV7()
		if err != nil {
			return nil, 0, false, false, err
		}
		h := head{Seq: s.LastSeq + 1, ID: uid.String(), TS: now, RunID: id, Event: ev.name, NodeID: ev.nodeID, NodeLabel: ev.nodeLabel, StageID: ev.stageID,
			ParallelGroupID: ev.groupID, ParallelBranchID: ev.branchID, Actor: ev.actor}
		if !ev.at.IsZero() {
			h.TS = ev.at
		}
		properties := []byte("{}")
		if ev.properties != nil {
			if properties, err = marshal(ev.properties); err != nil {
				return nil, 0, false, false, fmt.Errorf("properties of %s: %w", ev.name, err)
			}
			properties = redact(properties)
		}
		top, err := marshal(h)
		if err != nil {
			return nil, 0, false, false, err
		}
		ch, err := s.Apply(&wire.EventEnvelope{Seq: h.Seq, TS: h.TS, RunID: id, Event: h.Event, NodeID: h.NodeID, NodeLabel: h.NodeLabel, StageID: h.StageID,
			Actor: h.Actor, Properties: properties})
		if err != nil {
			return nil, 0, false, false, fmt.Errorf("%s: %w", ev.name, err)
		}
		changed = changed || ch
		terminal = terminal || wire.TerminalEvent(ev.name)
		rec := store.Record{Seq: h.Seq, Name: ev.name, Stage: ev.stageID, Body: joinEvent(top[:len(top)-1], properties)}
		if ev.name == "stage.completed" || ev.name == "checkpoint.completed" {
			rec.State = stateKind(ev.name, properties)
		}
		recs = append(recs, rec)
		size += int64(len(rec.Body))
	}
	return recs, size, changed, terminal, nil
}

func stateKind(name string, properties []byte) store.State {
	switch {
	case !bytes.Contains(properties, []byte(`"state":`)):
		return store.NoState
	case engine.IsBase(name, properties):
		return store.StateBase
	}
	return store.StateChange
}

// append stores events and lets everybody see them, or does nothing and says why.
func (r *run) append(events ...event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appendLocked(events...)
}

func (r *run) appendLocked(events ...event) error {
	if r.gone {
		return errNoRun
	}
	next := r.state
	if n := r.state.Steers; n > 0 {
		// Messages that no agent took are dropped when the run ends, and the log says so before it says the end.
		if at := slices.IndexFunc(events, func(e event) bool { return wire.TerminalEvent(e.name) }); at >= 0 {
			events = slices.Insert(slices.Clone(events), at, event{name: "agent.steer.dropped", actor: wire.Worker(r.id),
				properties: map[string]any{"reason": "run_ended", "count": n}})
		}
	}
	recs, size, changed, terminal, err := encode(r.id, &next, r.m.cfg.Now(), events)
	if err != nil {
		return err
	}
	if limit := r.m.cfg.MaxRunBytes; r.bytes+size > limit && !terminal && r.exec != nil {
		return &TooLargeError{limit}
	}
	// Once a run has ended its row is complete, because nothing keeps it in memory any more.
	row, err := r.row(&next, changed || next.Status().Terminal())
	if err != nil {
		return err
	}
	if err := r.m.store.Append(r.num, recs, row); err != nil {
		return fmt.Errorf("write the run's events: %w", err)
	}
	before := r.state.Status().Kind
	r.state = next
	r.bytes += size
	close(r.changed)
	r.changed = make(chan struct{})
	r.m.publish(r, recs)
	if after := next.Status().Kind; after != before {
		r.m.sched.moved(r, after)
	}
	return nil
}
