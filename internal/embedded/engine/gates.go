package engine

import (
	"context"
	"fmt"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// finish deals with a terminal node: the run succeeds if all goal gates are satisfied, goes back to a retry target if
// one is not, and fails if there is none.
func (w *walk) finish(ctx context.Context, node *workflow.Node) error {
	if gate := w.unsatisfiedGate(); gate != nil {
		target := w.retryTarget(gate)
		if target == nil || target.Terminal() {
			return fatal(fmt.Sprintf("goal gate unsatisfied for node %s and no retry target", gate.ID))
		}
		w.previous, w.via, w.at = node.ID, nil, target
		return nil
	}
	s := w.newStage(node)
	s.visit = w.visits[node.ID] + 1
	started := s.started(1, 1)
	completed := s.event(eventStageCompleted, struct {
		Index       int         `json:"index"`
		Timing      wire.Timing `json:"timing"`
		Status      Status      `json:"status"`
		Attempt     int         `json:"attempt"`
		MaxAttempts int         `json:"max_attempts"`
	}{w.index, wire.Timing{}, Succeeded, 1, 1})
	w.at = nil
	return w.r.append(ctx, started, completed)
}

// unsatisfiedGate is the first goal gate, by id, that has no good outcome. A gate that was never reached has none.
func (w *walk) unsatisfiedGate() *workflow.Node {
	var first *workflow.Node
	for _, node := range w.graph.Nodes {
		if gate, _ := node.Attrs.Bool("goal_gate"); !gate || first != nil && strings.Compare(node.ID, first.ID) > 0 {
			continue
		}
		if o := w.outcomes[node.ID]; o == nil || o.Status != Succeeded && o.Status != PartiallySucceeded {
			first = node
		}
	}
	return first
}

// retryTarget is the first existing one of the node's and the graph's targets, or nil.
func (w *walk) retryTarget(node *workflow.Node) *workflow.Node {
	for _, attrs := range []*workflow.Attrs{&node.Attrs, &w.graph.Attrs} {
		for _, key := range []string{"retry_target", "fallback_retry_target"} {
			if id, ok := attrs.String(key); ok {
				if target := w.graph.Node(id); target != nil {
					return target
				}
			}
		}
	}
	return nil
}
