package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"fabro-mcp/internal/workflow"
)

const (
	defaultPoll   = 45 * time.Second
	defaultCycles = 1000

	// maxDepth is how deep workflows may run each other.
	maxDepth = 8
)

// errChildStopped is the cause with which a manager ends its child.
var errChildStopped = errors.New("stopped by its manager")

// manage runs a child workflow on a copy of the context, in the same run: its events are among the run's own. Unlike in
// Fabro the child appends no checkpoints, since a run that resumed from one would continue in the wrong graph.
func (s *stage) manage(ctx context.Context) (*Outcome, error) {
	if s.w.depth >= maxDepth {
		return failedWith(Deterministic, fmt.Sprintf("Workflows run each other more than %d deep", maxDepth)), nil
	}
	compiled, diagnostics, err := s.w.compiled.Child(s.node)
	if err != nil {
		return failedWith(Deterministic, "Failed to parse child pipeline: "+err.Error()), nil
	}
	for _, d := range diagnostics {
		if d.Severity == workflow.SeverityError {
			return failedWith(Deterministic, fmt.Sprintf("Failed to parse child pipeline: %s (%s)", d.Message, d.Rule)), nil
		}
	}
	child := newWalk(s.r, compiled, s.ctx.fork(), s.id)
	child.depth = s.w.depth + 1
	child.seed()
	before := child.ctx.fork().values

	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- child.run(running) }()
	cycle, verdict := s.supervise(ctx, ended, stop)
	if verdict.err != nil || verdict.outcome != nil {
		return verdict.outcome, verdict.err
	}
	var journal journalError
	var end *fatalError
	switch err := verdict.child; {
	case err == nil:
		o := succeeded(fmt.Sprintf("Child completed at cycle %d", cycle))
		for key, value := range child.ctx.difference(before) {
			if !private(key) {
				o.set(key, value)
			}
		}
		return o, nil
	case ctx.Err() != nil:
		return nil, errAborted
	case errors.As(err, &journal):
		return nil, err
	case errors.As(err, &end):
		return failed(&end.failure), nil
	default:
		return failed(failureFromText(err.Error())), nil
	}
}

// private reports whether a context key belongs to one workflow's own bookkeeping.
func private(key string) bool {
	for _, prefix := range []string{"internal.", "graph.", "thread.", "current"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// verdict is how a manager's watch over its child ended: by the child's own end, or by an outcome or error of its own.
type verdict struct {
	child   error
	outcome *Outcome
	err     error
}

// supervise waits for the child and looks at the stop condition at every poll. It returns when the child has ended.
func (s *stage) supervise(ctx context.Context, ended <-chan error, stop context.CancelCauseFunc) (cycle int64, v verdict) {
	poll, ok := s.node.Attrs.Duration("manager.poll_interval")
	if !ok || poll <= 0 {
		poll = defaultPoll
	}
	cycles, ok := s.node.Attrs.Int("manager.max_cycles")
	if !ok {
		cycles = defaultCycles
	}
	cycles = max(cycles, 1)
	var condition *workflow.Condition
	if text, ok := s.node.Attrs.String("manager.stop_condition"); ok && strings.TrimSpace(text) != "" {
		var err error
		if condition, err = workflow.ParseCondition(text); err != nil {
			condition = nil // never true, as on edges
		}
	}
	give := func(o *Outcome) verdict {
		stop(errChildStopped)
		err := <-ended
		var journal journalError
		if errors.As(err, &journal) {
			return verdict{err: err}
		}
		return verdict{outcome: o}
	}
	for cycle = 1; ; cycle++ {
		fires, release := s.r.clock.Timer(poll)
		select {
		case err := <-ended:
			release()
			return cycle, verdict{child: err}
		case <-fires:
		}
		if condition != nil && condition.Eval(s.w.lookup(ctx, succeeded(""))) {
			return cycle, give(succeeded(fmt.Sprintf("Stop condition met at cycle %d", cycle)))
		}
		if cycle >= cycles {
			return cycle, give(failedWith(Deterministic, fmt.Sprintf("Max cycles (%d) exceeded for manager loop node: %s", cycles, s.node.ID)))
		}
	}
}
