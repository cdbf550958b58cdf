package workflow

import "slices"

// ownRules point at traps of the dialect that Fabro itself passes over in
// silence. Warnings are for nodes that cannot do their work; infos for all else: the workflow means what it means on
// a Fabro server too, only perhaps not what its author thinks.
var ownRules = []func(*compiler){
	(*compiler).ruleIgnoredValues,
	(*compiler).ruleDiamonds,
	(*compiler).ruleExitByName,
	(*compiler).ruleBranchGates,
	(*compiler).ruleDefaultChoice,
	(*compiler).ruleEdgeAttributes,
}

var (
	graphTypes = map[string]Kind{
		"goal": KindString, "default_max_retries": KindInteger, "max_node_visits": KindInteger, "stall_timeout": KindDuration,
		"loop_restart_signature_limit": KindInteger, "retry_target": KindString, "fallback_retry_target": KindString,
	}
	nodeTypes = map[string]Kind{
		"label": KindString, "prompt": KindString, "script": KindString, "retry_target": KindString, "fallback_retry_target": KindString,
		"timeout": KindDuration, "duration": KindDuration, "manager.poll_interval": KindDuration,
		"max_visits": KindInteger, "max_retries": KindInteger, "max_tokens": KindInteger, "output_retries": KindInteger,
		"max_parallel": KindInteger, "manager.max_cycles": KindInteger,
		"goal_gate": KindBoolean, "auto_status": KindBoolean, "allow_partial": KindBoolean, "project_memory": KindBoolean, "review_target": KindBoolean,
	}
	edgeTypes = map[string]Kind{
		"label": KindString, "condition": KindString, "weight": KindInteger, "loop_restart": KindBoolean, "freeform": KindBoolean,
	}
)

// ruleIgnoredValues finds values of a kind that nobody reads: numbers in quotes,
// durations without a unit, labels that read as a duration.
func (c *compiler) ruleIgnoredValues() {
	check := func(a *Attrs, types map[string]Kind, d Diagnostic) {
		for key, v := range a.All() {
			want, typed := types[key]
			if !typed || v.Kind == want {
				continue
			}
			d.Fix = "write " + article(want)
			switch {
			case want == KindString:
				d.Fix = "write a text in quotes that is more than a number with a unit"
			case want == KindDuration:
				d.Fix = "write a whole number with its unit, such as 300s"
			case v.Kind == KindString:
				d.Fix = "write " + article(want) + ", without quotes"
			}
			c.infof("ignored_value", d, a.At(key), "%s is %s here, which is read as no value at all; it should be %s", key, article(v.Kind), article(want))
		}
	}
	check(&c.graph.Attrs, graphTypes, Diagnostic{})
	for _, n := range c.graph.Nodes {
		check(&n.Attrs, nodeTypes, Diagnostic{NodeID: n.ID})
	}
	for _, e := range c.graph.Edges {
		check(&e.Attrs, edgeTypes, Diagnostic{Edge: &[2]string{e.From, e.To}})
	}
}

func article(k Kind) string {
	switch k {
	case KindInteger:
		return "an integer"
	case KindBoolean:
		return "true or false"
	case KindString:
		return "a text"
	case KindFloat:
		return "a fraction"
	default:
		return "a duration"
	}
}

// ruleDiamonds: `outcome` on the edges of a diamond is the diamond's own, which
// is always succeeded, not that of the node before it.
func (c *compiler) ruleDiamonds() {
	for _, n := range c.graph.Nodes {
		if n.Handler() != HandlerConditional {
			continue
		}
		for _, e := range c.graph.Out(n.ID) {
			condition, err := ParseCondition(e.Condition())
			if err == nil && slices.Contains(condition.Keys(), "outcome") {
				d := aboutEdge(e, "put the conditions on the edges of the node whose outcome you mean")
				d.NodeID = n.ID
				c.infof("diamond_own_outcome", d, e.Attrs.At("condition"), "`outcome` here is that of `%s` itself, which always succeeds, not that of the node before it", n.ID)
				break
			}
		}
	}
}

// ruleExitByName: the name satisfies Fabro's rules, the engine wants the shape.
func (c *compiler) ruleExitByName() {
	for _, n := range c.graph.Nodes {
		if slices.Contains(exitNames, n.ID) && !n.Terminal() {
			c.warnf("exit_not_terminal", aboutNode(n, "add shape=Msquare"), n.Pos, "`%s` is named like an exit node but runs as a node of type %s", n.ID, n.Handler())
		}
	}
}

// ruleBranchGates: outcomes of branches do not count for goal gates, so a gate on
// a branch never passes.
func (c *compiler) ruleBranchGates() {
	reported := map[string]bool{}
	for _, n := range c.graph.Nodes {
		if n.Handler() != HandlerParallel {
			continue
		}
		for _, e := range c.graph.Out(n.ID) {
			branch := c.graph.Node(e.To)
			if branch == nil || reported[branch.ID] {
				continue
			}
			if gate, _ := branch.Attrs.Bool("goal_gate"); gate {
				reported[branch.ID] = true
				c.warnf("parallel_branch_goal_gate", aboutNode(branch, "put the goal gate on a node after the branches have joined"), branch.Attrs.At("goal_gate"),
					"the goal gate `%s` is a branch of the parallel node `%s` and can never be satisfied", branch.ID, n.ID)
			}
		}
	}
}

func (c *compiler) ruleDefaultChoice() {
	for _, n := range c.graph.Nodes {
		if _, limited := n.Attrs.Duration("timeout"); n.Handler() == HandlerHuman && n.Attrs.Has("human.default_choice") && !limited {
			c.infof("default_choice_without_timeout", aboutNode(n, "add timeout=30m, or whatever fits"), n.Attrs.At("human.default_choice"),
				"human.default_choice of `%s` is never taken, because the question has no timeout", n.ID)
		}
	}
}

// ruleEdgeAttributes finds attributes of nodes that were put on an edge.
func (c *compiler) ruleEdgeAttributes() {
	for _, e := range c.graph.Edges {
		for key := range e.Attrs.All() {
			if _, ofNode := nodeTypes[key]; ofNode && key != "label" {
				c.infof("edge_attribute_ignored", aboutEdge(e, "set it on the node"), e.Attrs.At(key), "%s has no effect on an edge", key)
			}
		}
	}
}
