package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"fabro-mcp/internal/workflow"
)

const (
	// defaultBranches is max_parallel of a node that sets none.
	defaultBranches = 4

	// maxItems is how many items for_each takes.
	maxItems = 1000

	// maxForks is how deep forks may be branches of forks. Without a limit one that leads to itself would never end.
	maxForks = 4
)

// An item is one element that a for_each branch works on.
type item struct {
	value any
	label string
}

// A branch is one node executed beside others. There are no longer branches: what follows a branch node is the join.
type branch struct {
	index  int
	target *workflow.Node
	item   *item
}

// branchResult is one element of parallel.results.
type branchResult struct {
	ID             string         `json:"id"`
	Index          int            `json:"index"`
	ItemLabel      string         `json:"item_label,omitempty"`
	Status         Status         `json:"status"`
	ContextUpdates map[string]any `json:"context_updates"`
}

// branches lists what a parallel node starts: the targets of its edges, whatever their conditions, or its one target
// once for every item of for_each.
func (s *stage) branches(ctx context.Context) ([]branch, *Outcome) {
	edges := s.w.graph.Out(s.node.ID)
	source, each := s.node.Attrs.String("for_each")
	if !each {
		list := make([]branch, 0, len(edges))
		for i, e := range edges {
			target := s.w.graph.Node(e.To)
			if target == nil {
				return nil, failedWith(Deterministic, fmt.Sprintf("Parallel branch %q does not exist", e.To))
			}
			list = append(list, branch{index: i, target: target})
		}
		return list, nil
	}
	if len(edges) != 1 || s.w.graph.Node(edges[0].To) == nil {
		return nil, failedWith(Deterministic, fmt.Sprintf("for_each needs exactly one outgoing edge, to an existing node; %s has %d", s.node.ID, len(edges)))
	}
	value, known := s.ctx.Get(source)
	if !known && s.r.spec.DryRun {
		value = []any{map[string]any{"name": "dry-run item"}}
	}
	value, err := s.r.blobs.resolve(ctx, value)
	if err != nil {
		return nil, failedWith(Deterministic, fmt.Sprintf("for_each source %q cannot be read: %v", source, err))
	}
	items, ok := value.([]any)
	if !ok {
		return nil, failedWith(Deterministic, fmt.Sprintf("for_each source %q is not a JSON array in the context", source))
	}
	if len(items) > maxItems {
		return nil, failedWith(Deterministic, fmt.Sprintf("for_each source %q has %d items, more than %d", source, len(items), maxItems))
	}
	list := make([]branch, len(items))
	for i, value := range items {
		list[i] = branch{index: i, target: s.w.graph.Node(edges[0].To), item: &item{value, itemLabel(value, i)}}
	}
	return list, nil
}

func itemLabel(value any, index int) string {
	object, _ := value.(map[string]any)
	for _, key := range []string{"name", "label"} {
		if text, ok := object[key].(string); ok && text != "" {
			return text
		}
	}
	return strconv.Itoa(index)
}

// parallel runs the branches, at most max_parallel at once, each on a copy of the context as it is now. Nothing comes
// back from them but their results. It waits for all of them; then the run goes on at the node that every branch leads
// to.
func (s *stage) parallel(ctx context.Context) (*Outcome, error) {
	if s.forks >= maxForks {
		return failedWith(Deterministic, fmt.Sprintf("Parallel nodes are branches of each other more than %d deep", maxForks)), nil
	}
	list, refused := s.branches(ctx)
	if refused != nil {
		return refused, nil
	}
	began := s.r.clock.Now()
	err := s.emit(ctx, "parallel.started", struct {
		Visit    int `json:"visit"`
		Branches int `json:"branch_count"`
	}{s.visit, len(list)})
	if err != nil {
		return nil, err
	}
	results, work, err := s.runBranches(ctx, list)
	if err != nil {
		return nil, err
	}
	good, bad := 0, 0
	for i := range results {
		switch results[i].Status {
		case Succeeded:
			good++
		case Failed:
			bad++
		}
	}
	err = s.emit(ctx, "parallel.completed", struct {
		Visit      int            `json:"visit"`
		DurationMS int64          `json:"duration_ms"`
		Good       int            `json:"success_count"`
		Bad        int            `json:"failure_count"`
		Results    []branchResult `json:"results,omitempty"`
	}{s.visit, millis(s.r.clock.Now().Sub(began)), good, len(results) - good, results})
	if err != nil {
		return nil, err
	}
	var o *Outcome
	switch {
	case good == len(list) && (len(list) > 0 || s.node.Attrs.Has("for_each")):
		o = succeeded("")
	case len(list) > 0 && bad == len(list):
		o = failedWith(Deterministic, "All parallel branches failed")
	default:
		o = &Outcome{Status: PartiallySucceeded}
	}
	if s.r.spec.DryRun {
		o.Notes = "[Simulated] " + s.node.ID
	}
	o.tool, o.inference = work.tool, work.inference
	value, err := plain(results)
	if err != nil {
		return nil, err
	}
	o.set("parallel.results", value)
	o.set("parallel.branch_count", int64(len(list)))
	if !o.failed() {
		o.JumpTo = s.join(list)
	}
	return o, nil
}

// plain turns a Go value into what JSON decodes to, as the context keeps it.
func plain(v any) (any, error) {
	raw, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeValue(raw)
}

