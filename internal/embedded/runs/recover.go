package runs

import (
	"context"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
)

// restartMessage closes the runs that another process was executing when it ended.
const restartMessage = "Fabro server restarted before the run reached a terminal state."

// recover does what Fabro does at a restart: runs that were being executed become failed(terminated), or
// failed(cancelled) when that was asked for; runnable ones are queued again. The processes that a killed server left
// behind are ended first.
func (m *Manager) recover(ctx context.Context) error {
	open, err := m.store.OfKinds(ctx, wire.StatusStarting, wire.StatusRunning, wire.StatusBlocked, wire.StatusPaused, wire.StatusRemoving)
	if err != nil {
		return err
	}
	for i := range open {
		id := open[i].ID
		if n, err := engine.KillLeftovers(m.RunDir(id)); err != nil {
			m.log.Error("cannot end the processes of an unfinished run", "run", id, "error", err)
		} else if n > 0 {
			m.log.Warn("ended processes that an unfinished run had left behind", "run", id, "groups", n)
		}
		r, err := m.acquire(ctx, id)
		if err != nil {
			return err
		}
		err = m.terminate(r, wire.FailedTerminated, restartMessage)
		m.release(r)
		if err != nil {
			return err
		}
		m.log.Info("closed an unfinished run", "run", id)
	}
	queued, err := m.store.OfKinds(ctx, wire.StatusRunnable)
	if err != nil {
		return err
	}
	for i := range queued {
		r, err := m.acquire(ctx, queued[i].ID)
		if err != nil {
			return err
		}
		m.sched.add(r, queued[i].Parent)
	}
	return nil
}

// endAll asks every execution to stop because the server does.
func (m *Manager) endAll() {
	running, _ := m.sched.executing()
	for _, r := range running {
		r.mu.Lock()
		if r.exec != nil {
			r.exec.cancel(engine.ErrShutdown)
		}
		r.mu.Unlock()
	}
}

// Busy says how many runs are queued or executing, blocked and paused ones included.
func (m *Manager) Busy() int {
	running, _ := m.sched.executing()
	return len(running) + m.sched.waiting()
}

// SlotsUsed is how many of the scheduler's places are taken.
func (m *Manager) SlotsUsed() int {
	_, used := m.sched.executing()
	return used
}
