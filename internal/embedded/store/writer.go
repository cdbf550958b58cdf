package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// maxBatch bounds how many requests one transaction takes, and with it how long the first of them waits.
const maxBatch = 256

// request is one caller's write. Its work may run twice (see writer.commit), so it must not change anything but the database.
type request struct {
	work  func(w *writer) error
	alone bool // outside of any transaction
	err   error
	done  chan struct{}
}

// writer owns the writing connection and its prepared statements.
type writer struct {
	store *Store
	conn  *sql.Conn

	begin, commitTx, rollback            *sql.Stmt
	insertEvent, insertRun, updateRun    *sql.Stmt
	touchRun, lastSeq, insertBlob, owner *sql.Stmt
	blobNum, insertDoc, updateDoc        *sql.Stmt
	addBytes                             *sql.Stmt
	all                                  []*sql.Stmt
}

func newWriter(ctx context.Context, s *Store) (*writer, error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, conn: conn}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commitTx, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.insertEvent, "INSERT INTO events(key, name, stage, state, body) VALUES(?, ?, ?, ?, ?)"},
		{&w.insertRun, "INSERT INTO runs(id, parent, kind, archived, slug, name, title, repo, created, updated, elapsed, ended, seq, bytes) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&w.updateRun, "UPDATE runs SET parent=?, kind=?, archived=?, slug=?, name=?, title=?, repo=?, updated=?, elapsed=?, ended=?, seq=?, bytes=bytes+? WHERE num=?"},
		{&w.insertDoc, "INSERT INTO docs(num, private, doc) VALUES(?, ?, ?)"},
		{&w.updateDoc, "UPDATE docs SET doc=? WHERE num=?"},
		{&w.touchRun, "UPDATE runs SET updated=?, seq=?, bytes=bytes+? WHERE num=?"},
		{&w.lastSeq, "SELECT seq FROM runs WHERE num=?"},
		{&w.insertBlob, "INSERT INTO blobs(hash, content) VALUES(?, ?) ON CONFLICT(hash) DO NOTHING"},
		{&w.addBytes, "UPDATE runs SET bytes=bytes+? WHERE num=?"},
		{&w.blobNum, "SELECT num FROM blobs WHERE hash=?"},
		{&w.owner, "INSERT INTO run_blobs(run, blob) VALUES(?, ?) ON CONFLICT DO NOTHING"},
	} {
		if *p.stmt, err = conn.PrepareContext(ctx, p.text); err != nil {
			w.close()
			return nil, err
		}
		w.all = append(w.all, *p.stmt)
	}
	return w, nil
}

// run serves requests until the channel is closed: it takes one, then all others that are already waiting, and commits them together.
func (w *writer) run() {
	defer close(w.store.done)
	defer w.close()
	batch := make([]*request, 0, maxBatch)
	for r := range w.store.requests {
		batch = append(batch[:0], r)
		var alone *request
	fill:
		for !r.alone && len(batch) < maxBatch {
			select {
			case r, open := <-w.store.requests:
				if !open {
					break fill
				}
				if r.alone {
					alone = r
					break fill
				}
				batch = append(batch, r)
			default:
				break fill
			}
		}
		w.commit(batch)
		for _, r := range batch {
			close(r.done)
		}
		if alone != nil {
			w.commit([]*request{alone})
			close(alone.done)
		}
	}
}

// close leaves everything in the database file itself. Without it the log would stay beside it: SQLite does not close a connection that has
// statements left. What cannot be moved there now is moved when the database is opened again.
func (w *writer) close() {
	for _, s := range w.all {
		s.Close()
	}
	w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	w.conn.Close()
}

// commit does the whole batch in one transaction. When one request fails, all are undone and each is done again in a transaction of
// its own, so that nobody pays for another's mistake.
func (w *writer) commit(batch []*request) {
	if err := w.transaction(batch); err == nil {
		return
	}
	if len(batch) == 1 {
		return
	}
	for _, r := range batch {
		r.err = nil
		w.transaction([]*request{r})
	}
}

// transaction leaves the error of a failed request, or of the transaction, in each request it concerns.
func (w *writer) transaction(batch []*request) error {
	if len(batch) == 1 && batch[0].alone {
		batch[0].err = batch[0].work(w)
		return batch[0].err
	}
	fail := func(err error) error {
		for _, r := range batch {
			if r.err == nil {
				r.err = err
			}
		}
		return err
	}
	ctx := context.Background()
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return fail(fmt.Errorf("begin: %w", err))
	}
	for _, r := range batch {
		if r.err = r.work(w); r.err != nil {
			w.rollback.ExecContext(ctx) // SQLite may have rolled back by itself (disk full); then this fails and nothing is lost
			return r.err
		}
	}
	if _, err := w.commitTx.ExecContext(ctx); err != nil {
		w.rollback.ExecContext(ctx)
		return fail(fmt.Errorf("commit: %w", err))
	}
	return nil
}

// do hands work to the writer and waits until it is committed. It does not give up when a context ends: whether the
// work was done would be unknown.
func (s *Store) do(work func(w *writer) error) error {
	return s.request(&request{work: work, done: make(chan struct{})})
}

func (s *Store) request(r *request) error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return ErrClosed
	}
	s.requests <- r
	s.mu.RUnlock()
	<-r.done
	return r.err
}

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
