package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Row is the derived row of a run: what lists sort, filter and search by, and Doc, the state of the run as package projection writes it.
type Row struct {
	Num       int64 // the store's own number of the run
	ID        string
	Parent    string // run id or ""
	Kind      string // status kind
	Archived  bool
	Slug      string
	Name      string
	Title     string
	Repo      string
	Created   time.Time
	Updated   time.Time // time of the last event
	ElapsedMS int64
	Ended     time.Time // zero while the run has not ended
	Seq       int64     // last sequence number
	Bytes     int64     // stored bytes of all events and blobs
	Private   []byte    // set once, when the run is created; no event shows it
	Doc       []byte
}

const rowColumns = "r.num, id, parent, kind, archived, slug, name, title, repo, created, updated, elapsed, ended, seq, bytes, private, doc"

// Create makes a run with its first events and blobs. It sets row.Num, row.Seq and row.Bytes.
func (s *Store) Create(row *Row, records []Record, blobs ...[]byte) error {
	return s.do(func(w *writer) error {
		res, err := w.insertRun.Exec(row.ID, nullString(row.Parent), row.Kind, row.Archived, row.Slug, row.Name, row.Title, row.Repo, row.Created.UnixMicro(),
			row.Updated.UnixMicro(), row.ElapsedMS, nullMicros(row.Ended), 0, 0)
		if err != nil {
			if strings.Contains(err.Error(), "UNIQUE") {
				return ErrExists
			}
			return err
		}
		num, err := res.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := w.insertDoc.Exec(num, row.Private, row.Doc); err != nil {
			return err
		}
		size, err := w.insertEvents(num, records)
		if err != nil {
			return err
		}
		seq := records[len(records)-1].Seq
		if _, err := w.touchRun.Exec(row.Updated.UnixMicro(), seq, size, num); err != nil {
			return err
		}
		for _, content := range blobs {
			if err := w.putBlob(num, Hash(content), content); err != nil {
				return err
			}
			size += int64(len(content))
		}
		row.Num, row.Seq, row.Bytes = num, seq, size
		return nil
	})
}

// Run returns the row of a run.
func (s *Store) Run(ctx context.Context, id string) (*Row, error) {
	rows, err := s.rows(ctx, "WHERE id = ?", id)
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return &rows[0], nil
}

// Query says which runs a list shows and in which order.
type Query struct {
	Kinds           []string // nil: all
	ExcludeKinds    []string
	Archived        *bool  // nil: both
	ArchivedOrKinds bool   // archived runs, or unarchived ones of Kinds
	Parent          string // "": any
	Sort            Sort
	Ascending       bool
	Limit, Offset   int
}

// Sort is an order of a list. Ties go by id in the same direction.
type Sort string

// The orders of a list.
const (
	SortCreated  Sort = "created"
	SortUpdated  Sort = "updated"
	SortElapsed  Sort = "elapsed"
	SortRepo     Sort = "repo"
	SortTitle    Sort = "title"
	SortWorkflow Sort = "name"
	SortStatus   Sort = "status"
)

// boardRank orders runs as the columns of Fabro's board do.
const boardRank = `CASE WHEN archived THEN 7 ELSE CASE kind WHEN 'submitted' THEN 0 WHEN 'pending' THEN 0 WHEN 'runnable' THEN 1 WHEN 'starting' THEN 2
	WHEN 'running' THEN 3 WHEN 'paused' THEN 3 WHEN 'blocked' THEN 4 WHEN 'succeeded' THEN 5 WHEN 'removing' THEN 8 ELSE 6 END END`

func (q *Query) where() (string, []any) {
	var conds []string
	var args []any
	kinds := func(list []string) string {
		for _, k := range list {
			args = append(args, k)
		}
		return "kind IN (?" + strings.Repeat(",?", len(list)-1) + ")"
	}
	if q.Parent != "" {
		conds = append(conds, "parent = ?")
		args = append(args, q.Parent)
	}
	if len(q.Kinds) > 0 {
		c := kinds(q.Kinds)
		if q.ArchivedOrKinds {
			c = "(archived OR " + c + ")"
		}
		conds = append(conds, c)
	}
	if len(q.ExcludeKinds) > 0 {
		conds = append(conds, "NOT "+kinds(q.ExcludeKinds))
	}
	if q.Archived != nil {
		conds = append(conds, "archived = ?")
		args = append(args, *q.Archived)
	}
	if len(conds) == 0 {
		return "", nil
	}
	return "WHERE " + strings.Join(conds, " AND "), args
}

// List returns one page of runs and how many there are in all pages.
func (s *Store) List(ctx context.Context, q Query) (page []Row, total int, err error) {
	where, args := q.where()
	if err := s.read.QueryRowContext(ctx, "SELECT count(*) FROM runs "+where, args...).Scan(&total); err != nil {
		return nil, 0, err
	}
	dir := " DESC"
	if q.Ascending {
		dir = " ASC"
	}
	order := "id" + dir
	switch q.Sort {
	case "", SortCreated: // the id is a ULID: it begins with the time of creation
	case SortStatus:
		order = boardRank + dir + ", " + order
	case SortUpdated, SortElapsed, SortRepo, SortTitle, SortWorkflow:
		order = string(q.Sort) + dir + ", " + order
	}
	page, err = s.rows(ctx, where+" ORDER BY "+order+" LIMIT ? OFFSET ?", append(args, q.Limit, q.Offset)...)
	return page, total, err
}

