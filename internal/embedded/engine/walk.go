package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"fabro-mcp/internal/workflow"
)

// A walk is the way through one graph: the run's own or a child workflow's.
type walk struct {
	r        *runner
	compiled *workflow.Compiled
	graph    *workflow.Graph
	scope    string // "" for the run itself, else the stage id of the manager
	depth    int    // how many managers it is below

	ctx       *Context
	index     int
	completed []string
	outcomes  map[string]*Outcome
	retries   map[string]int
	visits    map[string]int
	loops     map[string]int // circuit breaker: failure signature → times
	restarts  map[string]int // the same for loop_restart edges

	changes    stateChange // what is not in the journal yet, except for the context's own
	nextBase   bool        // the next state is written whole
	sinceBase  int         // bytes of changes since the last base
	baseSize   int
	conditions map[*workflow.Edge]*workflow.Condition

	at       *workflow.Node // where the walk is; nil: at its end
	via      *workflow.Edge // the edge that led there; nil: none
	previous string
	lowered  bool // the first node after a resume gets less than full fidelity
}

func newWalk(r *runner, p *workflow.Compiled, c *Context, scope string) *walk {
	return &walk{
		r: r, compiled: p, graph: p.Graph, scope: scope, ctx: c,
		outcomes: map[string]*Outcome{}, retries: map[string]int{}, visits: map[string]int{},
		loops: map[string]int{}, restarts: map[string]int{}, nextBase: true,
		conditions: map[*workflow.Edge]*workflow.Condition{}, at: p.Graph.Start(),
	}
}

// seed puts the graph's attributes and the run's id into the context.
func (w *walk) seed() {
	for key, value := range w.graph.Attrs.All() {
		w.ctx.set("graph."+key, value.Text())
	}
	w.ctx.set("internal.run_id", w.r.spec.RunID)
}

// resume takes up a checkpoint. The walk goes on at the node the checkpoint names. Without one the run had come to its
// end: it has nothing left to do, unless it ended because its last node failed, which is then tried again.
func (w *walk) resume(cp *Checkpoint) error {
	for key, raw := range cp.ContextValues {
		value, err := decodeValue(raw)
		if err != nil {
			return fmt.Errorf("context value %q of the checkpoint: %w", key, err)
		}
		w.ctx.set(key, value)
	}
	for node, raw := range cp.NodeOutcomes {
		outcome := &Outcome{}
		if err := json.Unmarshal(raw, outcome); err != nil {
			return fmt.Errorf("outcome of %q in the checkpoint: %w", node, err)
		}
		w.outcomes[node] = outcome
	}
	w.completed = slices.Clone(cp.CompletedNodes)
	w.index = len(w.completed)
	maps.Copy(w.retries, cp.NodeRetries)
	maps.Copy(w.visits, cp.NodeVisits)
	maps.Copy(w.loops, cp.LoopFailures)
	maps.Copy(w.restarts, cp.RestartFailures)
	w.previous, w.lowered, w.at = cp.CurrentNode, true, nil
	next := cp.NextNode
	if o := w.outcomes[cp.CurrentNode]; next == "" && o != nil && o.failed() {
		next, w.previous = cp.CurrentNode, ""
	}
	if next != "" {
		if w.at = w.graph.Node(next); w.at == nil {
			return fmt.Errorf("the checkpoint goes on at %q, which the workflow does not have", next)
		}
	}
	for _, e := range w.graph.Out(w.previous) {
		if w.at != nil && e.To == w.at.ID {
			w.via = e
			break
		}
	}
	if w.via != nil && w.via.LoopRestart() {
		w.forget() // as the run did behind its checkpoint
	}
	return nil
}

// run walks to the end. Nil is success; what else ends a walk is an error: a cancellation, a failed journal, or what
// Fabro calls an engine error.
func (w *walk) run(ctx context.Context) error {
	if err := w.announce(ctx); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer w.watch(ctx, end)()
	if w.at == nil && w.previous == "" {
		return fatal("the workflow has no start node")
	}
	for w.at != nil {
		if ctx.Err() != nil {
			return endCause(ctx)
		}
		if err := w.step(ctx); err != nil {
			if errors.Is(err, errAborted) {
				return endCause(ctx)
			}
			return err
		}
	}
	return nil
}

// endCause is why a context is done, in the terms of resultOf.
func endCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	var fatal *fatalError
	var journal journalError
	switch {
	case cause == nil, errors.Is(cause, ErrShutdown), errors.Is(cause, ErrCancelled), errors.As(cause, &fatal), errors.As(cause, &journal):
		return cause
	}
	return fmt.Errorf("%w: %w", ErrCancelled, cause)
}

func (w *walk) announce(ctx context.Context) error {
	started := struct {
		Name string `json:"name"`
		Goal string `json:"goal,omitempty"`
	}{w.graph.Name, w.compiled.Goal}
	w.r.gate.Lock()
	defer w.r.gate.Unlock()
	events := []Event{{Name: "run.started", Properties: started}}
	if w.r.open == 0 { // a child that starts beside an open question must not hide that the run is blocked
		events = append(events, Event{Name: "run.running", Properties: none{}})
	}
	return w.r.append(ctx, events...)
}

