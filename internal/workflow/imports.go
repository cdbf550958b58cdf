package workflow

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// Attributes a placeholder of an import may have. They become attributes of the
// imported nodes that have none of that name; those of a language model only
// where there is one.
var (
	placeholderLLM = []string{"model", "provider", "reasoning_effort", "speed", "backend", "acp.command", "acp.config"}
	placeholderAll = []string{"fidelity", "max_retries", "thread_id"}
)

// boundaryAttrs may not stand on the edges that an import drops: the one from
// its start and the one to its exit.
var boundaryAttrs = []string{"label", "condition", "weight", "fidelity", "thread_id", "loop_restart", "freeform"}

// Each import rebuilds the graph around it, so their number is bounded as well as
// their depth.
const (
	maxImportDepth = 20
	maxImports     = 500
)

// importError is the reason an import failed; at is where, if not at the
// placeholder.
type importError struct {
	message string
	fix     string
	at      Position
	related *Related
}

func (e *importError) Error() string { return e.message }

// expandImports splices imported graphs in the place of their placeholders. A
// placeholder whose import fails stays as it is, with the reason in the
// attribute import_error.
func (c *compiler) expandImports() {
	if !slices.ContainsFunc(c.graph.Nodes, func(n *Node) bool { return n.Attrs.Has("import") }) {
		return
	}
	c.expand(c.graph, []string{c.graph.Source.Path}, &imports{})
}

// imports counts what imports have brought in so far.
type imports struct{ graphs, nodes int }

// expand works on one graph; stack is the chain of files that led here.
func (c *compiler) expand(g *Graph, stack []string, total *imports) {
	for _, n := range slices.Clone(g.Nodes) {
		if !n.Attrs.Has("import") {
			continue
		}
		inner, err := c.imported(n, stack, total)
		if err == nil {
			err = splice(g, n, inner)
		}
		var fault *importError
		if !errors.As(err, &fault) {
			continue
		}
		at := fault.at
		if !at.Known() {
			at = n.Attrs.At("import")
		}
		d := Diagnostic{Rule: "import_error", Severity: SeverityError, NodeID: n.ID, Message: "import failed: " + fault.message, Fix: fault.fix}
		if d.Fix == "" {
			d.Fix = "import a workflow with one start and one exit, by a path relative to the file that imports it"
		}
		if fault.related != nil {
			d.Related = []Related{*fault.related}
		}
		c.report(d, at)
		n.Attrs.Set("import_error", String(fault.message))
	}
}

func (c *compiler) imported(n *Node, stack []string, total *imports) (*Graph, error) {
	reference, ok := n.Attrs.String("import")
	at := n.Attrs.At("import")
	switch {
	case !ok || strings.TrimSpace(reference) == "":
		return nil, &importError{message: "`import` is not the path of a file", fix: `write import="./other.fabro"`}
	case template.HasSyntax(reference):
		return nil, &importError{message: "templates are not supported in the path of an import"}
	case len(stack) > maxImportDepth:
		return nil, &importError{message: fmt.Sprintf("imports are nested more than %d deep", maxImportDepth)}
	}
	for name := range n.Attrs.All() {
		if name != "import" && name != "class" && !slices.Contains(placeholderLLM, name) && !slices.Contains(placeholderAll, name) {
			return nil, &importError{
				message: fmt.Sprintf("attribute `%s` has no meaning on a node that imports a workflow", name),
				fix:     "set it on the nodes of the imported file", at: n.Attrs.At(name),
			}
		}
	}
	key, err := resolveKey(c.pathOf(at), reference)
	if err != nil {
		return nil, &importError{message: "the path " + err.Error()}
	}
	if slices.Contains(stack, key) {
		return nil, &importError{message: fmt.Sprintf("%s imports itself: %s", key, strings.Join(append(slices.Clone(stack), key), " → "))}
	}
	source, ok := c.source(key)
	if !ok {
		return nil, &importError{message: fmt.Sprintf("there is no file %s", key)}
	}
	if total.graphs++; total.graphs > maxImports {
		return nil, &importError{message: fmt.Sprintf("there are more than %d imports", maxImports)}
	}
	if !c.spend(len(source.Text), Diagnostic{NodeID: n.ID}, at) {
		return nil, &importError{message: "the workflow is too long already"}
	}
	g, err := ParseSource(source)
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return nil, &importError{message: syntax.Error(), related: &Related{
			Message: syntax.Message, SourcePath: syntax.Path, Line: syntax.Line, Column: syntax.Column,
		}}
	}
	if total.nodes += len(g.Nodes); total.nodes > maxGraphMembers/4 {
		return nil, &importError{message: fmt.Sprintf("imports add more than %d nodes", maxGraphMembers/4)}
	}
	c.expand(g, append(slices.Clone(stack), key), total)
	return g, nil
}

