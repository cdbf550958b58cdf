package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// none marshals to the empty object that most lifecycle events have for properties.
type none struct{}

// A runner executes one run: the walk over its graph, and over those of its child workflows, share it.
type runner struct {
	spec    Spec
	journal Journal
	desk    Desk
	clock   Clock
	procs   *processes
	blobs   blobs
	workDir string
	ready   bool // the sandbox, here only a directory, was there

	lastEvent atomic.Int64 // Unix nanoseconds of the clock, for the stall watchdog
	current   atomic.Value // string: the node the run is at

	mu       sync.Mutex        // guards the fields below
	ordinals map[string]int    // node id → stage ordinals given out
	resumed  map[string]string // node id → stage id that was cut off, until the node is started again
	timing   wire.Timing       // of the stages so far

	gate sync.Mutex // held while the number of open questions changes and that is put on record
	open int        // open questions, guarded by gate
}

// Run executes a run from run.starting, which it appends, to its terminal event, and returns when nothing of it is
// running any more. The run's processes end with ctx; its cause says how the run ends, see [ErrCancelled]. An error is
// returned only when the end of the run could not be put on record.
func Run(ctx context.Context, spec Spec, journal Journal, desk Desk) (Result, error) {
	spec.withDefaults()
	r := &runner{
		spec: spec, journal: journal, desk: desk, clock: spec.Clock, blobs: blobs{journal},
		procs:    &processes{record: recordPath(spec.RunDir), termGrace: termGrace},
		ordinals: map[string]int{}, resumed: map[string]string{},
	}
	began := r.clock.Now()
	err := r.boot(ctx)
	if err == nil {
		err = r.walk(ctx)
	}
	r.procs.close()
	result := resultOf(err)
	timing := r.timing
	timing.WallTimeMS = millis(r.clock.Now().Sub(began))
	if err := r.conclude(ctx, result, timing); err != nil {
		return result, fmt.Errorf("cannot put the end of run %s on record: %w", spec.RunID, err)
	}
	return result, nil
}

// bootError is a failure before the graph is entered.
type bootError struct {
	reason string
	err    error
}

func (e *bootError) Error() string { return e.err.Error() }

// boot makes the run's directory, looks at the working directory and runs the prepare steps.
func (r *runner) boot(ctx context.Context) error {
	provider := map[string]any{"provider": "local"}
	if err := r.append(ctx, Event{Name: "run.starting", Properties: none{}}, Event{Name: "sandbox.initializing", Properties: provider}); err != nil {
		return err
	}
	r.workDir = workDir(r.spec)
	if err := r.checkDirectories(); err != nil {
		failure := map[string]any{"provider": "local", "error": err.Error(), "duration_ms": 0}
		if err := r.append(ctx, Event{Name: "sandbox.failed", Properties: failure}); err != nil {
			return err
		}
		return &bootError{wire.FailedSandboxInitFailed, err}
	}
	events := []Event{
		{Name: "sandbox.ready", Properties: map[string]any{"provider": "local", "duration_ms": 0}},
		{Name: "sandbox.initialized", Properties: map[string]any{
			"working_directory": r.workDir, "provider": "local", "id": "local:" + r.spec.RunID,
		}},
	}
	if e := r.spec.Compiled.Settings.Environment; elsewhere(e) {
		events = append(events, Event{Name: "run.notice", Properties: map[string]any{
			"level": "warn", "code": "environment_local",
			"message": fmt.Sprintf("environment %q asks for %s; this server runs everything on its own machine", e.ID, e.Provider),
		}})
	}
	if err := r.append(ctx, events...); err != nil {
		return err
	}
	r.ready = true
	return r.prepare(ctx)
}

// workDir is where commands run: what the settings say, relative to the manifest's directory, or else that itself. There
// is no copy and no worktree; a run works in the user's own files.
func workDir(spec Spec) string {
	settings := spec.Compiled.Settings
	absolute := func(dir string) string {
		if dir == "" || filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(spec.Cwd, dir)
	}
	ofEnvironment := absolute(settings.Environment.Cwd)
	if settings.Environment.Provider != "local" {
		if info, err := os.Stat(ofEnvironment); err != nil || !info.IsDir() {
			ofEnvironment = "" // a directory of some container
		}
	}
	return cmp.Or(absolute(settings.WorkingDir), ofEnvironment, spec.Cwd)
}

// elsewhere reports whether a run asks for an environment that is not this machine. It is executed here all the same,
// with a notice. The default environment, a container in Fabro, is what a run has that asks for nothing.
func elsewhere(e workflow.Environment) bool {
	return e.ID != "" && e.ID != "default" && e.Provider != "" && e.Provider != "local"
}

