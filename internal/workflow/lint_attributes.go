package workflow

import (
	"slices"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// attributeRules are the rules about values of attributes that any node, edge or
// graph can have.
var attributeRules = []func(*compiler){
	(*compiler).ruleFileRefs,
	(*compiler).ruleTypes,
	(*compiler).ruleFidelity,
	(*compiler).ruleSelection,
	(*compiler).ruleDirection,
	(*compiler).ruleThreads,
	(*compiler).ruleDetemplated,
	(*compiler).ruleInert,
	(*compiler).ruleJoinPolicy,
}

// each calls check with the attributes of the graph, of all nodes and of all
// edges.
func (c *compiler) each(check func(a *Attrs, d Diagnostic)) {
	check(&c.graph.Attrs, Diagnostic{})
	for _, n := range c.graph.Nodes {
		check(&n.Attrs, Diagnostic{NodeID: n.ID})
	}
	for _, e := range c.graph.Edges {
		check(&e.Attrs, Diagnostic{Edge: &[2]string{e.From, e.To}})
	}
}

func (c *compiler) ruleFileRefs() {
	check := func(a *Attrs, key string, d Diagnostic) {
		value, _ := a.String(key)
		reference, ok := strings.CutPrefix(value, "@")
		if !ok {
			return
		}
		d.Fix = "check the path; it is relative to the file that names it"
		reason := "there is no such file"
		if template.HasSyntax(reference) {
			reason, d.Fix = "the path may not be a template", "write the path out"
		} else if _, err := CleanKey(reference); err != nil {
			reason = "the path " + err.(*KeyError).Reason
		}
		c.errorf("unresolved_file_ref", d, a.At(key), "%s refers to %.200q: %s", key, value, reason)
	}
	check(&c.graph.Attrs, "goal", Diagnostic{})
	for _, n := range c.graph.Nodes {
		check(&n.Attrs, "prompt", Diagnostic{NodeID: n.ID})
		check(&n.Attrs, "output_schema", Diagnostic{NodeID: n.ID})
	}
}

func (c *compiler) ruleTypes() {
	known := make([]string, 0, len(typeHandlers))
	for t := range typeHandlers {
		known = append(known, t)
	}
	slices.Sort(known)
	for _, n := range c.graph.Nodes {
		t, ok := n.Attrs.String("type")
		if !ok {
			continue
		}
		if _, is := typeHandlers[t]; !is {
			fix := "known types: " + strings.Join(known, ", ")
			if near := nearest(t, known); near != "" {
				fix = "did you mean `" + near + "`?"
			}
			c.warnf("type_known", aboutNode(n, fix), n.Attrs.At("type"), "`%s` has the unknown type %.60q and runs as %s", n.ID, t, n.Handler())
		}
	}
}

var fidelities = []string{"full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"}

func (c *compiler) ruleFidelity() {
	check := func(a *Attrs, key string, d Diagnostic) {
		value, ok := a.String(key)
		if ok && !slices.Contains(fidelities, value) {
			d.Fix = "write one of " + strings.Join(fidelities, ", ")
			c.warnf("fidelity_valid", d, a.At(key), "%s is the unknown value %.60q", key, value)
		}
	}
	c.each(func(a *Attrs, d Diagnostic) { check(a, "fidelity", d) })
	check(&c.graph.Attrs, "default_fidelity", Diagnostic{})
}

func (c *compiler) ruleSelection() {
	for _, n := range c.graph.Nodes {
		value, ok := n.Attrs.String("selection")
		switch {
		case !ok || value == "deterministic":
		case value != "random":
			c.warnf("selection_valid", aboutNode(n, "write deterministic or random"), n.Attrs.At("selection"), "selection of `%s` is the unknown value %.60q", n.ID, value)
		default:
			for _, e := range c.graph.Out(n.ID) {
				if e.Condition() != "" {
					d := aboutEdge(e, "remove the condition, or the random selection")
					d.NodeID = n.ID
					c.errorf("random_selection_no_conditions", d, e.Attrs.At("condition"), "`%s` picks its next node at random, so the edge to `%s` may have no condition", n.ID, e.To)
				}
			}
		}
	}
}

func (c *compiler) ruleDirection() {
	value, ok := c.graph.Attrs.Get("rankdir")
	if ok && !slices.Contains([]string{"LR", "TB", "BT", "RL"}, value.Text()) {
		c.warnf("direction_valid", Diagnostic{Fix: "write LR, TB, BT or RL"}, c.graph.Attrs.At("rankdir"), "rankdir is the unknown value %.60q", value.Text())
	}
}

// ruleThreads: a thread is only continued with full fidelity.
func (c *compiler) ruleThreads() {
	byDefault, _ := c.graph.Attrs.String("default_fidelity")
	fidelity := func(a *Attrs) string {
		if f, ok := a.String("fidelity"); ok {
			return f
		}
		return byDefault
	}
	for _, n := range c.graph.Nodes {
		if n.Attrs.Has("thread_id") && fidelity(&n.Attrs) != "full" {
			c.warnf("thread_id_requires_fidelity_full", aboutNode(n, "add fidelity=full"), n.Attrs.At("thread_id"), "thread_id of `%s` has no effect without fidelity=full", n.ID)
		}
	}
	for _, e := range c.graph.Edges {
		if !e.Attrs.Has("thread_id") || fidelity(&e.Attrs) == "full" {
			continue
		}
		if target := c.graph.Node(e.To); target != nil && !e.Attrs.Has("fidelity") && fidelity(&target.Attrs) == "full" {
			continue
		}
		c.warnf("thread_id_requires_fidelity_full", aboutEdge(e, "add fidelity=full"), e.Attrs.At("thread_id"), "thread_id of %s -> %s has no effect without fidelity=full", e.From, e.To)
	}
}

// templatedAttrs are rendered, hold whole documents that have braces of their
// own, or are reported by a rule of their own.
var templatedAttrs = []string{"prompt", "goal", "script", "output_schema", "stack.child_dot_source", "import", "import_error"}

func (c *compiler) ruleDetemplated() {
	c.each(func(a *Attrs, d Diagnostic) {
		for key, value := range a.All() {
			if value.Kind == KindString && template.HasSyntax(value.Str) && !slices.Contains(templatedAttrs, key) {
				d.Fix = "only goal, prompt and script are expanded; write the text out"
				c.warnf("detemplated_attribute", d, a.At(key), "%s is taken literally, with its braces", key)
			}
		}
	})
}

// inertOn lists attributes that only some handlers read.
var inertOn = []struct {
	key      string
	handlers []string
}{
	{"script", []string{HandlerCommand}},
	{"language", []string{HandlerCommand}},
	{"stdin_source", []string{HandlerCommand}},
	{"duration", []string{HandlerWait}},
	{"max_parallel", []string{HandlerParallel}},
	{"output_retries", []string{HandlerAgent, HandlerPrompt}},
	{"output_schema", []string{HandlerAgent, HandlerPrompt, HandlerCommand}},
	{"prompt", []string{HandlerAgent, HandlerPrompt, HandlerFanIn}},
	{"review_target", []string{HandlerHuman}},
}

func (c *compiler) ruleInert() {
	for _, n := range c.graph.Nodes {
		handler := n.Handler()
		for _, row := range inertOn {
			if n.Attrs.Has(row.key) && !slices.Contains(row.handlers, handler) {
				c.warnf("inert_attribute", aboutNode(n, "remove it, or give the node another shape"), n.Attrs.At(row.key),
					"%s has no effect on `%s`: only %s nodes read it, and this is a node of type %s", row.key, n.ID, strings.Join(row.handlers, ", "), handler)
			}
		}
	}
}

func (c *compiler) ruleJoinPolicy() {
	for _, n := range c.graph.Nodes {
		if n.Attrs.Has("join_policy") {
			c.errorf("join_policy_removed", aboutNode(n, "remove the attribute"), n.Attrs.At("join_policy"),
				"join_policy of `%s` no longer exists: a parallel node always waits for all its branches", n.ID)
		}
	}
}
