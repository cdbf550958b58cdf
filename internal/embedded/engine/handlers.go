package engine

import (
	"context"

	"fabro-mcp/internal/workflow"
)

// A handler does what a node is for. It returns an outcome, or an error: a *stageError for a handler that could not come
// to an outcome, errAborted when ctx was done, anything else ends the run or counts as a retryable failure.
type handler func(*stage, context.Context) (*Outcome, error)

var handlers, simulations map[string]handler

// The tables are filled here because some handlers run other nodes, and so refer to the tables again.
func init() {
	handlers = map[string]handler{
		workflow.HandlerStart:       (*stage).start,
		workflow.HandlerConditional: (*stage).conditional,
		workflow.HandlerCommand:     (*stage).command,
		workflow.HandlerAgent:       (*stage).agent,
		workflow.HandlerPrompt:      (*stage).agent,
		workflow.HandlerHuman:       (*stage).human,
		workflow.HandlerWait:        (*stage).wait,
		workflow.HandlerParallel:    (*stage).parallel,
		workflow.HandlerFanIn:       (*stage).fanIn,
		workflow.HandlerManagerLoop: (*stage).manage,
		workflow.HandlerExit:        (*stage).start, // only reached as a branch of a parallel node
	}
	simulations = map[string]handler{
		workflow.HandlerCommand:  (*stage).simulateCommand,
		workflow.HandlerAgent:    (*stage).simulateAgent,
		workflow.HandlerPrompt:   (*stage).simulateAgent,
		workflow.HandlerHuman:    (*stage).simulateHuman,
		workflow.HandlerParallel: (*stage).parallel,
		workflow.HandlerFanIn:    (*stage).simulateFanIn,
	}
}

func (s *stage) start(context.Context) (*Outcome, error) { return succeeded(""), nil }

// conditional always succeeds: a diamond only has edges. It does not see what the node before it came to, and since its
// own outcome replaces that one in the context, neither do the conditions on its edges. Fabro's trap, kept.
func (s *stage) conditional(context.Context) (*Outcome, error) {
	return succeeded("Conditional node evaluated: " + s.node.ID), nil
}

// wait lets the node's duration pass. Unlike Fabro's it ends at once when the run is cancelled.
func (s *stage) wait(ctx context.Context) (*Outcome, error) {
	duration, ok := s.node.Attrs.Duration("duration")
	if !ok {
		return nil, &stageError{failure: Failure{Message: "wait node " + s.node.ID + " has no duration", Category: Deterministic}, final: true}
	}
	if s.r.sleep(ctx, duration) != nil {
		return nil, errAborted
	}
	return succeeded(""), nil
}
