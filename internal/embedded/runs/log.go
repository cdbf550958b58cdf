package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
	if q.Desc {
		slices.Reverse(recs)
	}
	rd := m.takeReader(num, recs)
	total := 0
	for len(recs) > 0 {
		n := min(len(recs), pageStep)
		part, err := rd.complete(ctx, recs[:n])
		if err != nil {
			return nil, false, err
		}
		recs = recs[n:]
		for i := range part {
			total += len(part[i].JSON)
		}
		page = append(page, part...)
		for total > maxPageBytes && len(page) > 1 && q.Desc {
			total -= len(page[0].JSON)
			page[0].JSON = nil
			page, more = page[1:], true
		}
		if total > maxPageBytes && !q.Desc && len(recs) > 0 {
			more = true
			break
		}
	}
	m.keepReader(rd)
	if q.Desc {
		slices.Reverse(page)
	}
	return page, more, nil
}

// A page ends early when it has become this large: an event can hold all that a long run knows.
const (
	maxPageBytes = 8 << 20
	pageStep     = 16 // events rendered between two looks at the size
)

// keptReaders is how many readers are kept for clients that read on page by page.
const keptReaders = 4

// takeReader returns a kept reader that stands closely before recs, or a new one.
func (m *Manager) takeReader(num int64, recs []store.Record) *reader {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, rd := range m.readers {
		if len(recs) > 0 && rd.num == num && rd.at < recs[0].Seq && rd.at+readPage >= recs[0].Seq {
			m.readers = slices.Delete(m.readers, i, i+1)
			return rd
		}
	}
	return &reader{m: m, num: num}
}

// keepReader gives a reader back for the next page.
func (m *Manager) keepReader(rd *reader) {
	if rd.at == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.readers) == keptReaders {
		m.readers = slices.Delete(m.readers, 0, 1)
	}
	m.readers = append(m.readers, rd)
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

// reader renders a run's events in ascending order. It remembers the state it has read its way to, so that reading on costs nothing twice.
type reader struct {
	m    *Manager
	num  int64
	fold engine.Fold
	at   int64 // what events up to here say is in fold; 0: nothing was read
}

// complete renders the events whose state is stored as changes; the ones the caller skipped, and those since the last
// base, are read from the store. Records must be in ascending order, and above what was read before.
func (rd *reader) complete(ctx context.Context, recs []store.Record) ([]Event, error) {
	out := make([]Event, len(recs))
	for i := range recs {
		out[i] = Event{Seq: recs[i].Seq, Name: recs[i].Name, JSON: recs[i].Body}
		seq := recs[i].Seq
		if recs[i].State == store.NoState {
			if rd.at == seq-1 {
				rd.at = seq // nothing was skipped
			}
			continue
		}
		if rd.at == 0 {
			base, err := rd.m.store.BaseBefore(ctx, rd.num, seq)
			if err != nil {
				return nil, err
			}
			rd.at = base - 1
		}
		if rd.at < seq-1 {
			if err := rd.observe(ctx, seq); err != nil {
				return nil, err
			}
		}
		h, properties, ok := splitEvent(recs[i].Body)
		if !ok {
			return nil, fmt.Errorf("stored event %d has no properties", seq)
		}
		full, err := rd.fold.Render(recs[i].Name, properties)
		if err != nil {
			return nil, err
		}
		out[i].JSON = joinEvent(h, full)
		rd.at = seq
	}
	return out, nil
}

// observe reads the changes of state between rd.at and to.
func (rd *reader) observe(ctx context.Context, to int64) error {
	states, err := rd.m.store.StateEvents(ctx, rd.num, rd.at+1, to)
	if err != nil {
		return err
	}
	for _, rec := range states {
		_, properties, ok := splitEvent(rec.Body)
		if !ok {
			return fmt.Errorf("stored event %d has no properties", rec.Seq)
		}
		if err := rd.fold.Observe(rec.Name, properties); err != nil {
			return err
		}
	}
	rd.at = to - 1
	return nil
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
