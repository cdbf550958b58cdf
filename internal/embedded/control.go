package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/embedded/store"
)

// State is how a server is.
type State int

// States of a server.
const (
	Stopped      State = iota // nobody holds the lock
	Running                   // it answers
	Unresponsive              // somebody holds the lock and does not answer: starting, stopping or stuck
)

func (s State) String() string {
	return [...]string{"stopped", "running", "unresponsive"}[s]
}

// ErrNotRunning means that there is no server to act on.
var ErrNotRunning = errors.New("the embedded server is not running")

// Status says whether the server of a storage directory lives. The record is nil when it is stopped, and may be nil
// when it is unresponsive. What a dead server has left behind is cleaned up.
func Status(ctx context.Context, cfg Config) (*wire.ServerRecord, State, error) {
	rec := cfg.readRecord()
	if rec != nil && cfg.healthy(ctx, rec) {
		return rec, Running, nil
	}
	if _, err := os.Stat(cfg.dir()); errors.Is(err, os.ErrNotExist) {
		return nil, Stopped, nil
	}
	lock, err := cfg.tryLock()
	if err != nil {
		return nil, Stopped, err
	}
	if lock == nil {
		return rec, Unresponsive, nil
	}
	defer lock.Unlock()
	if rec := cfg.readRecord(); rec != nil {
		if isSocket(rec.Bind.Unix) {
			os.Remove(rec.Bind.Unix)
		}
		os.Remove(cfg.recordPath())
	}
	return nil, Stopped, nil
}

// stopTimeout is how long a server may take to end: as long as its runs and last requests may.
const stopTimeout = stopPatience + lastRequests + 3*time.Second

// Stop ends the server in an orderly way and waits until it is gone. One that is just starting is waited for first.
// ErrNotRunning: there was none.
func Stop(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var asked *wire.ServerRecord
	for first := true; ; first = false {
		rec, state, err := Status(ctx, cfg)
		switch {
		case err != nil:
			return err
		case state == Stopped && first:
			return ErrNotRunning
		case state == Stopped:
			return nil
		case asked != nil && rec != nil && (rec.PID != asked.PID || !rec.StartedAt.Equal(asked.StartedAt)):
			return nil // it is gone, and another has taken its place
		case asked == nil && state == Running:
			if err := cfg.client(rec).do(ctx, http.MethodPost, wire.APIPrefix+"/embedded/stop", nil, nil); err != nil {
				terminate(rec.PID)
			}
			asked = rec
		}
		select {
		case <-ctx.Done():
			return cfg.stopByForce(rec)
		case <-tick.C:
		}
	}
}

// stopByForce asks a server that neither answers nor ends by a signal, and says that it may take a while.
func (c *Config) stopByForce(rec *wire.ServerRecord) error {
	if rec == nil {
		return fmt.Errorf("an embedded server holds %s and does not answer; see %s", c.lockPath(), c.logPath())
	}
	terminate(rec.PID)
	return fmt.Errorf("the embedded server (pid %d) does not stop; it was sent a signal, see %s", rec.PID, c.logPath())
}

// Report is what Prune did.
type Report struct {
	Runs  int   // how many were removed
	Bytes int64 // of events they took
}

// Prune removes the runs that ended longer ago than olderThan, by way of the living server, or directly when there is none.
func Prune(ctx context.Context, cfg Config, olderThan time.Duration) (Report, error) {
	if olderThan <= 0 {
		return Report{}, fmt.Errorf("the age must be above 0, not %s", olderThan)
	}
	rec, state, err := Status(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	switch state {
	case Running:
		var answer struct {
			Deleted int   `json:"deleted_count"`
			Freed   int64 `json:"freed_bytes"`
		}
		err := cfg.client(rec).do(ctx, http.MethodPost, wire.APIPrefix+"/system/prune/runs", map[string]any{"dry_run": false, "older_than": olderThan.String()}, &answer)
		return Report{answer.Deleted, answer.Freed}, err
	case Unresponsive:
		return Report{}, errors.New("the embedded server does not answer; try again")
	}
	if _, err := os.Stat(cfg.dbPath()); errors.Is(err, os.ErrNotExist) {
		return Report{}, nil
	}
	lock, err := cfg.lock(ctx)
	if err != nil {
		return Report{}, err
	}
	defer lock.Unlock()
	st, err := store.Open(ctx, cfg.dbPath(), store.Options{Synchronous: cfg.Synchronous})
	if err != nil {
		return Report{}, err
	}
	defer st.Close()
	n, bytes, err := runs.Prune(ctx, st, cfg.runsDir(), time.Now().Add(-olderThan))
	if err == nil && n > 0 {
		err = st.Vacuum(ctx)
	}
	return Report{n, bytes}, err
}

// pruneEvery is how often the retention of ended runs is looked after.
const pruneEvery = time.Hour

// startPruning removes runs that are older than the retention, now and then, for as long as the server lives.
func (s *server) startPruning(ctx context.Context) {
	if s.cfg.Retention <= 0 {
		return
	}
	ctx, s.quit = context.WithCancel(ctx)
	s.prune.Add(1)
	go func() {
		defer s.prune.Done()
		tick := time.NewTicker(pruneEvery)
		defer tick.Stop()
		for {
			if n, _, err := s.runs.Prune(ctx, s.cfg.Retention); err != nil && ctx.Err() == nil {
				s.log.Error("cannot remove old runs", "error", err)
			} else if n > 0 {
				s.log.Info("removed old runs", "runs", n, "older_than", s.cfg.Retention)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}
