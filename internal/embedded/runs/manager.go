// Package runs is the heart of the embedded server: it creates runs, queues and executes them, and does to them what the API asks.
//
// A run is loaded while somebody needs it (an engine works on it, a request looks at it, a stream follows it) and is
// one value with one lock then; everything that happens to it goes through its append, in this order:
//
//	event → projection.State refuses or accepts it → store commits it → state, followers and scheduler see it
//
// so that nothing is shown that is not durable, and nothing is stored that Fabro's transitions forbid.
//
// The package may import fabroapi/wire, internal/workflow and the other packages of internal/embedded except api and daemon.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/projection"
	"fabro-mcp/internal/embedded/store"
)

// Defaults of Config.
const (
	DefaultMaxConcurrent = 5
	DefaultMaxRunBytes   = 1 << 30
)

// Config says how runs are kept and executed. Store and Dir are required.
type Config struct {
	Store *store.Store
	// Dir holds one directory a run, named after its id.
	Dir     string
	Version string
	// MaxConcurrent is how many runs execute at once (see scheduler), default 5.
	MaxConcurrent int
	// MaxRunBytes bounds the stored events and outputs of one run, default 1 GiB; a run that goes beyond fails.
	MaxRunBytes int64
	// AgentCommand is used for agent and prompt stages of runs that were created without a command of their own.
	AgentCommand []string
	// Environ is the environment that commands start from; os.Environ when nil.
	Environ func() []string
	Logger  *slog.Logger
	Now     func() time.Time
}

// Manager owns all runs of one store.
type Manager struct {
	cfg   Config
	store *store.Store
	log   *slog.Logger

	ctx  context.Context // ends with the manager
	stop context.CancelCauseFunc
	quit chan struct{}  // closed when the manager begins to close
	work sync.WaitGroup // executions and what outlives a request

	mu       sync.Mutex // guards the fields below
	loaded   map[string]*run
	watchers map[*Watcher]struct{}
	readers  []*reader // see takeReader

	sched scheduler
}

