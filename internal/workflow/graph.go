package workflow

// Graph is one workflow. Nodes and edges keep the order of the file.
//
// The indexes behind Node, Out and In are built by Parse and AddNode, AddEdge
// and SetEdges; code that changes Edges in place must not change endpoints.
type Graph struct {
	Name  string
	Attrs Attrs
	Nodes []*Node
	Edges []*Edge

	// Source is the file the graph was parsed from, nil for a graph made
	// otherwise.
	Source *Source
	Pos    Position // of the graph's name

	byID map[string]*Node
	out  map[string][]*Edge
	in   map[string][]*Edge
}

// Node is a stage.
type Node struct {
	ID      string
	Attrs   Attrs
	Classes []string // from `class` and from labelled subgraphs, without repetition
	Pos     Position // of the id in the node's first statement
}

// Edge is a way from one node to another. An endpoint may name a node that does
// not exist; lint reports it (`edge_target_exists`).
type Edge struct {
	From, To string
	Attrs    Attrs
	Pos      Position // of the source node's id in the edge statement

	toPos Position // of the target's id
}

// Node returns the node with this id, or nil.
func (g *Graph) Node(id string) *Node { return g.byID[id] }

// Out are the edges that leave a node, in file order.
func (g *Graph) Out(id string) []*Edge { return g.out[id] }

// In are the edges that enter a node, in file order.
func (g *Graph) In(id string) []*Edge { return g.in[id] }

// AddNode appends a node. A node with the same id must not exist.
func (g *Graph) AddNode(n *Node) {
	if g.byID == nil {
		g.byID = map[string]*Node{}
	}
	g.Nodes = append(g.Nodes, n)
	g.byID[n.ID] = n
}

// AddEdge appends an edge.
func (g *Graph) AddEdge(e *Edge) {
	if g.out == nil {
		g.out, g.in = map[string][]*Edge{}, map[string][]*Edge{}
	}
	g.Edges = append(g.Edges, e)
	g.out[e.From] = append(g.out[e.From], e)
	g.in[e.To] = append(g.in[e.To], e)
}

// SetEdges replaces all edges.
func (g *Graph) SetEdges(edges []*Edge) {
	g.Edges, g.out, g.in = nil, nil, nil
	for _, e := range edges {
		g.AddEdge(e)
	}
}

// setNodes replaces all nodes.
func (g *Graph) setNodes(nodes []*Node) {
	g.Nodes, g.byID = nil, nil
	for _, n := range nodes {
		g.AddNode(n)
	}
}

// Goal is the graph's own goal, "" when it has none.
func (g *Graph) Goal() string {
	goal, _ := g.Attrs.String("goal")
	return goal
}

// Start is the node a run begins with: the first of shape Mdiamond, else the
// one called `start` or `Start`. Nil when there is none.
func (g *Graph) Start() *Node {
	for _, n := range g.Nodes {
		if n.Shape() == "Mdiamond" {
			return n
		}
	}
	return g.firstNamed(startNames)
}

// Exit is the node lint takes for the end: the first of shape Msquare, else the
// one called `exit`, `Exit`, `end` or `End`. Nil when there is none. A run ends
// only at a node that is Terminal, which a node with such a name need not be.
func (g *Graph) Exit() *Node {
	for _, n := range g.Nodes {
		if n.Shape() == "Msquare" {
			return n
		}
	}
	return g.firstNamed(exitNames)
}

var (
	startNames = []string{"start", "Start"}
	exitNames  = []string{"exit", "Exit", "end", "End"}
)

func (g *Graph) firstNamed(ids []string) *Node {
	for _, id := range ids {
		if n := g.byID[id]; n != nil {
			return n
		}
	}
	return nil
}

// Handler types of stages.
const (
	HandlerStart       = "start"
	HandlerExit        = "exit"
	HandlerAgent       = "agent"
	HandlerPrompt      = "prompt"
	HandlerHuman       = "human"
	HandlerConditional = "conditional"
	HandlerParallel    = "parallel"
	HandlerFanIn       = "parallel.fan_in"
	HandlerCommand     = "command"
	HandlerManagerLoop = "stack.manager_loop"
	HandlerWait        = "wait"
)

var shapeHandlers = map[string]string{
	"Mdiamond":      HandlerStart,
	"Msquare":       HandlerExit,
	"box":           HandlerAgent,
	"tab":           HandlerPrompt,
	"hexagon":       HandlerHuman,
	"diamond":       HandlerConditional,
	"component":     HandlerParallel,
	"tripleoctagon": HandlerFanIn,
	"parallelogram": HandlerCommand,
	"house":         HandlerManagerLoop,
	"insulator":     HandlerWait,
}

// typeHandlers are the known values of `type`. `tool` is an old name of
// `command`.
var typeHandlers = func() map[string]string {
	types := map[string]string{"tool": HandlerCommand}
	for _, h := range shapeHandlers {
		types[h] = h
	}
	return types
}()

// Label is the node's label, or its id. A label of another kind than string is
// none: `label="30s"` is a duration.
func (n *Node) Label() string {
	if label, ok := n.Attrs.String("label"); ok {
		return label
	}
	return n.ID
}

// Shape is the written shape; without `shape` and `type` a node that has a
// `script` is a parallelogram, every other node a box.
func (n *Node) Shape() string {
	if shape, ok := n.Attrs.String("shape"); ok {
		return shape
	}
	if !n.Attrs.Has("type") && n.Attrs.Has("script") {
		return "parallelogram"
	}
	return "box"
}

// Handler is the type of handler that runs the node: a known `type`, else what
// the shape says, else agent.
func (n *Node) Handler() string {
	if t, ok := n.Attrs.String("type"); ok {
		if h, known := typeHandlers[t]; known {
			return h
		}
	}
	if h, known := shapeHandlers[n.Shape()]; known {
		return h
	}
	return HandlerAgent
}

// LLM reports whether the node needs a language model by its handler alone. A
// fan-in node needs one as well when it has a prompt.
func (n *Node) LLM() bool {
	h := n.Handler()
	return h == HandlerAgent || h == HandlerPrompt
}

// Terminal reports whether a run ends here: shape Msquare or type `exit`. The
// id does not matter.
func (n *Node) Terminal() bool {
	if t, ok := n.Attrs.String("type"); ok && t == HandlerExit {
		return true
	}
	return n.Shape() == "Msquare"
}

// Label is the edge's label, "" without one.
func (e *Edge) Label() string {
	label, _ := e.Attrs.String("label")
	return label
}

// Condition is the text of the edge's condition, "" for an unconditional edge.
func (e *Edge) Condition() string {
	condition, _ := e.Attrs.String("condition")
	return condition
}

// Weight orders edges that could all be taken; higher goes first.
func (e *Edge) Weight() int64 {
	weight, _ := e.Attrs.Int("weight")
	return weight
}

// LoopRestart reports whether taking the edge starts the run's bookkeeping anew.
func (e *Edge) LoopRestart() bool {
	restart, _ := e.Attrs.Bool("loop_restart")
	return restart
}

// Freeform reports whether the edge is a human gate's way for free text.
func (e *Edge) Freeform() bool {
	freeform, _ := e.Attrs.Bool("freeform")
	return freeform
}