// join is the smallest node, by id, that every branch node leads to directly, or "".
func (s *stage) join(list []branch) string {
	var common map[string]bool
	for _, b := range list {
		targets := map[string]bool{}
		for _, e := range s.w.graph.Out(b.target.ID) {
			if common == nil || common[e.To] {
				targets[e.To] = true
			}
		}
		common = targets
	}
	ids := make([]string, 0, len(common))
	for id := range common {
		if s.w.graph.Node(id) != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return slices.Min(ids)
}

type work struct{ tool, inference time.Duration }

// runBranches runs all branches and returns their results in order. An error is one that ends the run.
func (s *stage) runBranches(ctx context.Context, list []branch) ([]branchResult, work, error) {
	limit, ok := s.node.Attrs.Int("max_parallel")
	if !ok {
		limit = defaultBranches
	}
	room := make(chan struct{}, max(min(limit, maxItems), 1))
	results := make([]branchResult, len(list))
	errs := make([]error, len(list))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var sum work
	var wg sync.WaitGroup
	for i, b := range list {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-room }()
			var spent work
			results[i], spent, errs[i] = s.runBranch(ctx, b)
			mu.Lock()
			defer mu.Unlock()
			sum.tool += spent.tool
			sum.inference += spent.inference
			if errs[i] != nil {
				stop(errs[i])
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		for _, err := range errs {
			if err != nil && !errors.Is(err, errAborted) {
				return nil, sum, err
			}
		}
		return nil, sum, errAborted
	}
	return results, sum, nil
}

// runBranch executes one branch node under its own retry policy. Branches have no stage events, visits, goal gates or
// automatic status, and the circuit breaker does not count them.
func (s *stage) runBranch(ctx context.Context, b branch) (branchResult, work, error) {
	ordinal, resumedFrom := s.r.nextStage(b.target.ID)
	child := &stage{
		w: s.w, r: s.r, node: b.target, id: stageID(b.target.ID, ordinal), ordinal: ordinal, visit: s.visit, resumedFrom: resumedFrom,
		policy: policyOf(s.w.graph, b.target), ctx: s.ctx.fork(), begin: s.r.clock.Now(),
		group: s.id, branch: fmt.Sprintf("%s:%d", s.id, b.index), item: b.item, forks: s.forks + 1,
	}
	label := ""
	if b.item != nil {
		label = b.item.label
	}
	err := child.emit(ctx, "parallel.branch.started", struct {
		Index       int    `json:"index"`
		ItemLabel   string `json:"item_label,omitempty"`
		GraphVisit  int    `json:"graph_visit"`
		ResumedFrom string `json:"resumed_from_stage_id,omitempty"`
	}{b.index, label, child.visit, resumedFrom})
	if err != nil {
		return branchResult{}, work{}, err
	}
	o, err := child.branchOutcome(ctx)
	if err != nil {
		return branchResult{}, work{}, err
	}
	if err := s.r.blobs.offload(ctx, o.ContextUpdates); err != nil {
		return branchResult{}, work{}, err
	}
	err = child.emit(ctx, "parallel.branch.completed", struct {
		Index      int    `json:"index"`
		ItemLabel  string `json:"item_label,omitempty"`
		DurationMS int64  `json:"duration_ms"`
		Status     Status `json:"status"`
	}{b.index, label, millis(s.r.clock.Now().Sub(child.begin)), o.Status})
	updates := o.ContextUpdates
	if updates == nil {
		updates = map[string]any{}
	}
	return branchResult{b.target.ID, b.index, label, o.Status, updates}, work{child.tool, child.inference}, err
}

// branchOutcome is execute without the events of a stage.
func (s *stage) branchOutcome(ctx context.Context) (*Outcome, error) {
	for attempt := 1; ; attempt++ {
		outcome, again, err := s.attempt(ctx)
		if err != nil {
			return nil, err
		}
		if !again || attempt >= s.policy.attempts || ctx.Err() != nil {
			return s.final(outcome), nil
		}
		if s.r.sleep(ctx, s.policy.delay(attempt, s.r.spec.Random())) != nil {
			return nil, errAborted
		}
	}
}

// fanIn joins the results of a parallel node: without a prompt it is only a place to meet, with one a model (here the
// agent command) is asked about the results.
func (s *stage) fanIn(ctx context.Context) (*Outcome, error) {
	count, err := s.joined(ctx)
	if err != nil {
		return nil, err
	}
	if prompt, ok := s.node.Attrs.String("prompt"); ok && prompt != "" {
		return s.agent(ctx)
	}
	return succeeded(fmt.Sprintf("Joined %d parallel branches", count)), nil
}

func (s *stage) simulateFanIn(ctx context.Context) (*Outcome, error) {
	count, err := s.joined(ctx)
	if err != nil {
		return nil, err
	}
	if prompt, ok := s.node.Attrs.String("prompt"); ok && prompt != "" {
		return s.simulateAgent(ctx)
	}
	return succeeded(fmt.Sprintf("[Simulated] Joined %d parallel branches", count)), nil
}

func (s *stage) joined(ctx context.Context) (int, error) {
	value, _ := s.ctx.Get("parallel.results")
	value, err := s.r.blobs.resolve(ctx, value)
	results, ok := value.([]any)
	if err != nil || !ok {
		return 0, retryable("No parallel results to join")
	}
	return len(results), nil
}
