package runs

import (
	"context"
	"errors"
	"fmt"
	"os"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/projection"
)

// change loads a run, does something to it under its lock, and returns it as it is then.
func (m *Manager) change(ctx context.Context, id string, do func(r *run) error) (*wire.Run, error) {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	r.mu.Lock()
	err = do(r)
	r.mu.Unlock()
	if err != nil {
		return nil, refused(err)
	}
	return r.view(ctx)
}

// refused turns an unlawful step into the answer a client gets for it.
func refused(err error) error {
	var t *projection.TransitionError
	if errors.As(err, &t) {
		return conflict("%s", t.Error())
	}
	return err
}

// Start queues a submitted run, or with resume one that has ended and has a checkpoint. worker is the id of the run on whose behalf the
// request is made, or "": a run that starts its own child needs somebody's approval.
func (m *Manager) Start(ctx context.Context, id string, resume bool, actor *wire.Actor, worker string) (*wire.Run, error) {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	if err := m.start(r, resume, actor, worker); err != nil {
		return nil, refused(err)
	}
	return r.view(ctx)
}

func (m *Manager) start(r *run, resume bool, actor *wire.Actor, worker string) error {
	r.mu.Lock()
	err := r.startLocked(resume, actor, worker)
	queue := err == nil && r.state.Status().Kind == wire.StatusRunnable
	parent := r.parentLocked()
	r.mu.Unlock()
	if queue {
		m.enqueue(r, parent)
	}
	return err
}

// enqueue gives the scheduler a reference of its own.
func (m *Manager) enqueue(r *run, parent string) {
	m.mu.Lock()
	r.refs++
	m.mu.Unlock()
	m.sched.add(r, parent)
}

func (r *run) parentLocked() string {
	if p := r.state.Run.ParentID; p != nil {
		return *p
	}
	return ""
}

func (r *run) startLocked(resume bool, actor *wire.Actor, worker string) error {
	if err := r.refuseArchivedLocked(); err != nil {
		return err
	}
	status := r.state.Status()
	verb := "start"
	if resume {
		verb = "resume"
	}
	if r.exec != nil && status.Kind != wire.StatusRunnable {
		return conflict("an engine process is still running for this run — cannot %s", verb)
	}
	switch {
	case status.Kind == wire.StatusPending || status.Kind == wire.StatusRunnable:
		return conflict("start has already been requested for this run")
	case resume && r.state.Checkpoints == 0:
		return conflict("no checkpoint to resume from")
	case !resume && status.Kind != wire.StatusSubmitted:
		return conflict("cannot start run: status is %s, expected submitted", status)
	}
	events := []event{{name: "run.start_requested", actor: actor, properties: wire.StartRunRequest{Resume: resume}}}
	if worker != "" && worker == r.parentLocked() && r.state.Run.Lifecycle.Approval == nil {
		events = append(events, event{name: "run.pending", actor: actor, properties: map[string]string{"reason": wire.PendingApprovalRequired}})
	} else {
		events = append(events, event{name: "run.runnable", actor: actor, properties: map[string]string{"source": "start_requested"}})
	}
	return r.appendLocked(events...)
}

// Approve lets a pending run go on its way.
func (m *Manager) Approve(ctx context.Context, id string, actor *wire.Actor) (*wire.Run, error) {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	r.mu.Lock()
	if err = r.refusePendingLocked(); err == nil {
		err = r.appendLocked(event{name: "run.approved", actor: actor}, event{name: "run.runnable", actor: actor, properties: map[string]string{"source": "approved"}})
	}
	parent := r.parentLocked()
	r.mu.Unlock()
	if err != nil {
		return nil, refused(err)
	}
	m.enqueue(r, parent)
	return r.view(ctx)
}