// step executes the node the walk is at and moves on.
func (w *walk) step(ctx context.Context) error {
	node := w.at
	if err := w.hold(ctx); err != nil { // before the end too: a paused run cannot succeed
		return err
	}
	if node.Terminal() {
		return w.finish(ctx, node)
	}
	if err := w.admit(node); err != nil {
		return err
	}
	w.enter(node)
	s := w.newStage(node)
	outcome, attempts, err := s.execute(ctx)
	if err != nil {
		return err
	}
	return w.leave(ctx, s, outcome, attempts)
}

// admit counts a visit. The node's own limit is looked at first, then the graph's; a limit of n admits n visits.
func (w *walk) admit(node *workflow.Node) error {
	visits := w.visits[node.ID]
	refuse := func(kind string, limit int64) error {
		return fatal(fmt.Sprintf("node %q visited %d times (%s limit %d); run is stuck in a cycle", node.ID, visits, kind, limit))
	}
	if limit, ok := node.Attrs.Int("max_visits"); ok && limit > 0 && int64(visits) >= limit {
		return refuse("node", limit)
	}
	limit, _ := w.graph.Attrs.Int("max_node_visits")
	if limit <= 0 && w.r.spec.DryRun {
		limit = dryRunVisits
	}
	if limit > 0 && int64(visits) >= limit {
		return refuse("graph", limit)
	}
	w.visits[node.ID] = visits + 1
	note(&w.changes.Visits, node.ID, visits+1)
	return nil
}

// dryRunVisits is the visit limit of a dry run whose graph sets none: simulated stages never leave a loop by themselves.
const dryRunVisits = 10

func note[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// hold waits while the run is paused.
func (w *walk) hold(ctx context.Context) error {
	return w.r.spec.Control.hold(ctx, func() error {
		return w.r.append(ctx, Event{Name: "run.paused", Properties: none{}})
	})
}

// leave records what a node came to, says where the walk goes, and goes there.
func (w *walk) leave(ctx context.Context, s *stage, outcome *Outcome, attempts int) error {
	node := s.node
	if auto, _ := node.Attrs.Bool("auto_status"); auto && outcome.Status != Succeeded && outcome.Status != Skipped {
		outcome.Status, outcome.Failure = Succeeded, nil
		outcome.Notes = "auto-status: handler completed without writing status"
	}
	if err := w.r.blobs.offload(ctx, outcome.ContextUpdates); err != nil {
		return err
	}
	signature, err := w.breaker(node, outcome)
	if err != nil {
		return err
	}
	ended, err := w.ended(s, outcome, attempts)
	if err != nil {
		return err
	}
	events := []Event{ended}

	w.record(node.ID, outcome, attempts, signature)
	next, err := w.choose(ctx, node, outcome)
	if err != nil {
		return err
	}
	if next.reason != "" {
		events = append(events, next.event(node, outcome))
	}
	if next.edge != nil && next.edge.LoopRestart() {
		if err := w.mayRestart(node, outcome, signature); err != nil {
			return errors.Join(err, w.r.append(ctx, events...))
		}
	}
	checkpoint, err := w.checkpoint(s, outcome, next.to)
	if err != nil {
		return err
	}
	if w.scope == "" {
		events = append(events, checkpoint)
	}
	if err := w.r.append(ctx, events...); err != nil {
		return err
	}

	w.previous, w.via = node.ID, next.edge
	w.at = w.graph.Node(next.to)
	switch {
	case next.to == "" && outcome.failed():
		return fatal(fmt.Sprintf("stage %s failed with no outgoing fail edge", node.ID))
	case next.to != "" && w.at == nil:
		return fatal(fmt.Sprintf("stage %s leads to %q, which does not exist", node.ID, next.to))
	case next.edge != nil && next.edge.LoopRestart():
		return w.restart(ctx, node.ID, next.to)
	}
	return nil
}

// record takes an outcome into the state of the walk.
func (w *walk) record(node string, outcome *Outcome, attempts int, signature string) {
	w.completed = append(w.completed, node)
	w.changes.Completed.add(node)
	w.outcomes[node] = outcome
	if attempts > 1 {
		w.retries[node] = attempts - 1
		note(&w.changes.Retries, node, attempts-1)
	}
	w.index++
	w.ctx.merge(outcome.ContextUpdates)
	w.ctx.set("internal.retry_count."+node, int64(attempts-1))
	w.ctx.set("outcome", string(outcome.Status))
	class := ""
	if signature != "" {
		class = outcome.Failure.Category
	}
	w.ctx.set("failure_class", class)
	w.ctx.set("failure_signature", signature)
	if outcome.PreferredLabel != "" {
		w.ctx.set("preferred_label", outcome.PreferredLabel)
	}
}
