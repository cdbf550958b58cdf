package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fabro-mcp/internal/plural"
)

// DrawText draws a graph with text, from its start downwards: each node with its
// type, and below it the ways out with their labels and conditions. A way back
// to a node above is marked with ↑. The result ends in a newline.
func DrawText(g *Graph) string {
	d := &drawing{graph: g, place: map[string]int{}}
	order, reached := flow(g)
	for i, n := range order {
		d.place[n.ID] = i
	}
	d.title()
	for i, n := range order {
		if i == reached {
			if i > 0 {
				d.WriteByte('\n')
			}
			d.WriteString("  not reachable from the start:\n")
		}
		next := ""
		if i+1 < len(order) && i+1 != reached {
			next = order[i+1].ID
		}
		d.node(i, n, next)
	}
	return d.String()
}

// flow orders the nodes so that ways lead downwards where they can: reverse
// postorder of a depth-first walk from the start. Nodes the start does not lead
// to come last; reached is the number of those before them.
func flow(g *Graph) (order []*Node, reached int) {
	visited := map[string]bool{}
	type frame struct {
		node *Node
		next int // edges of Out not yet followed, counted down
	}
	walk := func(root *Node) {
		var post []*Node
		visited[root.ID] = true
		for stack := []frame{{root, len(g.Out(root.ID))}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if top.next == 0 {
				post = append(post, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			top.next--
			to := g.Node(g.Out(top.node.ID)[top.next].To)
			if to != nil && !visited[to.ID] {
				visited[to.ID] = true
				stack = append(stack, frame{to, len(g.Out(to.ID))})
			}
		}
		slices.Reverse(post)
		order = append(order, post...)
	}
	if start := g.Start(); start != nil {
		walk(start)
	}
	reached = len(order)
	for _, n := range g.Nodes {
		if !visited[n.ID] {
			walk(n)
		}
	}
	return order, reached
}

type drawing struct {
	strings.Builder
	graph *Graph
	place map[string]int // of each node in the drawing
}

func (d *drawing) title() {
	fmt.Fprintf(d, "%s", d.graph.Name)
	if goal := d.graph.Goal(); goal != "" {
		fmt.Fprintf(d, ": %s", shorten(goal, 100))
	}
	fmt.Fprintf(d, "\n%s, %s\n\n", plural.Count(len(d.graph.Nodes), "node"), plural.Count(len(d.graph.Edges), "edge"))
}

// brackets show the handler at a glance, in the spirit of the shapes.
var brackets = map[string][2]string{
	HandlerStart: {"((", "))"}, HandlerExit: {"[[", "]]"}, HandlerConditional: {"<", ">"}, HandlerHuman: {"{", "}"},
	HandlerCommand: {"/", "/"},
}

func (d *drawing) node(i int, n *Node, next string) {
	pair, ok := brackets[n.Handler()]
	if !ok {
		pair = [2]string{"[", "]"}
	}
	fmt.Fprintf(d, "  %s%s%s", pair[0], n.ID, pair[1])
	if label := n.Label(); label != n.ID {
		fmt.Fprintf(d, " %s", shorten(label, 60))
	}
	fmt.Fprintf(d, "  (%s)\n", strings.Join(append([]string{n.Handler()}, traits(n)...), ", "))
	out := d.graph.Out(n.ID)
	if len(out) == 1 && out[0].To == next && edgeText(out[0]) == "" {
		d.WriteString("    │\n    ▼\n")
		return
	}
	for j, e := range out {
		branch := "├"
		if j == len(out)-1 {
			branch = "└"
		}
		fmt.Fprintf(d, "    %s─", branch)
		if text := edgeText(e); text != "" {
			fmt.Fprintf(d, " %s ─", text)
		}
		fmt.Fprintf(d, "▶ %s", e.To)
		switch at, known := d.place[e.To]; {
		case !known:
			d.WriteString(" (not declared)")
		case at <= i:
			d.WriteString(" ↑")
		}
		d.WriteByte('\n')
	}
	if next != "" {
		d.WriteByte('\n')
	}
}

// traits are the attributes that change what a node does in a run.
func traits(n *Node) []string {
	var list []string
	if gate, _ := n.Attrs.Bool("goal_gate"); gate {
		list = append(list, "goal gate")
	}
	if target, ok := n.Attrs.String("retry_target"); ok {
		list = append(list, "retries from "+shorten(target, 40))
	}
	for _, key := range []string{"max_retries", "max_visits"} {
		if v, ok := n.Attrs.Int(key); ok {
			list = append(list, fmt.Sprintf("%s %d", strings.ReplaceAll(key, "_", " "), v))
		}
	}
	for _, key := range []string{"timeout", "duration"} {
		if v, ok := n.Attrs.Duration(key); ok {
			list = append(list, key+" "+shortDuration(v))
		}
	}
	if child, ok := n.Attrs.String("stack.child_workflow"); ok {
		list = append(list, "runs "+shorten(child, 60))
	}
	return list
}

// shortDuration drops the units that are zero: 15m, not 15m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func edgeText(e *Edge) string {
	var parts []string
	if label := e.Label(); label != "" {
		parts = append(parts, shorten(label, 40))
	}
	if condition := e.Condition(); condition != "" {
		parts = append(parts, "if "+shorten(condition, 60))
	}
	if e.Freeform() {
		parts = append(parts, "free text")
	}
	if e.LoopRestart() {
		parts = append(parts, "restarts the loop")
	}
	if w := e.Weight(); w != 0 {
		parts = append(parts, fmt.Sprintf("weight %d", w))
	}
	return strings.Join(parts, ", ")
}

// shorten makes a text fit on a line: white space collapsed, control characters
// replaced, at most limit characters.
func shorten(s string, limit int) string {
	if len(s) > 8*limit {
		s = s[:8*limit] // enough for any limit characters; the rest is cut anyway
	}
	r := []rune(printable(strings.Join(strings.Fields(s), " ")))
	if len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return string(r)
}

// DOT writes a graph for Graphviz itself, which refuses the dialect's own forms
// (dotted names, durations) and knows no stages: shapes, labels, and conditions
// as labels of edges.
func DOT(g *Graph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotString(g.Name))
	direction, _ := g.Attrs.String("rankdir")
	if !slices.Contains([]string{"LR", "TB", "BT", "RL"}, direction) {
		direction = "TB"
	}
	fmt.Fprintf(&b, "  rankdir=%s\n", direction)
	if goal := g.Goal(); goal != "" {
		fmt.Fprintf(&b, "  label=%s\n  labelloc=t\n", dotString(shorten(goal, 100)))
	}
	b.WriteString("  node [fontname=\"Helvetica\", fontsize=12]\n  edge [fontname=\"Helvetica\", fontsize=10]\n")
	for _, n := range g.Nodes {
		shape := n.Shape()
		if _, known := shapeHandlers[shape]; !known {
			shape = "box"
		}
		fmt.Fprintf(&b, "  %s [shape=%s, label=%s]\n", dotString(n.ID), shape, dotString(shorten(n.Label(), 80)))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s", dotString(e.From), dotString(e.To))
		if text := edgeText(e); text != "" {
			fmt.Fprintf(&b, " [label=%s]", dotString(text))
		}
		b.WriteByte('\n')
	}
	b.WriteString("}\n")
	return b.String()
}

// dotString quotes a text so that Graphviz takes it as it is.
func dotString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