// Deny ends a pending run.
func (m *Manager) Deny(ctx context.Context, id, reason string, actor *wire.Actor) (*wire.Run, error) {
	return m.change(ctx, id, func(r *run) error {
		if err := r.refusePendingLocked(); err != nil {
			return err
		}
		denied := map[string]string{}
		message := "Not approved for execution"
		if reason != "" {
			denied["reason"], message = reason, reason
		}
		return r.appendLocked(event{name: "run.denied", actor: actor, properties: denied},
			failed(actor, wire.FailedApprovalDenied, message, wire.CategoryDeterministic, wire.Timing{}))
	})
}

func (r *run) refusePendingLocked() error {
	if err := r.refuseArchivedLocked(); err != nil {
		return err
	}
	if r.state.Status().Kind != wire.StatusPending {
		return errNotPending
	}
	return nil
}

// Cancel ends a run. Requested is true when the engine still has to stop.
func (m *Manager) Cancel(ctx context.Context, id string, actor *wire.Actor) (view *wire.Run, requested bool, err error) {
	dequeue := false
	var r *run
	view, err = m.change(ctx, id, func(x *run) error {
		r = x
		if err := r.refuseArchivedLocked(); err != nil {
			return err
		}
		request := event{name: "run.cancel.requested", actor: actor, properties: map[string]string{"action": wire.ControlCancel}}
		switch kind := r.state.Status().Kind; {
		case wire.Terminal(kind):
			return conflict("Run is already terminal and cannot be cancelled.")
		case kind == wire.StatusSubmitted || kind == wire.StatusPending || kind == wire.StatusRunnable:
			dequeue = kind == wire.StatusRunnable
			return r.appendLocked(request, failed(actor, wire.FailedCancelled, "Run cancelled before it was executed", wire.CategoryCanceled, wire.Timing{}))
		case kind == wire.StatusRemoving || r.exec == nil:
			return conflict("Run is not cancellable.")
		}
		requested = true
		if p := r.state.Run.Lifecycle.PendingControl; p == nil || *p != wire.ControlCancel {
			if err := r.appendLocked(request); err != nil {
				return err
			}
		}
		r.exec.cancel(engine.ErrCancelled)
		return nil
	})
	if dequeue {
		m.sched.remove(r)
	}
	return view, requested, err
}

// Pause holds a run back: a blocked one at once, a running one at its next node or attempt.
func (m *Manager) Pause(ctx context.Context, id string, actor *wire.Actor) (*wire.Run, error) {
	return m.change(ctx, id, func(r *run) error {
		if err := r.refuseArchivedLocked(); err != nil {
			return err
		}
		kind := r.state.Status().Kind
		if kind != wire.StatusRunning && kind != wire.StatusBlocked || r.exec == nil {
			return conflict("Run is not pausable.")
		}
		if r.state.Run.Lifecycle.PendingControl != nil {
			return conflict("Run control request is already pending.")
		}
		events := []event{{name: "run.pause.requested", actor: actor, properties: map[string]string{"action": wire.ControlPause}}}
		if kind == wire.StatusBlocked {
			events = append(events, event{name: "run.paused", actor: wire.Worker(r.id)})
		}
		if err := r.appendLocked(events...); err != nil {
			return err
		}
		if kind == wire.StatusBlocked {
			r.exec.control.PausedAlready()
		} else {
			r.exec.control.Pause()
		}
		return nil
	})
}

// Unpause lets a paused run go on.
func (m *Manager) Unpause(ctx context.Context, id string, actor *wire.Actor) (*wire.Run, error) {
	return m.change(ctx, id, func(r *run) error {
		if err := r.refuseArchivedLocked(); err != nil {
			return err
		}
		if r.state.Status().Kind != wire.StatusPaused || r.exec == nil {
			return conflict("Run is not paused.")
		}
		if r.state.Run.Lifecycle.PendingControl != nil {
			return conflict("Run control request is already pending.")
		}
		err := r.appendLocked(event{name: "run.unpause.requested", actor: actor, properties: map[string]string{"action": wire.ControlUnpause}},
			event{name: "run.unpaused", actor: wire.Worker(r.id)})
		if err == nil {
			r.exec.control.Unpause()
		}
		return err
	})
}