// Prefix returns the ids that begin with prefix, at most limit of them, newest first.
func (s *Store) Prefix(ctx context.Context, prefix string, limit int) ([]Row, error) {
	// Ids are upper-case ASCII; '~' is above every letter.
	return s.rows(ctx, "WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?", prefix, prefix+"~", limit)
}

// NewestNamed returns the newest run whose slug or name fits. It asks once for each pair of the two that there is.
func (s *Store) NewestNamed(ctx context.Context, fits func(slug, name string) bool) (*Row, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT slug, name, max(id) FROM runs INDEXED BY runs_names GROUP BY slug, name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	newest := ""
	for rows.Next() {
		var slug, name, id string
		if err := rows.Scan(&slug, &name, &id); err != nil {
			return nil, err
		}
		if id > newest && fits(slug, name) {
			newest = id
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if newest == "" {
		return nil, ErrNotFound
	}
	return s.Run(ctx, newest)
}

// OfKinds returns all runs with one of these status kinds, oldest first.
func (s *Store) OfKinds(ctx context.Context, kinds ...string) ([]Row, error) {
	q := Query{Kinds: kinds}
	where, args := q.where()
	return s.rows(ctx, where+" ORDER BY id", args...)
}

// EndedBefore returns the runs that ended before t and have no event since.
func (s *Store) EndedBefore(ctx context.Context, t time.Time) ([]Row, error) {
	return s.rows(ctx, "WHERE ended IS NOT NULL AND ended < ? AND updated < ? AND kind IN ('succeeded', 'failed', 'dead') ORDER BY id", t.UnixMicro(), t.UnixMicro())
}

// Children counts the children of each of the runs that has any.
func (s *Store) Children(ctx context.Context, ids ...string) (map[string]int64, error) {
	counts := map[string]int64{}
	if len(ids) == 0 {
		return counts, nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := s.read.QueryContext(ctx, "SELECT parent, count(*) FROM runs WHERE parent IN (?"+strings.Repeat(",?", len(ids)-1)+") GROUP BY parent", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}

// Counts returns how many runs there are of each status kind.
func (s *Store) Counts(ctx context.Context) (map[string]int64, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT kind, count(*) FROM runs GROUP BY kind")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int64{}
	for rows.Next() {
		var kind string
		var n int64
		if err := rows.Scan(&kind, &n); err != nil {
			return nil, err
		}
		counts[kind] = n
	}
	return counts, rows.Err()
}

// freedPages is how many pages a deletion gives back to the file system at once, so that others do not wait long; more
// go with the next one.
const freedPages = 5000

// Delete removes a run with its events, and the blobs that no other run has.
func (s *Store) Delete(num int64) error {
	err := s.do(func(w *writer) error {
		for _, q := range []string{
			"DELETE FROM blobs WHERE num IN (SELECT blob FROM run_blobs WHERE run = ?1 AND NOT EXISTS (SELECT 1 FROM run_blobs o WHERE o.blob = run_blobs.blob AND o.run <> ?1))",
			"DELETE FROM run_blobs WHERE run = ?1",
			"DELETE FROM events WHERE key >= ?1 << 32 AND key < (?1 + 1) << 32",
			"DELETE FROM docs WHERE num = ?1",
			"DELETE FROM runs WHERE num = ?1",
		} {
			if _, err := w.conn.ExecContext(context.Background(), q, num); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.request(&request{alone: true, done: make(chan struct{}), work: func(w *writer) error {
		_, err := w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA incremental_vacuum(%d)", freedPages))
		return err
	}})
}

// Vacuum gives the space of deleted runs back to the file system. Nothing else can be written meanwhile.
func (s *Store) Vacuum(ctx context.Context) error {
	return s.request(&request{alone: true, done: make(chan struct{}), work: func(w *writer) error {
		for _, q := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if _, err := w.conn.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (s *Store) rows(ctx context.Context, tail string, args ...any) ([]Row, error) {
	// The documents are joined to the rows of the page only.
	rows, err := s.read.QueryContext(ctx, "SELECT "+rowColumns+" FROM (SELECT * FROM runs "+tail+") r CROSS JOIN docs d ON d.num = r.num", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Row
	for rows.Next() {
		var r Row
		var parent sql.NullString
		var created, updated int64
		var ended sql.NullInt64
		if err := rows.Scan(&r.Num, &r.ID, &parent, &r.Kind, &r.Archived, &r.Slug, &r.Name, &r.Title, &r.Repo, &created, &updated, &r.ElapsedMS,
			&ended, &r.Seq, &r.Bytes, &r.Private, &r.Doc); err != nil {
			return nil, err
		}
		r.Parent, r.Created, r.Updated = parent.String, time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
		if ended.Valid {
			r.Ended = time.UnixMicro(ended.Int64).UTC()
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func nullString(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}
