package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// builder gives the statements of a file their meaning: scopes of defaults,
// nodes that come into being at their first mention, classes of subgraphs.
type builder struct {
	p        *parser
	graph    *Graph
	declared map[string]bool           // ids that have a node statement anywhere
	classes  map[*Node]map[string]bool // of nodes with many classes
	attrs    int                       // attributes made so far, against maxAttributes
	seen     map[*Node]bool            // nodes whose own statement has been met
}

// scope is what applies inside one pair of braces.
type scope struct {
	node, edge Attrs
	class      string // of the subgraph's own label
	hoisted    bool   // the scope's own defaults are in node and edge already
}

func build(p *parser, name located, body []statement) (*Graph, error) {
	b := &builder{
		p: p, graph: &Graph{Name: name.text, Source: p.source, Pos: Position{p.source, name.pos}},
		declared: map[string]bool{}, classes: map[*Node]map[string]bool{}, seen: map[*Node]bool{},
	}
	b.declare(body)
	if err := b.run(body, &scope{}); err != nil {
		return nil, err
	}
	return b.graph, nil
}

func (b *builder) declare(body []statement) {
	for i := range body {
		switch body[i].kind {
		case nodeStatement:
			b.declared[body[i].ids[0].text] = true
		case subgraph:
			b.declare(body[i].body)
		}
	}
}

func (b *builder) run(body []statement, sc *scope) error {
	for i := range body {
		s := &body[i]
		var err error
		switch s.kind {
		case graphAttrs:
			for _, a := range s.attrs {
				b.graph.Attrs.set(a)
			}
			err = b.count(s, len(s.attrs))
		case nodeDefaults:
			err = b.count(s, len(s.attrs))
			if !sc.hoisted {
				setAll(&sc.node, s.attrs)
			}
		case edgeDefaults:
			err = b.count(s, len(s.attrs))
			if !sc.hoisted {
				setAll(&sc.edge, s.attrs)
			}
		case subgraph:
			err = b.subgraph(s, sc)
		case nodeStatement:
			err = b.node(s, sc)
		case edgeStatement:
			err = b.edges(s, sc)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count charges attributes to the limit: defaults multiply them by nodes, edge
// chains by edges.
func (b *builder) count(s *statement, n int) error {
	if b.attrs += n; b.attrs > maxAttributes {
		return b.p.fail(s.pos, fmt.Sprintf("the graph has more than %d attributes once defaults and edge chains are expanded", maxAttributes), "use fewer defaults")
	}
	if len(b.graph.Nodes) > maxGraphMembers || len(b.graph.Edges) > maxGraphMembers {
		return b.p.fail(s.pos, fmt.Sprintf("the graph has more than %d nodes or edges", maxGraphMembers), "split the workflow")
	}
	return nil
}

// subgraph opens a scope that inherits the defaults around it. Its own defaults
// hold from its start, wherever they stand in it, while at top level they hold
// from their place on. Only its own label gives a class.
func (b *builder) subgraph(s *statement, outer *scope) error {
	if err := b.count(s, outer.node.Len()+outer.edge.Len()); err != nil {
		return err
	}
	sc := &scope{node: outer.node.Clone(), edge: outer.edge.Clone(), hoisted: true}
	for i := range s.body {
		switch inner := &s.body[i]; inner.kind {
		case nodeDefaults:
			setAll(&sc.node, inner.attrs)
		case edgeDefaults:
			setAll(&sc.edge, inner.attrs)
		case graphAttrs:
			for _, a := range inner.attrs {
				if a.key == "label" && a.value.Kind == KindString {
					sc.class = subgraphClass(a.value.Str)
				}
			}
		}
	}
	return b.run(s.body, sc)
}

// subgraphClass derives a class from a subgraph's label: lower case, spaces to
// dashes, everything else outside [a-z0-9-] dropped.
func subgraphClass(label string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return -1
	}, strings.ToLower(label))
}

func (b *builder) node(s *statement, sc *scope) error {
	id := s.ids[0]
	n, err := b.mention(s, id.text, sc)
	if err != nil {
		return err
	}
	if !b.seen[n] {
		b.seen[n] = true
		n.Pos = Position{b.p.source, id.pos}
	}
	for _, a := range s.attrs {
		n.Attrs.set(a)
		if a.key == "class" {
			b.classesOf(n, a.value)
		}
	}
	b.addClass(n, sc.class)
	return b.count(s, len(s.attrs))
}

// mention returns a declared node, which takes the defaults of the scope of its
// first mention.
func (b *builder) mention(s *statement, id string, sc *scope) (*Node, error) {
	if n := b.graph.Node(id); n != nil {
		return n, nil
	}
	if err := b.count(s, sc.node.Len()); err != nil {
		return nil, err
	}
	n := &Node{ID: id, Attrs: sc.node.cloneFor(len(s.attrs))}
	b.graph.AddNode(n)
	if v, ok := n.Attrs.Get("class"); ok {
		b.classesOf(n, v)
	}
	return n, nil
}

func (b *builder) edges(s *statement, sc *scope) error {
	for _, id := range s.ids {
		if !b.declared[id.text] {
			continue
		}
		n, err := b.mention(s, id.text, sc)
		if err != nil {
			return err
		}
		b.addClass(n, sc.class)
	}
	for i := 1; i < len(s.ids); i++ {
		if err := b.count(s, sc.edge.Len()+len(s.attrs)); err != nil {
			return err
		}
		attrs := sc.edge.cloneFor(len(s.attrs))
		setAll(&attrs, s.attrs)
		b.graph.AddEdge(&Edge{
			From: s.ids[i-1].text, To: s.ids[i].text, Attrs: attrs,
			Pos: Position{b.p.source, s.ids[i-1].pos}, toPos: Position{b.p.source, s.ids[i].pos},
		})
	}
	return nil
}

func setAll(a *Attrs, list []attr) {
	for _, e := range list {
		a.set(e)
	}
}

func (b *builder) classesOf(n *Node, v Value) {
	if v.Kind != KindString {
		return
	}
	for _, class := range splitClasses(v.Str) {
		b.addClass(n, class)
	}
}

func splitClasses(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// addClass adds a class once. A node with many classes gets a set, so that a
// megabyte of them stays linear.
func (b *builder) addClass(n *Node, class string) {
	const few = 16
	switch set := b.classes[n]; {
	case class == "":
		return
	case set != nil:
		if set[class] {
			return
		}
		set[class] = true
	case slices.Contains(n.Classes, class):
		return
	case len(n.Classes) >= few:
		set = map[string]bool{class: true}
		for _, c := range n.Classes {
			set[c] = true
		}
		b.classes[n] = set
	}
	n.Classes = append(n.Classes, class)
}