// Open takes over the runs of a store: those that an earlier process left unfinished are closed as Fabro does it, those
// that waited for their turn are queued again.
func Open(ctx context.Context, cfg Config) (*Manager, error) {
	if cfg.MaxConcurrent <= 0 {
		cfg.MaxConcurrent = DefaultMaxConcurrent
	}
	if cfg.MaxRunBytes <= 0 {
		cfg.MaxRunBytes = DefaultMaxRunBytes
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	m := &Manager{cfg: cfg, store: cfg.Store, log: cfg.Logger, loaded: map[string]*run{}, watchers: map[*Watcher]struct{}{}, quit: make(chan struct{})}
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	m.sched.init(m, cfg.MaxConcurrent)
	if err := m.recover(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Store is the store the manager works on.
func (m *Manager) Store() *store.Store { return m.store }

// RunDir is the directory of a run's files.
func (m *Manager) RunDir(id string) string { return filepath.Join(m.cfg.Dir, id) }

// Close ends all executions (their runs become failed with reason terminated), and waits for them until ctx ends.
// The store stays open. It may be called once.
func (m *Manager) Close(ctx context.Context) error {
	close(m.quit)
	m.sched.halt()
	m.endAll()
	done := make(chan struct{})
	go func() { m.work.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("some runs did not stop in time: %w", ctx.Err())
	}
	m.stop(errors.New("the server stops"))
	return err
}

// run is a loaded run.
type run struct {
	m   *Manager
	id  string
	num int64

	refs  int           // guarded by Manager.mu
	ready chan struct{} // closed when loaded or failed
	err   error

	mu        sync.Mutex // guards the fields below
	state     projection.State
	bytes     int64
	private   private
	exec      *execution
	mailboxes map[string]*mailbox
	changed   chan struct{} // closed and replaced after every append
	gone      bool          // deleted
}

// private is what a run needs to execute and no event shows.
type private struct {
	AgentCommand []string `json:"agent_command,omitempty"`
}

// acquire loads a run, or takes the one that is already loaded. Every acquire is followed by one release.
func (m *Manager) acquire(ctx context.Context, id string) (*run, error) {
	m.mu.Lock()
	r, ok := m.loaded[id]
	if !ok {
		r = &run{m: m, id: id, ready: make(chan struct{}), changed: make(chan struct{}), mailboxes: map[string]*mailbox{}}
		m.loaded[id] = r
	}
	r.refs++
	m.mu.Unlock()
	if !ok {
		r.err = r.load(context.WithoutCancel(ctx))
		close(r.ready)
	}
	<-r.ready
	err := r.err
	if err == nil {
		r.mu.Lock()
		if r.gone {
			err = errNoRun // somebody still follows a run that was deleted
		}
		r.mu.Unlock()
	}
	if err != nil {
		m.release(r)
		return nil, err
	}
	return r, nil
}

// release gives a run back; the last one unloads it.
func (m *Manager) release(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.refs--
	if r.refs == 0 && m.loaded[r.id] == r {
		delete(m.loaded, r.id)
	}
}

// adopt puts a run that was just created among the loaded ones.
func (m *Manager) adopt(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.refs = 1
	m.loaded[r.id] = r
}

func (r *run) load(ctx context.Context) error {
	row, err := r.m.store.Run(ctx, r.id)
	if errors.Is(err, store.ErrNotFound) {
		return errNoRun
	}
	if err != nil {
		return err
	}
	r.num, r.bytes = row.Num, row.Bytes
	if len(row.Private) > 0 {
		if err := json.Unmarshal(row.Private, &r.private); err != nil {
			return fmt.Errorf("run %s: %w", r.id, err)
		}
	}
	r.state, err = r.m.stateOf(ctx, row)
	return err
}

// stateOf is the state in a row. A row written by another version of the reducer is derived again from the log.
func (m *Manager) stateOf(ctx context.Context, row *store.Row) (projection.State, error) {
	var d rowDoc
	if err := json.Unmarshal(row.Doc, &d); err != nil || d.Version != rowVersion {
		return m.replay(ctx, row)
	}
	// Events that change nothing but the time of the last event are not in the document.
	d.LastSeq = row.Seq
	at := row.Updated
	d.Run.Timestamps.LastEventAt = &at
	return d.State, nil
}

// rowVersion changes when documents in rows have to be derived again.
const rowVersion = 1

type rowDoc struct {
	Version int `json:"version"`
	projection.State
}

// row is the derived row of a state. Without full it only moves the time of the last event on.
func (r *run) row(s *projection.State, full bool) (*store.Row, error) {
	row := &store.Row{Num: r.num, ID: r.id, Updated: *s.Run.Timestamps.LastEventAt}
	if !full {
		return row, nil
	}
	doc, err := json.Marshal(rowDoc{rowVersion, *s})
	if err != nil {
		return nil, err
	}
	row.Kind, row.Archived, row.Title, row.Doc = s.Status().Kind, s.Run.Lifecycle.Archived, s.Run.Title, doc
	row.Created = s.Run.Timestamps.CreatedAt
	row.ElapsedMS = s.Elapsed().Milliseconds()
	if s.Run.ParentID != nil {
		row.Parent = *s.Run.ParentID
	}
	if s.Run.Workflow.Slug != nil {
		row.Slug = *s.Run.Workflow.Slug
	}
	if s.Run.Workflow.Name != nil {
		row.Name = *s.Run.Workflow.Name
	}
	if s.Run.Repository != nil {
		row.Repo = s.Run.Repository.Name
	}
	if s.Run.Timestamps.CompletedAt != nil {
		row.Ended = *s.Run.Timestamps.CompletedAt
	}
	return row, nil
}

// view is the run as the API shows it. The caller holds r.mu or owns r alone.
func (r *run) viewLocked() wire.Run {
	v := r.state.Run
	if pos := r.m.sched.position(r); pos > 0 {
		v.Lifecycle.QueuePosition = &pos
	}
	return v
}

// view is viewLocked with the number of children.
func (r *run) view(ctx context.Context) (*wire.Run, error) {
	r.mu.Lock()
	v := r.viewLocked()
	r.mu.Unlock()
	n, err := r.m.store.Children(ctx, r.id)
	if err != nil {
		return nil, err
	}
	v.ChildrenCount = int(n[r.id])
	return &v, nil
}
