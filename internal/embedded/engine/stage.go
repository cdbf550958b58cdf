package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// errAborted is what a handler returns when its context is done and there is nothing to say about the stage.
var errAborted = errors.New("stage aborted")

// A stage is one execution of a node, with all its attempts.
type stage struct {
	w           *walk
	r           *runner
	node        *workflow.Node
	id          string // node@ordinal
	ordinal     int
	visit       int
	resumedFrom string
	policy      retryPolicy
	ctx         *Context

	group, branch string // of parallel branches
	item          *item  // of for_each branches
	forks         int    // how many parallel nodes it is a branch of

	begin           time.Time
	tool, inference time.Duration
}

func (w *walk) newStage(node *workflow.Node) *stage {
	ordinal, resumedFrom := w.r.nextStage(node.ID)
	return &stage{
		w: w, r: w.r, node: node, id: stageID(node.ID, ordinal), ordinal: ordinal, visit: w.visits[node.ID], resumedFrom: resumedFrom,
		policy: policyOf(w.graph, node), ctx: w.ctx, begin: w.r.clock.Now(),
	}
}

// event is an event of this stage.
func (s *stage) event(name string, properties any) Event {
	return Event{
		Name: name, NodeID: s.node.ID, NodeLabel: s.node.Label(), StageID: s.id,
		ParallelGroupID: s.group, ParallelBranchID: s.branch, Properties: properties,
	}
}

func (s *stage) emit(ctx context.Context, name string, properties any) error {
	return s.r.append(ctx, s.event(name, properties))
}

func (s *stage) started(attempt, attempts int) Event {
	return s.event("stage.started", struct {
		Index       int    `json:"index"`
		HandlerType string `json:"handler_type"`
		Attempt     int    `json:"attempt"`
		MaxAttempts int    `json:"max_attempts"`
		GraphVisit  int    `json:"graph_visit"`
		ResumedFrom string `json:"resumed_from_stage_id,omitempty"`
	}{s.w.index, s.node.Handler(), attempt, attempts, s.visit, s.resumedFrom})
}

// failed is the event of a failed attempt. What the clock decided is signed by the system.
func (s *stage) failed(f *Failure, willRetry bool) Event {
	e := s.event("stage.failed", stageFailed{s.w.index, f, willRetry, s.timing()})
	if f != nil && f.SystemActor != "" {
		e.Actor = wire.System(f.SystemActor)
	}
	return e
}

func (s *stage) timing() wire.Timing {
	t := wire.Timing{WallTimeMS: millis(s.r.clock.Now().Sub(s.begin))}
	addWork(&t, s.tool, s.inference)
	return t
}

// execute runs the node until an attempt is final, and returns its outcome and how many attempts it took. An error ends
// the run.
func (s *stage) execute(ctx context.Context) (*Outcome, int, error) {
	for attempt := 1; ; attempt++ {
		if attempt > 1 {
			if err := s.w.hold(ctx); err != nil {
				return nil, attempt, err
			}
		}
		if err := s.r.append(ctx, s.started(attempt, s.policy.attempts)); err != nil {
			return nil, attempt, err
		}
		outcome, again, err := s.attempt(ctx)
		if err != nil {
			return nil, attempt, err
		}
		if !again || attempt >= s.policy.attempts || ctx.Err() != nil {
			return s.final(outcome), attempt, nil
		}
		delay := s.policy.delay(attempt, s.r.spec.Random())
		err = s.r.append(ctx, s.failed(outcome.Failure, true), s.event("stage.retrying", struct {
			Index       int   `json:"index"`
			Attempt     int   `json:"attempt"`
			MaxAttempts int   `json:"max_attempts"`
			DelayMS     int64 `json:"delay_ms"`
		}{s.w.index, attempt, s.policy.attempts, delay.Milliseconds()}))
		if err != nil {
			return nil, attempt, err
		}
		if s.r.sleep(ctx, delay) != nil {
			return nil, attempt, errAborted
		}
	}
}

// final turns the outcome of the last attempt into the stage's: where partial success is allowed, a node that only
// asked for another attempt has it.
func (s *stage) final(o *Outcome) *Outcome {
	if partial, _ := s.node.Attrs.Bool("allow_partial"); partial && o.failed() && o.retryRequested {
		o.Status = PartiallySucceeded
	}
	return o
}

// attempt runs the node's handler once, under the node's timeout. again says that another attempt may help.
func (s *stage) attempt(ctx context.Context) (outcome *Outcome, again bool, err error) {
	began := s.r.clock.Now()
	limited, deadline := s.limit(ctx)
	defer deadline.stop()
	outcome, err = s.handle(limited)
	var problem *stageError
	var journal journalError
	var end *fatalError
	switch {
	case err == nil:
		again = outcome.failed() && outcome.retryRequested
	case errors.As(err, &journal), errors.As(err, &end):
		return nil, false, err
	case errors.As(err, &problem):
		outcome, again = problem.outcome(), !problem.final
	case errors.Is(err, errAborted) && ctx.Err() != nil:
		return nil, false, errAborted
	case errors.Is(err, errAborted) && deadline.expired():
		message := fmt.Sprintf("handler timed out after %dms", deadline.limit.Milliseconds())
		outcome = failed(&Failure{Message: message, Category: TransientInfra, SystemActor: wire.SystemTimeout})
		if s.node.LLM() {
			outcome.inference = s.r.clock.Now().Sub(began)
		}
		again = true
	default:
		outcome, again = failed(failureFromText(err.Error())), true
	}
	s.tool += outcome.tool
	s.inference += outcome.inference
	s.r.addWork(outcome.tool, outcome.inference)
	if outcome.failed() && ctx.Err() != nil && !errors.Is(endCause(ctx), ErrCancelled) {
		return nil, false, errAborted // the stage did not fail by itself; a resumed run does it again
	}
	return outcome, again, nil
}

// handle calls the handler of the node's type, or its simulation. A handler that panics has failed for good, and takes
// neither the other runs nor the daemon with it.
func (s *stage) handle(ctx context.Context) (o *Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			message := fmt.Sprintf("the handler of %s panicked: %v\n%s", s.node.ID, p, cutBytes(string(debug.Stack()), failureTail))
			o, err = nil, &stageError{failure: Failure{Message: message, Category: Deterministic}, final: true}
		}
	}()
	kind := s.node.Handler()
	if s.r.spec.DryRun {
		if simulate, ok := simulations[kind]; ok {
			return simulate(s, ctx)
		}
		return succeeded("[Simulated] " + s.node.ID), nil
	}
	return handlers[kind](s, ctx)
}