func (r *runner) checkDirectories() error {
	info, err := os.Stat(r.workDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist", r.workDir)
	case err != nil:
		return fmt.Errorf("cannot use the working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the working directory %s is not a directory", r.workDir)
	}
	if err := os.MkdirAll(filepath.Join(r.spec.RunDir, "runtime"), 0o700); err != nil {
		return fmt.Errorf("cannot make the run's directory: %w", err)
	}
	return nil
}

// walk goes through the run's own graph.
func (r *runner) walk(ctx context.Context) error {
	w := newWalk(r, r.spec.Compiled, newContext(), "")
	if cp := r.spec.Resume; cp != nil {
		if err := w.resume(cp); err != nil {
			return &bootError{wire.FailedBootstrapFailed, err}
		}
		r.resumeOrdinals(cp)
	} else {
		w.seed()
	}
	return w.run(ctx)
}

// resumeOrdinals goes on counting stages where the run left off. A node with more stages than finished visits was cut
// off in the last of them.
func (r *runner) resumeOrdinals(cp *Checkpoint) {
	for node, ordinal := range cp.Ordinals {
		r.ordinals[node] = ordinal
		if ordinal > cp.NodeVisits[node] {
			r.resumed[node] = stageID(node, ordinal)
		}
	}
}

// resultOf sorts the error that ended a walk into Fabro's reasons.
func resultOf(err error) Result {
	if err == nil {
		return Result{Status: wire.RunStatus{Kind: wire.StatusSucceeded, Reason: wire.SucceededCompleted}}
	}
	reason, failure := wire.FailedWorkflowError, failureFromText(err.Error())
	var boot *bootError
	var fatal *fatalError
	switch {
	case errors.As(err, &boot):
		reason = boot.reason
	case errors.Is(err, ErrShutdown):
		reason, failure = wire.FailedTerminated, &Failure{Message: "Fabro server shut down before the run reached a terminal state.", Category: Deterministic}
	case errors.Is(err, ErrCancelled):
		reason, failure = wire.FailedCancelled, &Failure{Message: "Pipeline cancelled", Category: Canceled}
	case errors.As(err, &fatal):
		failure = &fatal.failure
	}
	return Result{Status: wire.RunStatus{Kind: wire.StatusFailed, Reason: reason}, Failure: failure}
}

// conclude appends the terminal event and, after it, the end of the sandbox.
func (r *runner) conclude(ctx context.Context, result Result, timing wire.Timing) error {
	end := Event{Name: wire.EventRunCompleted, Properties: struct {
		Timing    wire.Timing `json:"timing"`
		Artifacts int         `json:"artifact_count"`
		Status    Status      `json:"status"`
		Reason    string      `json:"reason"`
	}{timing, 0, Succeeded, result.Status.Reason}}
	if result.Failure != nil {
		end = Event{Name: wire.EventRunFailed, Properties: struct {
			Failure runFailure  `json:"failure"`
			Timing  wire.Timing `json:"timing"`
		}{runFailure{result.Status.Reason, result.Failure}, timing}}
	}
	events := []Event{end}
	if r.ready {
		events = append(events,
			Event{Name: "sandbox.stop.started", Properties: map[string]any{"provider": "local"}},
			Event{Name: "sandbox.stop.completed", Properties: map[string]any{"provider": "local", "duration_ms": 0}})
	}
	return r.append(ctx, events...)
}

type runFailure struct {
	Reason string   `json:"reason"`
	Detail *Failure `json:"detail"`
}

// append puts events on record. It does so even when ctx is done: what happened is to be known.
func (r *runner) append(ctx context.Context, events ...Event) error {
	r.lastEvent.Store(r.clock.Now().UnixNano())
	if err := r.journal.Append(context.WithoutCancel(ctx), events...); err != nil {
		return journalError{err}
	}
	return nil
}

// nextStage gives out the next ordinal of a node, and says which stage it takes up again, if any.
func (r *runner) nextStage(node string) (ordinal int, resumedFrom string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ordinals[node]++
	resumedFrom = r.resumed[node]
	delete(r.resumed, node)
	return r.ordinals[node], resumedFrom
}

func (r *runner) addWork(tool, inference time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	addWork(&r.timing, tool, inference)
}

// asking reports whether a person is being asked.
func (r *runner) asking() bool {
	r.gate.Lock()
	defer r.gate.Unlock()
	return r.open > 0
}

// sleep waits for d, and returns the cause when ctx is done before.
func (r *runner) sleep(ctx context.Context, d time.Duration) error {
	fires, stop := r.clock.Timer(d)
	defer stop()
	select {
	case <-fires:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func stageID(node string, ordinal int) string { return node + "@" + strconv.Itoa(ordinal) }
