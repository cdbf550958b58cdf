package workflow

import (
	"slices"
	"strings"
)

// handlerRules are the rules about nodes of one type.
var handlerRules = []func(*compiler){
	(*compiler).ruleCommands,
	(*compiler).rulePrompts,
	(*compiler).ruleBackend,
	(*compiler).ruleFreeform,
	(*compiler).ruleForEach,
	(*compiler).ruleBranches,
}

var absoluteCd = lazily(`(?m)(?:^|[;&|(])\s*cd\s+(?:--\s+)?["']?/`)

func (c *compiler) ruleCommands() {
	for _, n := range c.graph.Nodes {
		script, isText := n.Attrs.String("script")
		if n.Handler() == HandlerCommand && strings.TrimSpace(script) == "" {
			at := n.Pos
			if n.Attrs.Has("script") {
				at = n.Attrs.At("script")
			}
			c.errorf("command_requires_script", aboutNode(n, `add script="…"`), at, "the command node `%s` has no script", n.ID)
		}
		if n.Attrs.Has("script") && n.Attrs.Has("prompt") {
			c.errorf("script_prompt_conflict", aboutNode(n, "keep one; a script makes a command, a prompt an agent"), n.Attrs.At("prompt"),
				"`%s` has both a script and a prompt", n.ID)
		}
		if isText {
			if m := absoluteCd().FindStringIndex(script); m != nil {
				at := n.Attrs.At("script")
				c.warnf("script_absolute_cd", aboutNode(n, "use a path relative to the run's directory"), at,
					"the script of `%s` changes to an absolute directory, which other machines do not have", n.ID)
			}
		}
		if v, ok := n.Attrs.Get("stdin_source"); ok && (v.Kind != KindString || strings.TrimSpace(v.Str) == "") {
			c.errorf("stdin_source_valid", aboutNode(n, `name a key of the run's context, such as stdin_source="response.plan"`), n.Attrs.At("stdin_source"),
				"stdin_source of `%s` is not the name of a context key", n.ID)
		}
	}
}

func (c *compiler) rulePrompts() {
	for _, n := range c.graph.Nodes {
		if n.LLM() && !n.Attrs.Has("prompt") && !n.Attrs.Has("label") {
			c.warnf("prompt_on_llm_nodes", aboutNode(n, `add prompt="…"`), n.Pos, "the %s node `%s` has neither a prompt nor a label to work from", n.Handler(), n.ID)
		}
	}
}

func (c *compiler) ruleBackend() {
	for _, n := range c.graph.Nodes {
		fail := func(key, fix, format string, args ...any) {
			c.errorf("backend_valid", aboutNode(n, fix), n.Attrs.At(key), format, args...)
		}
		backend := ""
		if v, ok := n.Attrs.Get("backend"); ok {
			backend = v.Text()
			if v.Kind != KindString || backend != "api" && backend != "acp" {
				fail("backend", "write backend=api or backend=acp", "backend of `%s` is the unknown value %.60q", n.ID, backend)
			}
		}
		if n.Attrs.Has("acp_command") {
			fail("acp_command", "write acp.command", "acp_command of `%s` is an old spelling that is no longer read", n.ID)
		}
		for _, key := range []string{"acp.command", "acp.config"} {
			v, ok := n.Attrs.Get(key)
			switch {
			case !ok:
			case v.Kind != KindString || strings.TrimSpace(v.Str) == "":
				fail(key, "write it as a text", "%s of `%s` is not a text", key, n.ID)
			case backend != "acp":
				fail(key, "add backend=acp", "%s of `%s` needs backend=acp", key, n.ID)
			}
		}
		if n.Attrs.Has("acp.command") && n.Attrs.Has("acp.config") {
			fail("acp.config", "keep one of them", "`%s` has both acp.command and acp.config", n.ID)
		}
	}
}

func (c *compiler) ruleFreeform() {
	for _, n := range c.graph.Nodes {
		if n.Handler() != HandlerHuman {
			continue
		}
		var free []*Edge
		for _, e := range c.graph.Out(n.ID) {
			if e.Freeform() {
				free = append(free, e)
			}
		}
		if len(free) > 1 {
			d := aboutEdge(free[1], "keep one freeform edge")
			d.NodeID = n.ID
			c.errorf("freeform_edge_count", d, free[1].Pos, "the human gate `%s` has %d freeform edges; free text can lead one way only", n.ID, len(free))
		}
	}
}

func (c *compiler) ruleForEach() {
	for _, n := range c.graph.Nodes {
		v, ok := n.Attrs.Get("for_each")
		if !ok || n.Handler() != HandlerParallel {
			continue
		}
		fail := func(fix, format string, args ...any) {
			c.errorf("for_each_contract", aboutNode(n, fix), n.Attrs.At("for_each"), format, args...)
		}
		if v.Kind != KindString || strings.TrimSpace(v.Str) == "" {
			fail("name a key of the run's context that holds a list", "for_each of `%s` is not the name of a context key", n.ID)
		}
		out := c.graph.Out(n.ID)
		if len(out) != 1 {
			fail("keep one edge, to the node that handles one item", "`%s` repeats one node for each item, so it has exactly one edge; it has %d", n.ID, len(out))
			continue
		}
		if target := c.graph.Node(out[0].To); target != nil && !target.LLM() {
			fail("lead the edge to an agent or prompt node", "`%s` repeats `%s`, a node of type %s; only agent and prompt nodes can be repeated", n.ID, target.ID, target.Handler())
		}
		for _, e := range c.graph.In(n.ID) {
			if from := c.graph.Node(e.From); from != nil && from.Handler() == HandlerParallel {
				fail("put a node between them", "`%s` is itself a branch of the parallel node `%s`; for_each cannot be nested", n.ID, from.ID)
				break
			}
		}
	}
}

// ruleBranches: branches of a parallel node run side by side and cannot continue
// one thread.
func (c *compiler) ruleBranches() {
	reported := map[string]bool{}
	for _, n := range c.graph.Nodes {
		if n.Handler() != HandlerParallel {
			continue
		}
		for _, e := range c.graph.Out(n.ID) {
			for _, key := range threadAttrs(&e.Attrs) {
				c.warnf("parallel_branch_inert_attribute", aboutEdge(e, "remove it"), e.Attrs.At(key), "%s has no effect on the way into a parallel branch", key)
			}
			branch := c.graph.Node(e.To)
			if branch == nil || reported[branch.ID] {
				continue
			}
			reported[branch.ID] = true
			for _, key := range threadAttrs(&branch.Attrs) {
				c.warnf("parallel_branch_inert_attribute", aboutNode(branch, "remove it"), branch.Attrs.At(key), "%s has no effect on `%s`, a branch of the parallel node `%s`", key, branch.ID, n.ID)
			}
		}
	}
}

func threadAttrs(a *Attrs) []string {
	var keys []string
	if a.Has("thread_id") {
		keys = append(keys, "thread_id")
	}
	if f, _ := a.String("fidelity"); f == "full" {
		keys = append(keys, "fidelity")
	}
	return slices.Clip(keys)
}
