package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
)

type wireNode struct {
	ID      string   `json:"id"`
	Attrs   Attrs    `json:"attrs"`
	Classes []string `json:"classes,omitempty"`
}

type wireEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Attrs Attrs  `json:"attrs"`
}

// MarshalJSON writes the form of the event `run.created` and of `/state`: name,
// nodes by id (in file order), edges, attrs. Positions are not part of it.
func (g *Graph) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	put := func(key string, v any) error {
		text, err := marshalPlain(v)
		if err == nil {
			fmt.Fprintf(&b, "%q:%s", key, text)
		}
		return err
	}
	b.WriteByte('{')
	if err := put("name", g.Name); err != nil {
		return nil, err
	}
	b.WriteString(`,"nodes":{`)
	for i, n := range g.Nodes {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := put(n.ID, wireNode{n.ID, n.Attrs, n.Classes}); err != nil {
			return nil, err
		}
	}
	b.WriteString(`},"edges":[`)
	for i, e := range g.Edges {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := marshalPlain(wireEdge{e.From, e.To, e.Attrs})
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteString("],")
	if err := put("attrs", g.Attrs); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes and keeps the order of the text.
func (g *Graph) UnmarshalJSON(data []byte) error {
	var wire struct {
		Name  string          `json:"name"`
		Nodes json.RawMessage `json:"nodes"`
		Edges []wireEdge      `json:"edges"`
		Attrs Attrs           `json:"attrs"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*g = Graph{Name: wire.Name, Attrs: wire.Attrs}
	if len(wire.Nodes) > 0 {
		err := eachMember(wire.Nodes, func(id string, dec *json.Decoder) error {
			var n wireNode
			if err := dec.Decode(&n); err != nil {
				return fmt.Errorf("node %q: %w", id, err)
			}
			if g.Node(id) != nil {
				return fmt.Errorf("node %q appears twice", id)
			}
			g.AddNode(&Node{ID: id, Attrs: n.Attrs, Classes: n.Classes})
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, e := range wire.Edges {
		g.AddEdge(&Edge{From: e.From, To: e.To, Attrs: e.Attrs})
	}
	return nil
}
