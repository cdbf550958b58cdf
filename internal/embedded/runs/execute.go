package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
	"fabro-mcp/internal/embedded/projection"
)

// execution is an engine at work on a run.
type execution struct {
	cancel  context.CancelCauseFunc
	control *engine.Control
	done    chan struct{} // closed when the engine is gone and the run has its terminal event
	level   int           // see scheduler
}

// launch starts the engine on a runnable run. The caller holds no lock; the run stays loaded until the execution ends.
func (m *Manager) launch(r *run, level int) {
	ctx, cancel := context.WithCancelCause(m.ctx)
	ex := &execution{cancel: cancel, control: engine.NewControl(), done: make(chan struct{}), level: level}
	r.mu.Lock()
	if r.gone || r.exec != nil || r.state.Status().Kind != wire.StatusRunnable {
		r.mu.Unlock()
		cancel(nil)
		m.sched.finished(r)
		m.release(r)
		m.work.Done()
		return
	}
	r.exec = ex
	agent := r.private.AgentCommand
	r.mu.Unlock()
	go func() {
		defer m.work.Done()
		defer m.release(r)
		m.execute(ctx, r, ex, agent)
		cancel(nil)
		r.mu.Lock()
		r.exec = nil
		r.mailboxes = map[string]*mailbox{}
		close(ex.done)
		r.mu.Unlock()
		m.sched.finished(r)
	}()
}

func (m *Manager) execute(ctx context.Context, r *run, ex *execution, agent []string) {
	spec, err := m.spec(ctx, r, agent)
	if err != nil {
		m.log.Error("run cannot start", "run", r.id, "error", err)
		m.terminate(r, wire.FailedBootstrapFailed, "The run could not be started: "+err.Error())
		return
	}
	spec.Control = ex.control
	if _, err := engine.Run(ctx, *spec, journal{r}, desk{r}); err != nil {
		m.log.Error("run ended without its terminal event", "run", r.id, "error", err)
		m.terminateStubbornly(r, "Worker exited before emitting a terminal run event: "+err.Error())
		return
	}
	r.mu.Lock()
	ended := r.gone || r.state.Status().Terminal()
	r.mu.Unlock()
	if !ended {
		m.terminateStubbornly(r, "Worker exited before emitting a terminal run event.")
	}
}

// terminate closes a run on the engine's behalf. A run that is still runnable passes through starting, as the
// transition table wants it. When somebody had asked to cancel the run it is cancelled.
func (m *Manager) terminate(r *run, reason, message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terminateLocked(reason, message)
}

func (r *run) terminateLocked(reason, message string) error {
	s := &r.state
	if s.Status().Terminal() {
		return nil
	}
	category := wire.CategoryTransientInfra
	if p := s.Run.Lifecycle.PendingControl; p != nil && *p == wire.ControlCancel {
		reason, message, category = wire.FailedCancelled, "Pipeline cancelled", wire.CategoryCanceled
	} else if reason == wire.FailedBootstrapFailed {
		category = wire.CategoryDeterministic
	}
	var events []event
	if s.Status().Kind == wire.StatusRunnable && reason != wire.FailedCancelled {
		events = append(events, event{name: "run.starting", actor: wire.Worker(r.id)})
	}
	var timing wire.Timing
	if at := s.Run.Timestamps.StartedAt; at != nil {
		timing.WallTimeMS = r.m.cfg.Now().Sub(*at).Milliseconds()
	}
	events = append(events, failed(wire.System(wire.SystemEngine), reason, message, category, timing))
	return r.appendLocked(events...)
}

func failed(actor *wire.Actor, reason, message, category string, timing wire.Timing) event {
	return event{name: wire.EventRunFailed, actor: actor, properties: struct {
		Failure wire.RunFailure `json:"failure"`
		Timing  wire.Timing     `json:"timing"`
	}{wire.RunFailure{Reason: reason, Detail: wire.FailureDetail{Message: message, Category: category}}, timing}}
}

// terminateStubbornly tries to close a run until the manager closes, less and less often: the store may have no room left until
// somebody makes some. A run that cannot be closed before the process ends is closed by the next.
func (m *Manager) terminateStubbornly(r *run, message string) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := m.terminate(r, wire.FailedTerminated, message)
		if err == nil || errors.Is(err, errNoRun) {
			return
		}
		m.log.Error("cannot close a run", "run", r.id, "error", err)
		t := time.NewTimer(wait)
		select {
		case <-m.quit:
			t.Stop()
			if err := m.terminate(r, wire.FailedTerminated, message); err != nil {
				m.log.Error("left a run to the next server to close", "run", r.id, "error", err)
			}
			return
		case <-t.C:
		}
	}
}

// spec compiles the run again from its manifest.
func (m *Manager) spec(ctx context.Context, r *run, agent []string) (*engine.Spec, error) {
	r.mu.Lock()
	state := r.state
	r.mu.Unlock()
	manifest, err := m.manifest(ctx, &state)
	if err != nil {
		return nil, err
	}
	vars, err := m.variables(ctx)
	if err != nil {
		return nil, err
	}
	compiled, _, err := compile(manifest, vars, true)
	if err != nil {
		return nil, err
	}
	spec := &engine.Spec{RunID: r.id, Compiled: compiled, Cwd: manifest.Cwd, RunDir: m.RunDir(r.id), DryRun: dryRun(compiled), AutoApprove: autoApprove(compiled),
		AgentCommand: agent, Env: m.cfg.Environ()}
	if len(spec.AgentCommand) == 0 {
		spec.AgentCommand = m.cfg.AgentCommand
	}
	if state.Checkpoints > 0 {
		if spec.Resume, err = m.checkpoint(ctx, r.num); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	return spec, nil
}

func (m *Manager) manifest(ctx context.Context, s *projection.State) (*wire.RunManifest, error) {
	text, err := m.store.Blob(ctx, s.ManifestBlob)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", s.ManifestBlob, err)
	}
	manifest := &wire.RunManifest{}
	if err := json.Unmarshal(text, manifest); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", s.ManifestBlob, err)
	}
	return manifest, nil
}

// journal is a run's log as its engine sees it.
type journal struct{ r *run }

func (j journal) Append(ctx context.Context, events ...engine.Event) error {
	list := make([]event, len(events))
	for i, e := range events {
		list[i] = event{name: e.Name, actor: e.Actor, properties: e.Properties, nodeID: e.NodeID, nodeLabel: e.NodeLabel, stageID: e.StageID,
			groupID: e.ParallelGroupID, branchID: e.ParallelBranchID}
		if e.Actor == nil {
			list[i].actor = wire.Worker(j.r.id)
		}
	}
	return j.r.append(list...)
}

func (j journal) PutBlob(ctx context.Context, content []byte) (string, error) {
	if err := j.r.spend(int64(len(content))); err != nil {
		return "", err
	}
	hash, err := j.r.m.store.PutBlob(j.r.num, content)
	if err != nil {
		return "", fmt.Errorf("keep the run's output: %w", err)
	}
	return hash, nil
}

// spend takes n bytes from what the run may store.
func (r *run) spend(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit := r.m.cfg.MaxRunBytes; r.bytes+n > limit {
		return &TooLargeError{limit}
	}
	r.bytes += n
	return nil
}

func (j journal) Blob(ctx context.Context, hash string) ([]byte, error) {
	return j.r.m.store.Blob(ctx, hash)
}
