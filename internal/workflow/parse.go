package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the parser. They are far above any real workflow and keep a hostile
// file from costing more than a few hundred megabytes.
const (
	maxSourceBytes  = 64 << 20
	maxSubgraphs    = 200       // levels of nesting
	maxAttributes   = 2_000_000 // after defaults and edge chains are expanded
	maxGraphMembers = 1_000_000 // nodes and edges, each
)

// Parse reads a workflow graph: exactly one `digraph NAME { … }`. The path is
// used in positions and messages only. Errors are *SyntaxError.
//
// Differences from Graphviz: ids are ASCII identifiers; one attribute block a
// statement; attribute names may have dots; no ports, no HTML strings, no `--`,
// no groups as endpoints; `graph [...]` and `key = value` inside a subgraph set
// attributes of the whole graph; a node that only edges mention does not come
// into being.
func Parse(path string, src []byte) (*Graph, error) {
	if len(src) > maxSourceBytes {
		return nil, &SyntaxError{Path: path, Line: 1, Column: 1,
			Message: fmt.Sprintf("the file has %d bytes; a workflow may have at most %d", len(src), maxSourceBytes),
			Fix:     "move long texts into files and name them with @"}
	}
	return ParseSource(NewSource(path, string(src)))
}

// ParseSource is Parse for a text that is already indexed.
func ParseSource(source *Source) (*Graph, error) {
	p := &parser{lexer{source: source, text: source.Text, openComment: -1}}
	if !utf8.ValidString(source.Text) {
		return nil, p.fail(firstInvalid(source.Text), "the file is not valid UTF-8", "save it as UTF-8")
	}
	if strings.HasPrefix(source.Text, byteOrderMark) {
		return nil, p.fail(0, "the file begins with a byte-order mark", "save it as UTF-8 without the mark (BOM)")
	}
	name, body, err := p.document()
	if err != nil {
		return nil, err
	}
	return build(p, name, body)
}

func firstInvalid(s string) int {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(s)
}

type statementKind uint8

const (
	graphAttrs statementKind = iota
	nodeDefaults
	edgeDefaults
	subgraph
	nodeStatement
	edgeStatement
)

// statement is one statement as written; build gives it its meaning.
type statement struct {
	kind  statementKind
	pos   int       // byte offset of its first character
	ids   []located // the node, or the chain of an edge statement
	attrs []attr
	body  []statement // of a subgraph
}

type located struct {
	text string
	pos  int
}

type parser struct{ lexer }

func (p *parser) document() (name located, body []statement, err error) {
	p.skip()
	if p.pos == len(p.text) {
		return name, nil, p.fail(p.pos, "the file holds no graph", "write digraph NAME { … }")
	}
	start := p.pos
	if word, _ := p.ident(); word != "digraph" {
		p.pos = start
		switch word {
		case "strict":
			return name, nil, p.fail(start, "`strict` is not part of this dialect", "start with digraph NAME {")
		case "graph":
			return name, nil, p.fail(start, "a workflow is a directed graph", "write digraph instead of graph, and -> instead of --")
		}
		return name, nil, p.fail(start, "expected `digraph`, found "+p.found(), "start with digraph NAME {")
	}
	p.skip()
	name.pos = p.pos
	var ok bool
	if name.text, ok = p.ident(); !ok {
		return name, nil, p.fail(p.pos, "expected the name of the graph, found "+p.found(), "write digraph NAME {, the name being letters, digits and _")
	}
	p.skip()
	if !p.accept("{") {
		return name, nil, p.fail(p.pos, "expected `{` after the graph's name, found "+p.found(), "write digraph NAME { … }")
	}
	body, err = p.statements(0)
	if err != nil {
		return name, nil, err
	}
	p.skip()
	if p.pos < len(p.text) {
		return name, nil, p.fail(p.pos, "expected nothing after the graph's closing `}`, found "+p.found(), "a file holds exactly one graph")
	}
	return name, body, nil
}

