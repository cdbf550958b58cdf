package workflow

import (
	"errors"
	"slices"
)

// structureRules are the rules about the shape of the graph.
var structureRules = []func(*compiler){
	(*compiler).ruleStart,
	(*compiler).ruleTerminal,
	(*compiler).ruleEdgeTargets,
	(*compiler).ruleReachability,
	(*compiler).ruleConditions,
	(*compiler).ruleAllConditional,
	(*compiler).ruleRetryTargets,
	(*compiler).ruleReservedIDs,
}

func (c *compiler) ruleStart() {
	starts := c.nodesWhere(isStart)
	c.exactlyOne("start_node", "start node", "give one node shape=Mdiamond", starts)
	for _, n := range starts {
		if in := c.graph.In(n.ID); len(in) > 0 {
			d := aboutEdge(in[0], "lead the edge to the node after the start")
			d.NodeID = n.ID
			c.errorf("start_no_incoming", d, in[0].Pos, "the start node `%s` has an incoming edge", n.ID)
		}
	}
}

func (c *compiler) ruleTerminal() {
	exits := c.nodesWhere(isExit)
	c.exactlyOne("terminal_node", "exit node", "give one node shape=Msquare", exits)
	for _, n := range exits {
		if out := c.graph.Out(n.ID); len(out) > 0 {
			d := aboutEdge(out[0], "remove the edge; a run ends at its exit node")
			d.NodeID = n.ID
			c.errorf("exit_no_outgoing", d, out[0].Pos, "the exit node `%s` has an outgoing edge", n.ID)
		}
	}
}

func (c *compiler) nodesWhere(is func(*Node) bool) []*Node {
	var list []*Node
	for _, n := range c.graph.Nodes {
		if is(n) {
			list = append(list, n)
		}
	}
	return list
}

func (c *compiler) exactlyOne(rule, what, fix string, nodes []*Node) {
	switch {
	case len(nodes) == 0:
		c.errorf(rule, Diagnostic{Fix: fix}, c.graph.Pos, "the workflow has no %s", what)
	case len(nodes) > 1:
		d := aboutNode(nodes[1], "keep one of them")
		line, column := nodes[0].Pos.LineColumn()
		d.Related = []Related{{Message: "the first is `" + nodes[0].ID + "`", SourcePath: c.pathOf(nodes[0].Pos), Line: line, Column: column}}
		c.errorf(rule, d, nodes[1].Pos, "the workflow has %d %ss; it needs exactly one", len(nodes), what)
	}
}

// ruleEdgeTargets reports each missing node once, at the first edge that names
// it.
func (c *compiler) ruleEdgeTargets() {
	reported := map[string]bool{}
	for _, e := range c.graph.Edges {
		for i, id := range []string{e.From, e.To} {
			if c.graph.Node(id) != nil || reported[id] {
				continue
			}
			reported[id] = true
			fix := c.suggest(id)
			if fix == "" {
				fix = "declare it with a statement of its own, such as " + id + " [label=\"…\"]"
			}
			d := aboutEdge(e, fix)
			d.NodeID = id
			c.errorf("edge_target_exists", d, [...]Position{e.Pos, e.toPos}[i], "the edge %s -> %s names `%s`, which is not declared", e.From, e.To, id)
		}
	}
}

func (c *compiler) ruleReachability() {
	start := c.graph.Start()
	if start == nil {
		return
	}
	reached := map[string]bool{start.ID: true}
	for queue := []string{start.ID}; len(queue) > 0; queue = queue[1:] {
		for _, e := range c.graph.Out(queue[0]) {
			if !reached[e.To] {
				reached[e.To] = true
				queue = append(queue, e.To)
			}
		}
	}
	for _, n := range c.graph.Nodes {
		if !reached[n.ID] {
			c.warnf("reachability", aboutNode(n, "add an edge to it, or remove it"), n.Pos, "no way leads from the start to `%s`", n.ID)
		}
	}
}

func (c *compiler) ruleConditions() {
	for _, e := range c.graph.Edges {
		text := e.Condition()
		if text == "" {
			continue
		}
		_, err := ParseCondition(text)
		var fault *ConditionError
		if errors.As(err, &fault) {
			c.errorf("condition_syntax", aboutEdge(e, "write conditions as key=value, joined by && or ||"), e.Attrs.place("condition", fault.Offset),
				"in the condition of %s -> %s: %s", e.From, e.To, fault.Message)
		}
	}
	for _, n := range c.graph.Nodes {
		text, _ := n.Attrs.String("manager.stop_condition")
		_, err := ParseCondition(text)
		var fault *ConditionError
		if errors.As(err, &fault) {
			c.errorf("condition_syntax", aboutNode(n, "write conditions as key=value, joined by && or ||"), n.Attrs.place("manager.stop_condition", fault.Offset),
				"in the stop condition of `%s`: %s", n.ID, fault.Message)
		}
	}
}

// ruleAllConditional wants a way out of each node that needs no condition.
// Conditions on custom outcomes get a second finding, as in Fabro.
func (c *compiler) ruleAllConditional() {
	for _, n := range c.graph.Nodes {
		out := c.graph.Out(n.ID)
		if len(out) == 0 || slices.ContainsFunc(out, func(e *Edge) bool { return e.Condition() == "" }) {
			continue
		}
		const fix = "add an edge without a condition as the way out"
		c.errorf("all_conditional_edges", aboutNode(n, fix), n.Pos,
			"every edge out of `%s` has a condition; when none holds the run is stuck", n.ID)
		if slices.ContainsFunc(out, func(e *Edge) bool {
			condition, err := ParseCondition(e.Condition())
			return err == nil && condition.comparesOutcome()
		}) {
			c.warnf("orphan_custom_outcome", aboutNode(n, fix), n.Pos,
				"the edges out of `%s` name outcomes, and an outcome none of them names leads nowhere", n.ID)
		}
	}
}

func (c *compiler) ruleRetryTargets() {
	check := func(a *Attrs, d Diagnostic, owner string) {
		for _, key := range []string{"retry_target", "fallback_retry_target"} {
			if target, ok := a.String(key); ok && c.graph.Node(target) == nil {
				if d.Fix = c.suggest(target); d.Fix == "" {
					d.Fix = "name a node of this workflow"
				}
				c.warnf("retry_target_exists", d, a.At(key), "%s of %s names `%s`, which is no node", key, owner, target)
			}
		}
	}
	check(&c.graph.Attrs, Diagnostic{}, "the graph")
	for _, n := range c.graph.Nodes {
		check(&n.Attrs, Diagnostic{NodeID: n.ID}, "`"+n.ID+"`")
		gate, _ := n.Attrs.Bool("goal_gate")
		if gate && !n.Attrs.Has("retry_target") && !n.Attrs.Has("fallback_retry_target") {
			c.warnf("goal_gate_has_retry", aboutNode(n, "set retry_target on the node"), n.Pos,
				"the goal gate `%s` has no retry target of its own", n.ID)
		}
	}
}

var reservedIDs = []string{"graph", "digraph", "subgraph", "node", "edge", "strict", "if"}

func (c *compiler) ruleReservedIDs() {
	for _, n := range c.graph.Nodes {
		if slices.Contains(reservedIDs, n.ID) {
			c.warnf("reserved_keyword_node_id", aboutNode(n, "give the node another id"), n.Pos, "`%s` is a keyword of the language", n.ID)
		}
	}
}
