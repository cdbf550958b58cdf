package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Record is one event on its way into the store or out of it.
type Record struct {
	Seq   int64
	Name  string
	Stage string // stage id or ""
	State State
	Body  []byte // the envelope as JSON
}

// State says whether an event carries a change of its run's state, which is rendered in full only by reading the changes before it.
type State int8

// Kinds of State.
const (
	NoState     State = iota
	StateChange       // builds on the changes since the last base
	StateBase         // holds the whole state: reading may start here
)

// MaxSeq is the highest sequence number an event can have.
const MaxSeq = 1<<seqBits - 1

const seqBits = 32

// eventKey is the place of an event in the table; a number that is too high means the end of the run's log.
func eventKey(num, seq int64) int64 { return num<<seqBits | min(seq, MaxSeq) }

// Append adds the records to the run's log and brings its row up to date, all or nothing. The first record must be one above the last
// of the run. A row without Doc only has its last event moved on.
func (s *Store) Append(num int64, records []Record, row *Row) error {
	if len(records) == 0 {
		return nil
	}
	return s.do(func(w *writer) error { return w.append(num, records, row) })
}

func (w *writer) append(num int64, records []Record, row *Row) error {
	var last int64
	if err := w.lastSeq.QueryRow(num).Scan(&last); err != nil {
		if isNoRows(err) {
			return ErrNotFound
		}
		return err
	}
	if records[0].Seq != last+1 {
		return fmt.Errorf("%w: event %d after %d", ErrGap, records[0].Seq, last)
	}
	size, err := w.insertEvents(num, records)
	if err != nil {
		return err
	}
	last = records[len(records)-1].Seq
	if row.Doc == nil {
		_, err = w.touchRun.Exec(row.Updated.UnixMicro(), last, size, num)
	} else {
		_, err = w.updateRun.Exec(nullString(row.Parent), row.Kind, row.Archived, row.Slug, row.Name, row.Title, row.Repo, row.Updated.UnixMicro(),
			row.ElapsedMS, nullMicros(row.Ended), last, size, num)
		if err == nil {
			_, err = w.updateDoc.Exec(row.Doc, num)
		}
	}
	return err
}

func (w *writer) insertEvents(num int64, records []Record) (size int64, err error) {
	for i := range records {
		r := &records[i]
		if i > 0 && r.Seq != records[i-1].Seq+1 {
			return 0, fmt.Errorf("%w: event %d after %d", ErrGap, r.Seq, records[i-1].Seq)
		}
		if r.Seq >= MaxSeq {
			return 0, fmt.Errorf("a run cannot have more than %d events", int64(MaxSeq-1))
		}
		if _, err := w.insertEvent.Exec(eventKey(num, r.Seq), r.Name, nullString(r.Stage), nullState(r.State), r.Body); err != nil {
			return 0, err
		}
		size += int64(len(r.Body))
	}
	return size, nil
}

// Events returns up to limit events of a run from sequence number since on, in order.
func (s *Store) Events(ctx context.Context, num, since int64, limit int) ([]Record, error) {
	return s.page(ctx, num, "SELECT key, name, stage, state, body FROM events WHERE key >= ? AND key <= ? ORDER BY key LIMIT ?",
		eventKey(num, max(since, 1)), eventKey(num+1, 0)-1, limit)
}

// EventsBefore returns up to limit events of a run below sequence number before (0: from the end), newest first.
func (s *Store) EventsBefore(ctx context.Context, num, before int64, limit int) ([]Record, error) {
	end := eventKey(num+1, 0) - 1
	if before > 0 {
		end = eventKey(num, before) - 1
	}
	return s.page(ctx, num, "SELECT key, name, stage, state, body FROM events WHERE key >= ? AND key <= ? ORDER BY key DESC LIMIT ?",
		eventKey(num, 1), end, limit)
}

// StageEvents returns up to limit events of one stage from sequence number since on.
func (s *Store) StageEvents(ctx context.Context, num int64, stage string, since int64, limit int) ([]Record, error) {
	return s.page(ctx, num, "SELECT key, name, stage, state, body FROM events WHERE key >= ? AND key <= ? AND stage = ? ORDER BY key LIMIT ?",
		eventKey(num, max(since, 1)), eventKey(num+1, 0)-1, stage, limit)
}

// Last returns the newest event of the run with this name, or ErrNotFound.
func (s *Store) Last(ctx context.Context, num int64, name string) (*Record, error) {
	recs, err := s.page(ctx, num, "SELECT key, name, stage, state, body FROM events WHERE key >= ? AND key <= ? AND name = ? ORDER BY key DESC LIMIT 1",
		eventKey(num, 1), eventKey(num+1, 0)-1, name)
	if err == nil && len(recs) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &recs[0], nil
}

// StateEvents returns the events from..to-1 of a run that carry state.
func (s *Store) StateEvents(ctx context.Context, num, from, to int64) ([]Record, error) {
	return s.page(ctx, num, "SELECT key, name, stage, state, body FROM events INDEXED BY events_state WHERE key >= ? AND key < ? AND state IS NOT NULL ORDER BY key", eventKey(num, from), eventKey(num, to))
}

// BaseBefore returns the sequence number of the last base below or at seq, or 1 when there is none.
func (s *Store) BaseBefore(ctx context.Context, num, seq int64) (int64, error) {
	var key sql.NullInt64
	err := s.read.QueryRowContext(ctx, "SELECT max(key) FROM events INDEXED BY events_base WHERE key >= ? AND key <= ? AND state = 2", eventKey(num, 1), eventKey(num, seq)).Scan(&key)
	if err != nil || !key.Valid {
		return 1, err
	}
	return key.Int64 - num<<seqBits, nil
}

// Stages returns the distinct stage ids of a run's events.
func (s *Store) Stages(ctx context.Context, num int64) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT DISTINCT stage FROM events WHERE key >= ? AND key < ? AND stage IS NOT NULL", eventKey(num, 1), eventKey(num+1, 0))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// page reads events; its query selects key, name, stage, state, body.
func (s *Store) page(ctx context.Context, num int64, query string, args ...any) ([]Record, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var recs []Record
	for rows.Next() {
		var r Record
		var key int64
		var stage sql.NullString
		var state sql.NullInt64
		if err := rows.Scan(&key, &r.Name, &stage, &state, &r.Body); err != nil {
			return nil, err
		}
		r.Seq, r.Stage, r.State = key-num<<seqBits, stage.String, State(state.Int64)
		recs = append(recs, r)
	}
	return recs, rows.Err()
}

func nullState(s State) any {
	if s == NoState {
		return nil
	}
	return int64(s)
}