// statements reads up to and including the closing brace.
func (p *parser) statements(depth int) ([]statement, error) {
	var list []statement
	for {
		p.skip()
		if p.accept("}") {
			return list, nil
		}
		if p.pos == len(p.text) {
			return nil, p.fail(p.pos, "the graph is never closed", "add the missing }")
		}
		s, err := p.statement(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
		p.skip()
		p.accept(";")
	}
}

func (p *parser) statement(depth int) (statement, error) {
	s := statement{pos: p.pos}
	word, ok := p.ident()
	if !ok {
		return s, p.badStatement()
	}
	after := p.pos
	p.skip()
	switch c := p.peek(); {
	case c == '[' && word == "graph":
		return p.withAttrs(s, graphAttrs)
	case c == '[' && word == "node":
		return p.withAttrs(s, nodeDefaults)
	case c == '[' && word == "edge":
		return p.withAttrs(s, edgeDefaults)
	case word == "subgraph" && (c == '{' || isIdentStart(c)):
		return p.subgraph(s, depth)
	case c == '=':
		return p.assignment(s, word)
	}
	s.ids = []located{{word, s.pos}}
	p.pos = after
	return p.nodeOrEdge(s)
}

func (p *parser) badStatement() error {
	switch c := p.peek(); {
	case c == '"':
		return p.fail(p.pos, "node ids are not quoted", "use letters, digits and _ for the id and put the text into label=\"…\"")
	case isDigit(c):
		return p.fail(p.pos, "a node id starts with a letter or _, found "+p.found(), "put a letter in front of it")
	case c == '{':
		return p.fail(p.pos, "a group without `subgraph` is not part of this dialect", "write subgraph { … }, or one edge for each node")
	case c == '#':
		return p.fail(p.pos, "`#` starts no comment here", "use // or /* … */")
	case c == '[':
		return p.fail(p.pos, "a statement has one attribute block; this is a second one", "move the attributes into the first block")
	case c == ';':
		return p.fail(p.pos, "expected a statement, found `;`", "remove it; one `;` may follow a statement")
	}
	return p.fail(p.pos, "expected a statement, found "+p.found(), "statements are a [ … ], a -> b, key = value and subgraph { … }")
}

func (p *parser) withAttrs(s statement, kind statementKind) (statement, error) {
	s.kind = kind
	var err error
	s.attrs, err = p.attributes()
	return s, err
}

func (p *parser) subgraph(s statement, depth int) (statement, error) {
	s.kind = subgraph
	if depth == maxSubgraphs {
		return s, p.fail(s.pos, fmt.Sprintf("subgraphs are nested more than %d deep", maxSubgraphs), "a node needs no more than one subgraph around it")
	}
	if _, named := p.ident(); named {
		p.skip()
	}
	if !p.accept("{") {
		return s, p.fail(p.pos, "expected `{` after `subgraph`, found "+p.found(), "write subgraph NAME { … }")
	}
	var err error
	s.body, err = p.statements(depth + 1)
	return s, err
}

// assignment reads `key = value`, which sets a graph attribute.
func (p *parser) assignment(s statement, key string) (statement, error) {
	s.kind = graphAttrs
	p.accept("=")
	p.skip()
	at := p.pos
	v, err := p.value()
	s.attrs = []attr{{key: key, value: v, at: Position{p.source, at}}}
	return s, err
}

func (p *parser) nodeOrEdge(s statement) (statement, error) {
	s.kind = nodeStatement
	for {
		p.skip()
		if !p.accept("->") {
			break
		}
		s.kind = edgeStatement
		p.skip()
		at := p.pos
		id, ok := p.ident()
		if !ok {
			return s, p.badTarget()
		}
		s.ids = append(s.ids, located{id, at})
	}
	switch p.peek() {
	case '[':
		return p.withAttrs(s, s.kind)
	case ':':
		return s, p.fail(p.pos, "ports (`node:port`) are not part of this dialect", "name the node alone")
	case '-':
		return s, p.fail(p.pos, "expected `->`, found "+p.found(), "edges are directed: a -> b")
	case '.':
		return s, p.fail(p.pos, "a dot may not stand in a node id or a graph attribute written as key = value", "attributes with dots go into [ … ]")
	}
	return s, nil
}

func (p *parser) badTarget() error {
	switch c := p.peek(); {
	case c == '"':
		return p.fail(p.pos, "node ids are not quoted", "use letters, digits and _ for the id")
	case c == '{':
		return p.fail(p.pos, "an edge leads to one node, not to a group", "write one edge for each node")
	}
	return p.fail(p.pos, "expected a node id after `->`, found "+p.found(), "a node id is letters, digits and _, and starts with no digit")
}

// attributes reads one `[ … ]`.
func (p *parser) attributes() ([]attr, error) {
	open := p.pos
	p.accept("[")
	var list []attr
	for {
		p.skip()
		if p.accept("]") {
			return list, nil
		}
		if p.accept(",") || p.accept(";") {
			continue
		}
		if p.pos == len(p.text) {
			return nil, p.fail(open, "this attribute block is never closed", "add the missing ]")
		}
		a, err := p.attribute()
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
}

func (p *parser) attribute() (attr, error) {
	start := p.pos
	key, ok := p.key()
	if !ok {
		switch p.peek() {
		case '"':
			return attr{}, p.fail(start, "attribute names are not quoted", "if this belongs to the string before it, write its inner quotes as \\\"")
		case '+':
			return attr{}, p.fail(start, "strings are not joined with `+` in this dialect", "write one string; it may span lines")
		}
		return attr{}, p.fail(start, "expected an attribute or `]`, found "+p.found(), "write attributes as key=value, with texts in quotes")
	}
	p.skip()
	if !p.accept("=") {
		return attr{}, p.fail(start, fmt.Sprintf("attribute `%.60s` has no value", key), fmt.Sprintf("write %.60s=…", key))
	}
	p.skip()
	at := p.pos
	v, err := p.value()
	return attr{key: key, value: v, at: Position{p.source, at}}, err
}