// boundary finds where control enters and leaves an imported graph.
func boundary(g *Graph) (first, last *Edge, err error) {
	file := path.Base(g.Source.Path)
	var starts, exits []*Node
	for _, n := range g.Nodes {
		if isStart(n) {
			starts = append(starts, n)
		}
		if isExit(n) {
			exits = append(exits, n)
		}
	}
	if len(starts) != 1 || len(exits) != 1 {
		return nil, nil, &importError{message: fmt.Sprintf("%s has %d start and %d exit nodes; an imported workflow has one of each", file, len(starts), len(exits))}
	}
	start, exit := starts[0], exits[0]
	if len(g.Out(start.ID)) != 1 || len(g.In(start.ID)) != 0 {
		return nil, nil, &importError{message: fmt.Sprintf("the start of %s needs exactly one outgoing and no incoming edge", file)}
	}
	if len(g.In(exit.ID)) != 1 || len(g.Out(exit.ID)) != 0 {
		return nil, nil, &importError{message: fmt.Sprintf("the exit of %s needs exactly one incoming and no outgoing edge", file)}
	}
	first, last = g.Out(start.ID)[0], g.In(exit.ID)[0]
	for _, e := range []*Edge{first, last} {
		for _, name := range boundaryAttrs {
			if e.Attrs.Has(name) {
				return nil, nil, &importError{message: fmt.Sprintf("the edge %s -> %s of %s is dropped by the import, so it may not have `%s`", e.From, e.To, file, name)}
			}
		}
	}
	return first, last, nil
}

// splice replaces the placeholder by the inner graph without its start and exit.
func splice(g *Graph, placeholder *Node, inner *Graph) error {
	first, last, err := boundary(inner)
	if err != nil {
		return err
	}
	prefix := func(id string) string { return placeholder.ID + "." + id }
	start, exit := first.From, last.To
	var added []*Node
	for _, n := range inner.Nodes {
		if n.ID == start || n.ID == exit {
			continue
		}
		if g.Node(prefix(n.ID)) != nil {
			return &importError{message: fmt.Sprintf("a node %q exists already", prefix(n.ID))}
		}
		added = append(added, adopt(n, placeholder, inner, prefix))
	}
	nodes := make([]*Node, 0, len(g.Nodes)+len(added))
	for _, n := range g.Nodes {
		if n == placeholder {
			nodes = append(nodes, added...)
		} else {
			nodes = append(nodes, n)
		}
	}
	edges := spliceEdges(g, placeholder.ID, prefix, inner, first, last)
	if len(edges) > maxGraphMembers {
		return &importError{message: fmt.Sprintf("the import makes more than %d edges", maxGraphMembers)}
	}
	g.setNodes(nodes)
	g.SetEdges(edges)
	return nil
}

func spliceEdges(g *Graph, id string, prefix func(string) string, inner *Graph, first, last *Edge) []*Edge {
	bypass := first == last // nothing between start and exit
	var edges []*Edge
	add := func(e *Edge, from, to string) {
		if len(edges) <= maxGraphMembers {
			edges = append(edges, &Edge{From: from, To: to, Attrs: e.Attrs.Clone(), Pos: e.Pos, toPos: e.toPos})
		}
	}
	placed := false
	for _, e := range g.Edges {
		if (e.From == id || e.To == id) && !placed {
			placed = true
			for _, in := range inner.Edges {
				if in != first && in != last {
					add(in, prefix(in.From), prefix(in.To))
				}
			}
		}
		switch {
		case e.From != id && e.To != id:
			edges = append(edges, e)
		case !bypass:
			from, to := e.From, e.To
			if from == id {
				from = prefix(last.From)
			}
			if to == id {
				to = prefix(first.To)
			}
			add(e, from, to)
		case e.To == id:
			for _, out := range g.Out(id) {
				if out.To == id {
					continue
				}
				joined := Edge{Attrs: e.Attrs.Clone(), Pos: e.Pos, toPos: out.toPos}
				joined.Attrs.merge(out.Attrs)
				add(&joined, e.From, out.To)
			}
		}
	}
	return edges
}

// adopt makes a node of the outer graph from an imported one.
func adopt(n, placeholder *Node, inner *Graph, prefix func(string) string) *Node {
	m := &Node{ID: prefix(n.ID), Attrs: n.Attrs.Clone(), Classes: slices.Clone(n.Classes), Pos: n.Pos}
	for _, key := range []string{"retry_target", "fallback_retry_target", "human.default_choice"} {
		if target, ok := m.Attrs.String(key); ok && inner.Node(target) != nil {
			m.Attrs.Set(key, String(prefix(target)))
		}
	}
	inherit := placeholderAll
	if m.LLM() {
		inherit = slices.Concat(placeholderLLM, placeholderAll)
	}
	for _, key := range inherit {
		if i := placeholder.Attrs.find(key); i >= 0 && !m.Attrs.Has(key) {
			m.Attrs.set(placeholder.Attrs.entries[i])
		}
	}
	for _, class := range append(slices.Clone(placeholder.Classes), subgraphClass(strings.ReplaceAll(placeholder.ID, "_", "-"))) {
		if class != "" && !slices.Contains(m.Classes, class) {
			m.Classes = append(m.Classes, class)
		}
	}
	return m
}

func isStart(n *Node) bool { return n.Shape() == "Mdiamond" || slices.Contains(startNames, n.ID) }

func isExit(n *Node) bool { return n.Shape() == "Msquare" || slices.Contains(exitNames, n.ID) }
