package workflow

// maxCheckedChildren bounds how many children are compiled to check one workflow.
const maxCheckedChildren = 50

// ruleChildren compiles the children of manager loops, which Fabro first looks at
// when the run gets there.
func (c *compiler) ruleChildren() {
	if c.opts.child {
		return
	}
	checked := 0
	for _, n := range c.graph.Nodes {
		if n.Handler() != HandlerManagerLoop {
			continue
		}
		if checked++; checked > maxCheckedChildren {
			return
		}
		at := n.Pos
		for _, key := range []string{"stack.child_workflow", "stack.child_dot_source"} {
			if n.Attrs.Has(key) {
				at = n.Attrs.At(key)
			}
		}
		_, list, err := compileChild(c.bundle, c.graph.Source.Path, n, CompileOptions{StrictVariables: true, child: true, forClient: c.opts.forClient})
		if err != nil {
			if faults := DiagnosticsOf(err); faults != nil {
				list = faults
			} else {
				c.warnf("child_workflow", aboutNode(n, "set stack.child_workflow to the path of a workflow"), at, "%s", err)
				continue
			}
		}
		for _, found := range list {
			if found.Severity != SeverityError {
				continue
			}
			d := aboutNode(n, found.Fix)
			d.Related = []Related{{Message: found.Message, SourcePath: found.SourcePath, Line: found.Line, Column: found.Column}}
			c.warnf("child_workflow", d, at, "the child workflow of `%s` has an error, so the node will fail: %s", n.ID, found.Message)
			break
		}
	}
}
