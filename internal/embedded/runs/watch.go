package runs

import (
	"context"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/store"
)

// watchBuffer is how many events a watcher may lag behind before it loses some.
const watchBuffer = 1024

// Watcher follows the events of all runs, or of some. It sees what happens after it was made, and loses events when it lags: Fabro's
// system-wide stream promises no more.
type Watcher struct {
	Events <-chan Notice
	events chan Notice
	m      *Manager
	only   map[string]bool
}

// Notice is one event as a watcher sees it.
type Notice struct {
	RunID string
	Seq   int64
	JSON  []byte // the envelope
	// Partial events hold only what changed in the run's context; the whole has to be read from the log.
	Partial bool
}

// Watch returns a watcher of the runs with these ids, of all when there are none. It must be closed.
func (m *Manager) Watch(ids ...string) *Watcher {
	w := &Watcher{m: m, events: make(chan Notice, watchBuffer)}
	w.Events = w.events
	if len(ids) > 0 {
		w.only = map[string]bool{}
		for _, id := range ids {
			w.only[id] = true
		}
	}
	m.mu.Lock()
	m.watchers[w] = struct{}{}
	m.mu.Unlock()
	return w
}

// Close ends the watching.
func (w *Watcher) Close() {
	w.m.mu.Lock()
	delete(w.m.watchers, w)
	w.m.mu.Unlock()
}

// publish shows new events to the watchers. Called with r.mu held; it never waits.
func (m *Manager) publish(r *run, recs []store.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.watchers {
		if w.only != nil && !w.only[r.id] {
			continue
		}
		for i := range recs {
			select {
			case w.events <- Notice{r.id, recs[i].Seq, recs[i].Body, recs[i].State != store.NoState}:
			default:
			}
		}
	}
}

// Follow calls show with the events of a run from sequence number since on (0: only what comes), stored ones first,
// then new ones as they are appended. It returns nil after the first terminal event it has shown, and when the run is
// not being worked on and nothing is left; or the error of show or ctx. It reads from the store at the reader's own
// pace, so that a slow reader costs nothing and loses nothing.
func (m *Manager) Follow(ctx context.Context, id string, since int64, show func(ev Event) error, idle func() error) error {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer m.release(r)
	r.mu.Lock()
	if since <= 0 {
		since = r.state.LastSeq + 1
	}
	r.mu.Unlock()
	rd := &reader{m: m, num: r.num}
	for {
		r.mu.Lock()
		changed, last := r.changed, r.state.LastSeq
		active := activeKind(r.state.Status().Kind)
		gone := r.gone
		r.mu.Unlock()
		for since <= last && !gone {
			recs, err := m.store.Events(ctx, r.num, since, followPage)
			if err != nil {
				return err
			}
			if len(recs) == 0 {
				break
			}
			page, err := rd.complete(ctx, recs)
			if err != nil {
				return err
			}
			for _, ev := range page {
				if err := show(ev); err != nil {
					return err
				}
				since = ev.Seq + 1
				if wire.TerminalEvent(ev.Name) {
					return nil
				}
			}
		}
		if gone || !active {
			return nil
		}
		if err := idle(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followPage is how many events a follower reads at once.
const followPage = 64

// activeKind says whether a run of this status will have further events by itself or by somebody's decision.
func activeKind(kind string) bool {
	return !wire.Terminal(kind) && kind != wire.StatusRemoving
}
