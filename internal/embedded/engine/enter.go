package engine

import (
	"slices"

	"fabro-mcp/internal/workflow"
)

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
