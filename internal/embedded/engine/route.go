package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"fabro-mcp/internal/workflow"
)

// A direction is where the walk goes next.
type direction struct {
	to     string         // "" : nowhere
	edge   *workflow.Edge // nil after a jump or a retry target
	reason string         // of edge.selected; "" when the step is taken silently
}

// edgeSelected are the properties of edge.selected.
type edgeSelected struct {
	From           string   `json:"from_node"`
	To             string   `json:"to_node"`
	Label          string   `json:"label,omitempty"`
	Condition      string   `json:"condition,omitempty"`
	Reason         string   `json:"reason"`
	PreferredLabel string   `json:"preferred_label,omitempty"`
	SuggestedNext  []string `json:"suggested_next_ids,omitempty"`
	StageStatus    Status   `json:"stage_status"`
	IsJump         bool     `json:"is_jump"`
}

// event has no node or stage in its envelope.
func (d direction) event(node *workflow.Node, o *Outcome) Event {
	props := edgeSelected{
		From: node.ID, To: d.to, Reason: d.reason,
		PreferredLabel: o.PreferredLabel, SuggestedNext: o.SuggestedNext, StageStatus: o.Status, IsJump: d.reason == "jump",
	}
	if d.edge != nil {
		props.Label, props.Condition = d.edge.Label(), d.edge.Condition()
	}
	return Event{Name: "edge.selected", Properties: props}
}

// choose says where the walk goes behind a node. The order of the rules is Fabro's: a jump; a true condition; the
// outcome's preferred label; its suggestions; the unconditional edges; a failed node's retry target.
func (w *walk) choose(ctx context.Context, node *workflow.Node, o *Outcome) (direction, error) {
	if o.JumpTo != "" {
		return direction{to: o.JumpTo, reason: "jump"}, nil
	}
	var conditional, plain []*workflow.Edge
	lookup := w.lookup(ctx, o)
	for _, e := range w.graph.Out(node.ID) {
		switch {
		case strings.TrimSpace(e.Condition()) == "":
			plain = append(plain, e)
		case w.condition(e).Eval(lookup):
			conditional = append(conditional, e)
		}
	}
	if e := w.pick(node, conditional); e != nil {
		return direction{e.To, e, "condition"}, nil
	}
	if o.PreferredLabel != "" {
		wanted := normalLabel(o.PreferredLabel)
		for _, e := range plain {
			if label := e.Label(); label != "" && normalLabel(label) == wanted {
				return direction{e.To, e, "preferred_label"}, nil
			}
		}
	}
	for _, id := range o.SuggestedNext {
		for _, e := range plain {
			if e.To == id {
				return direction{e.To, e, "suggested_next"}, nil
			}
		}
	}
	undecided := node.Handler() == workflow.HandlerHuman && o.failed() && o.PreferredLabel == "" && len(o.SuggestedNext) == 0
	if e := w.pick(node, plain); e != nil && !undecided {
		return direction{e.To, e, "unconditional"}, nil
	}
	if o.failed() {
		if target := w.retryTarget(node); target != nil {
			return direction{to: target.ID}, nil
		}
	}
	return direction{}, nil
}

// pick is the edge with the most weight, the smallest target among equals; with selection=random one by chance, in
// proportion to the weights.
func (w *walk) pick(node *workflow.Node, edges []*workflow.Edge) *workflow.Edge {
	if len(edges) == 0 {
		return nil
	}
	if how, _ := node.Attrs.String("selection"); how != "random" {
		return slices.MinFunc(edges, func(a, b *workflow.Edge) int {
			return cmp.Or(cmp.Compare(b.Weight(), a.Weight()), strings.Compare(a.To, b.To))
		})
	}
	weight := func(e *workflow.Edge) float64 { return max(float64(e.Weight()), 1) }
	total := 0.0
	for _, e := range edges {
		total += weight(e)
	}
	mark := w.r.spec.Random() * total
	for _, e := range edges {
		if mark -= weight(e); mark < 0 {
			return e
		}
	}
	return edges[len(edges)-1]
}

// condition is the edge's condition, parsed once. Text that does not parse is never true; lint has refused it anyway.
func (w *walk) condition(e *workflow.Edge) conditionTest {
	c, known := w.conditions[e]
	if !known {
		var err error
		if c, err = workflow.ParseCondition(e.Condition()); err != nil {
			c = nil
		}
		w.conditions[e] = c
	}
	return conditionTest{c}
}

type conditionTest struct{ c *workflow.Condition }

func (t conditionTest) Eval(lookup func(string) (any, bool)) bool {
	return t.c != nil && t.c.Eval(lookup)
}

// lookup is what a condition sees: the outcome of the node whose edges are looked at, and the run's context with texts
// in place of references to them.
func (w *walk) lookup(ctx context.Context, o *Outcome) func(string) (any, bool) {
	resolved := map[string]any{}
	return func(key string) (any, bool) {
		switch key {
		case "outcome":
			return string(o.Status), true
		case "preferred_label":
			return o.PreferredLabel, true
		}
		value, ok := w.ctx.Get(key)
		if short, prefixed := strings.CutPrefix(key, "context."); prefixed && !ok {
			// Found or not, it must not be asked for again by its short name: that may be a word of the switch above.
			value, _ = w.ctx.Get(short)
			ok = true
		}
		ref, isText := value.(string)
		if !isText || !strings.HasPrefix(ref, blobScheme) {
			return value, ok
		}
		if known, ok := resolved[ref]; ok {
			return known, true
		}
		text, err := w.r.blobs.resolve(ctx, ref)
		if err != nil {
			text = ref // a reference that leads nowhere is only text
		}
		resolved[ref] = text
		return text, true
	}
}

// normalLabel makes labels comparable: without the accelerator in front ("[Y] Yes", "Y) Yes", "Y - Yes") and in lower
// case.
func normalLabel(label string) string {
	label = strings.ToLower(strings.TrimSpace(label))
	if rest, ok := strings.CutPrefix(label, "["); ok {
		if _, after, ok := strings.Cut(rest, "]"); ok {
			return strings.TrimSpace(after)
		}
	}
	for i := range label {
		if i == 0 {
			continue
		}
		for _, mark := range []string{")", " - "} {
			if rest, ok := strings.CutPrefix(label[i:], mark); ok {
				return strings.TrimSpace(rest)
			}
		}
		break
	}
	return label
}
