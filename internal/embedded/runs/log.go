package runs

import (
	"context"
	"encoding/json"
	"fmt"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/projection"
	"fabro-mcp/internal/embedded/store"
)

// Event is one event of a run's log as it is shown: complete, as JSON.
type Event struct {
	Seq  int64
	Name string
	JSON []byte
}

// PageQuery says which events of a run to read.
type PageQuery struct {
	Since  int64 // ascending: from here on, at least 1
	Before int64 // descending: below this, 0 for the newest
	Desc   bool
	Stage  string // ascending only: of this stage
	Limit  int
}

// Events reads one page of a run's log and says whether there is more in the direction of reading.
func (m *Manager) Events(ctx context.Context, id string, q PageQuery) (page []Event, more bool, err error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return nil, false, err
	}
	var recs []store.Record
	switch {
	case q.Desc:
		recs, err = m.store.EventsBefore(ctx, num, q.Before, q.Limit+1)
	case q.Stage != "":
		recs, err = m.store.StageEvents(ctx, num, q.Stage, q.Since, q.Limit+1)
	default:
		recs, err = m.store.Events(ctx, num, q.Since, q.Limit+1)
	}
	if err != nil {
		return nil, false, err
	}
	if more = len(recs) > q.Limit; more {
		recs = recs[:q.Limit]
	}
	page, err = m.complete(ctx, num, recs)
	return page, more, err
}

// number is the store's number of a run.
func (m *Manager) number(ctx context.Context, id string) (int64, error) {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return 0, err
	}
	defer m.release(r)
	return r.num, nil
}

func (m *Manager) events(ctx context.Context, num, since int64, limit int) ([]Event, error) {
	recs, err := m.store.Events(ctx, num, since, limit)
	if err != nil {
		return nil, err
	}
	return m.complete(ctx, num, recs)
}

// complete renders the events whose state is stored as changes. The changes before the first of them, and those a page skips, are read from the
// last base on. The order of recs is kept, whether it is ascending or descending.
func (m *Manager) complete(ctx context.Context, num int64, recs []store.Record) ([]Event, error) {
	out := make([]Event, len(recs))
	first, last := int64(0), int64(0)
	for i := range recs {
		out[i] = Event{Seq: recs[i].Seq, Name: recs[i].Name, JSON: recs[i].Body}
		if recs[i].State != store.NoState {
			seq := recs[i].Seq
			if first == 0 || seq < first {
				first = seq
			}
			last = max(last, seq)
		}
	}
	if first == 0 {
		return out, nil
	}
	base, err := m.store.BaseBefore(ctx, num, first)
	if err != nil {
		return nil, err
	}
	states, err := m.store.StateEvents(ctx, num, base, last+1)
	if err != nil {
		return nil, err
	}
	wanted := make(map[int64]int, len(recs))
	for i := range recs {
		if recs[i].State != store.NoState {
			wanted[recs[i].Seq] = i
		}
	}
	var fold engine.Fold
	for _, rec := range states {
		h, properties, ok := splitEvent(rec.Body)
		if !ok {
			return nil, fmt.Errorf("stored event %d has no properties", rec.Seq)
		}
		i, show := wanted[rec.Seq]
		if !show {
			if err := fold.Observe(rec.Name, properties); err != nil {
				return nil, err
			}
			continue
		}
		full, err := fold.Render(rec.Name, properties)
		if err != nil {
			return nil, err
		}
		out[i].JSON = joinEvent(h, full)
	}
	return out, nil
}

// readPage is how many events are read at once when a whole log is.
const readPage = 500

// each calls show with all events of a run, decoded and complete.
func (m *Manager) each(ctx context.Context, num int64, show func(*wire.EventEnvelope) error) error {
	var fold engine.Fold
	for since := int64(1); ; {
		recs, err := m.store.Events(ctx, num, since, readPage)
		if err != nil {
			return err
		}
		for i := range recs {
			h, properties, ok := splitEvent(recs[i].Body)
			if !ok {
				return fmt.Errorf("stored event %d has no properties", recs[i].Seq)
			}
			var e wire.EventEnvelope
			if err := json.Unmarshal(append(h[:len(h):len(h)], '}'), &e); err != nil {
				return fmt.Errorf("stored event %d: %w", recs[i].Seq, err)
			}
			if e.Properties, err = fold.Render(recs[i].Name, properties); err != nil {
				return err
			}
			if err := show(&e); err != nil {
				return err
			}
			since = recs[i].Seq + 1
		}
		if len(recs) < readPage {
			return nil
		}
	}
}

// Document derives the complete state of a run from its log.
func (m *Manager) Document(ctx context.Context, id string) (*projection.Document, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return nil, err
	}
	d := &projection.Document{}
	if err := m.each(ctx, num, d.Apply); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return d, nil
}

// replay derives the small state of a row from the log.
func (m *Manager) replay(ctx context.Context, row *store.Row) (projection.State, error) {
	var s projection.State
	err := m.each(ctx, row.Num, func(e *wire.EventEnvelope) error {
		_, err := s.Apply(e)
		return err
	})
	if err != nil {
		return s, fmt.Errorf("run %s: %w", row.ID, err)
	}
	return s, nil
}

// checkpoint is the latest checkpoint of a run, ready to resume from.
func (m *Manager) checkpoint(ctx context.Context, num int64) (*engine.Checkpoint, error) {
	base, err := m.store.BaseBefore(ctx, num, store.MaxSeq)
	if err != nil {
		return nil, err
	}
	states, err := m.store.StateEvents(ctx, num, base, store.MaxSeq)
	if err != nil {
		return nil, err
	}
	var fold engine.Fold
	for _, rec := range states {
		_, properties, ok := splitEvent(rec.Body)
		if !ok {
			return nil, fmt.Errorf("stored event %d has no properties", rec.Seq)
		}
		if err := fold.Observe(rec.Name, properties); err != nil {
			return nil, err
		}
	}
	cp := fold.Checkpoint()
	if cp == nil {
		return nil, nil
	}
	stages, err := m.store.Stages(ctx, num)
	if err != nil {
		return nil, err
	}
	cp.Ordinals = map[string]int{}
	for _, id := range stages {
		if node, visit, err := wire.ParseStageID(id); err == nil {
			cp.Ordinals[node] = max(cp.Ordinals[node], visit)
		}
	}
	return cp, nil
}
