package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabro-mcp/fabroapi/wire"
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
	switch {
	case cause == nil, errors.Is(cause, ErrShutdown), errors.Is(cause, ErrCancelled), errors.As(cause, &fatal):
		return cause
	}
	return fmt.Errorf("%w: %w", ErrCancelled, cause)
}

func (w *walk) announce(ctx context.Context) error {
	started := struct {
		Name string `json:"name"`
		Goal string `json:"goal,omitempty"`
	}{w.graph.Name, w.compiled.Goal}
	return w.r.append(ctx, Event{Name: "run.started", Properties: started}, Event{Name: "run.running", Properties: none{}})
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

// enter sets the context keys that a node finds.
func (w *walk) enter(node *workflow.Node) {
	if w.scope == "" {
		w.r.current.Store(node.ID)
	}
	w.ctx.set("current_node", node.ID)
	w.ctx.set("internal.node_visit_count", int64(w.visits[node.ID]))
	w.ctx.set("internal.fidelity", w.fidelity(node))
	if thread := w.thread(node); thread == "" {
		w.ctx.set("internal.thread_id", nil)
	} else {
		w.ctx.set("internal.thread_id", thread)
		w.ctx.set("thread."+thread+".current_node", node.ID)
	}
	w.lowered = false
}

// fidelity says how much of the past a model would be told: edge, node, graph, in this order.
func (w *walk) fidelity(node *workflow.Node) string {
	fidelity := "compact"
	candidates := []*workflow.Attrs{&w.graph.Attrs, &node.Attrs}
	names := []string{"default_fidelity", "fidelity"}
	if w.via != nil {
		candidates, names = append(candidates, &w.via.Attrs), append(names, "fidelity")
	}
	for i, attrs := range candidates {
		if f, ok := attrs.String(names[i]); ok && slices.Contains(fidelities, f) {
			fidelity = f
		}
	}
	if w.lowered && fidelity == "full" {
		return "summary:high"
	}
	return fidelity
}

var fidelities = []string{"full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"}

// thread names the conversation a model stage would belong to: edge, node, graph, first class, previous node.
func (w *walk) thread(node *workflow.Node) string {
	if w.via != nil {
		if id, ok := w.via.Attrs.String("thread_id"); ok && id != "" {
			return id
		}
	}
	if id, ok := node.Attrs.String("thread_id"); ok && id != "" {
		return id
	}
	if id, ok := w.graph.Attrs.String("default_thread"); ok && id != "" {
		return id
	}
	if w.previous != "" && len(node.Classes) > 0 {
		return node.Classes[0]
	}
	return w.previous
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

// record takes an outcome into the state of the walk.
func (w *walk) record(node string, outcome *Outcome, attempts int, signature string) {
	w.completed = append(w.completed, node)
	w.changes.Completed = append(w.changes.Completed, node)
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

// restart begins anew behind a loop_restart edge: everything is forgotten but the visits and the counters.
func (w *walk) restart(ctx context.Context, from, to string) error {
	w.completed, w.index = nil, 0
	clear(w.outcomes)
	clear(w.retries)
	clear(w.ctx.values)
	w.seed()
	w.nextBase = true
	err := w.r.append(ctx, Event{Name: "loop.restart", Properties: struct {
		From string `json:"from_node"`
		To   string `json:"to_node"`
	}{from, to}})
	if err != nil {
		return err
	}
	return w.announce(ctx)
}

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
