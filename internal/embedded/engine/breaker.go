package engine

import (
	"context"
	"fmt"

	"fabro-mcp/internal/workflow"
)

// breaker counts final failures that would only repeat, and ends a run that goes in circles. The failure's signature is
// returned, "" after success.
func (w *walk) breaker(node *workflow.Node, outcome *Outcome) (signature string, err error) {
	if !outcome.failed() {
		return "", nil
	}
	if outcome.Failure == nil {
		outcome.Failure = failureFromText("")
	}
	signature = signatureOf(node.ID, outcome.Failure)
	if c := outcome.Failure.Category; c != Deterministic && c != Structural {
		return signature, nil
	}
	w.loops[signature]++
	note(&w.changes.LoopFailures, signature, w.loops[signature])
	return signature, w.tripped(w.loops[signature], signature)
}

func (w *walk) tripped(count int, signature string) error {
	limit, ok := w.graph.Attrs.Int("loop_restart_signature_limit")
	if !ok || limit < 1 {
		limit = 3
	}
	if int64(count) < limit {
		return nil
	}
	return fatal(fmt.Sprintf("deterministic failure cycle detected: signature %s repeated %d times (limit %d)", signature, count, limit))
}

// mayRestart decides whether a loop_restart edge may be taken: always after success, after a failure only if that may
// pass by itself.
func (w *walk) mayRestart(node *workflow.Node, outcome *Outcome, signature string) error {
	if !outcome.failed() {
		return nil
	}
	if c := outcome.Failure.Category; c != TransientInfra {
		return fatal(fmt.Sprintf("loop_restart from %s blocked: the failure is %s, only transient_infra may restart", node.ID, c))
	}
	w.restarts[signature]++
	note(&w.changes.RestartFailures, signature, w.restarts[signature])
	return w.tripped(w.restarts[signature], signature)
}

// restart begins anew behind a loop_restart edge.
func (w *walk) restart(ctx context.Context, from, to string) error {
	w.forget()
	err := w.r.append(ctx, Event{Name: "loop.restart", Properties: struct {
		From string `json:"from_node"`
		To   string `json:"to_node"`
	}{from, to}})
	if err != nil {
		return err
	}
	return w.announce(ctx)
}

// forget empties everything but the visits and the counters of failures.
func (w *walk) forget() {
	w.completed, w.index = nil, 0
	clear(w.outcomes)
	clear(w.retries)
	w.ctx.reset()
	w.seed()
	w.nextBase = true
}