// Archive puts an ended run away, or takes it out again. Doing it twice is allowed.
func (m *Manager) Archive(ctx context.Context, id string, archive bool, actor *wire.Actor) (view *wire.Run, already bool, err error) {
	view, err = m.change(ctx, id, func(r *run) error {
		if already = r.state.Run.Lifecycle.Archived == archive; already && (!archive || r.state.Status().Terminal()) {
			return nil
		}
		if s := r.state.Status(); archive && !s.Terminal() {
			return conflict("run %s must be terminal (succeeded, failed, or dead) to archive; current status is %s", id, s)
		}
		name := "run.archived"
		if !archive {
			name = "run.unarchived"
		}
		return r.appendLocked(event{name: name, actor: actor})
	})
	return view, already, err
}

// SetTitle renames a run.
func (m *Manager) SetTitle(ctx context.Context, id, title string, actor *wire.Actor) (*wire.Run, error) {
	title, err := cleanTitle(title)
	if err != nil {
		return nil, err
	}
	return m.change(ctx, id, func(r *run) error {
		if err := r.refuseArchivedLocked(); err != nil {
			return err
		}
		if r.state.Run.Title == title {
			return nil
		}
		return r.appendLocked(event{name: "run.title.updated", actor: actor, properties: map[string]string{"title": title}})
	})
}

// LinkParent makes a run a child of another; an empty parent makes it nobody's.
func (m *Manager) LinkParent(ctx context.Context, id, parent string, actor *wire.Actor) (*wire.Run, error) {
	if parent != "" {
		// The run itself first: an unknown run is the better answer than an unknown parent.
		if _, err := m.number(ctx, id); err != nil {
			return nil, err
		}
		var err error
		if parent, err = m.checkParent(ctx, id, parent); err != nil {
			return nil, err
		}
	}
	return m.change(ctx, id, func(r *run) error {
		if err := r.refuseArchivedLocked(); err != nil {
			return err
		}
		previous := r.parentLocked()
		if previous == parent {
			return nil
		}
		properties := map[string]string{}
		if previous != "" {
			properties["previous_parent_id"] = previous
		}
		name := "run.parent.unlinked"
		if parent != "" {
			name = "run.parent.linked"
			properties["parent_id"] = parent
		}
		return r.appendLocked(event{name: name, actor: actor, properties: properties})
	})
}

// Delete removes a run with everything that belongs to it. An active one is cancelled first, when force is set.
func (m *Manager) Delete(ctx context.Context, id string, force bool, actor *wire.Actor) error {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer m.release(r)
	r.mu.Lock()
	status := r.state.Status()
	if !status.Terminal() && status.Kind != wire.StatusRemoving && !force {
		r.mu.Unlock()
		return conflict("run %s is active (%s); cancel it first, or delete it with force", id, status)
	}
	ex := r.exec
	if ex != nil {
		ex.cancel(engine.ErrCancelled)
	}
	r.mu.Unlock()
	if ex != nil {
		select {
		case <-ex.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.sched.remove(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return errNoRun
	}
	if r.exec != nil {
		return conflict("run %s has been started again; try once more", id)
	}
	if r.state.Status().Kind != wire.StatusRemoving {
		if err := r.appendLocked(event{name: "run.removing", actor: actor}); err != nil {
			return refused(err)
		}
	}
	if err := m.store.Delete(r.num); err != nil {
		return fmt.Errorf("delete run %s: %w", id, err)
	}
	r.gone = true
	close(r.changed)
	r.changed = make(chan struct{})
	if err := os.RemoveAll(m.RunDir(id)); err != nil {
		m.log.Warn("cannot remove the files of a deleted run", "run", id, "error", err)
	}
	return nil
}
