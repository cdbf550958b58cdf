// Package store keeps the runs of the embedded Fabro server in one SQLite database.
//
// The events of a run are the only truth: an append-only log with a sequence number that starts at 1 and has no gaps. Beside it there are
// blobs, found by the SHA-256 of their content, and one derived row a run that lists and searches are answered from. A row is
// written in the same transaction as the events it is derived from and can be derived again at any time.
//
// All writes go through one goroutine that commits together whatever waits (group commit), so that many runs share the price of a commit.
// An append has returned only when its transaction is committed: with the default synchronous=NORMAL it then survives the death of the
// process, with FULL also the loss of power.
//
// The package knows events as JSON texts with a name; what they mean is the business of package projection.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Errors a caller can tell apart.
var (
	// ErrNotFound means that there is no such run, event or blob.
	ErrNotFound = errors.New("not found")
	// ErrExists means that a run with this id is already there.
	ErrExists = errors.New("already exists")
	// ErrClosed means that the store was closed before or while the call waited.
	ErrClosed = errors.New("the store is closed")
	// ErrGap means that an append did not begin one above the last sequence number of its run.
	ErrGap = errors.New("sequence number out of order")
)

// NewerSchemaError says that the database was written by a newer version of this program. The file is left untouched.
type NewerSchemaError struct {
	Path  string
	Found int // schema version of the file
	Known int // newest schema version this program knows
}

func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("%s has schema version %d, this program knows versions up to %d: use the newer fabro that wrote it, or another storage directory", e.Path, e.Found, e.Known)
}

// Options of a store; the zero value works.
type Options struct {
	// Synchronous is SQLite's synchronous setting, "normal" (default: survives kill -9) or "full" (survives loss of power).
	Synchronous string
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	path  string
	read  *sql.DB // query-only connections
	write *sql.DB // exactly one connection, used by the writer goroutine alone

	requests chan *request
	done     chan struct{} // closed when the writer has returned
	mu       sync.RWMutex  // guards closed against sends on requests
	closed   bool
}

// Open opens the database at path, makes it when it is missing, and brings an older schema up to date.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	level := strings.ToUpper(opts.Synchronous)
	switch level {
	case "":
		level = "NORMAL"
	case "NORMAL", "FULL":
	default:
		return nil, fmt.Errorf("synchronous must be \"normal\" or \"full\", not %q", opts.Synchronous)
	}
	if err := refuseNewer(path); err != nil {
		return nil, err
	}
	// The file is made here so that it has its mode from the start; SQLite gives the same mode to its -wal and -shm.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.Close()
	write, err := sql.Open("sqlite", dsn(path, "busy_timeout(10000)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous("+level+")", "foreign_keys(1)",
		"journal_size_limit(67108864)", "wal_autocheckpoint(2000)", "cache_size(-4000)"))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := migrate(ctx, write, path); err != nil {
		write.Close()
		return nil, err
	}
	read, err := sql.Open("sqlite", dsn(path, "busy_timeout(10000)", "query_only(1)", "cache_size(-2000)"))
	if err != nil {
		write.Close()
		return nil, err
	}
	read.SetMaxOpenConns(max(2, min(4, runtime.NumCPU())))
	read.SetMaxIdleConns(2)
	s := &Store{path: path, read: read, write: write, requests: make(chan *request, 256), done: make(chan struct{})}
	w, err := newWriter(ctx, s)
	if err != nil {
		read.Close()
		write.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	go w.run()
	return s, nil
}

// Close waits for the writes in hand and closes the database.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.requests)
	s.mu.Unlock()
	err := s.read.Close() // before the writer ends: readers would keep it from emptying the log
	<-s.done
	return errors.Join(err, s.write.Close())
}

// Check runs SQLite's integrity check and returns what it found wrong, or nil.
func (s *Store) Check(ctx context.Context) error {
	rows, err := s.read.QueryContext(ctx, "PRAGMA integrity_check(20)")
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is damaged: %s", s.path, strings.Join(found, "; "))
	}
	return nil
}

// Size is how many bytes the database and its write-ahead log take on disk.
func (s *Store) Size() int64 {
	var n int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

func dsn(path string, pragmas ...string) string {
	q := url.Values{}
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	q.Set("_txlock", "immediate")
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}
