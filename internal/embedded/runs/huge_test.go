package runs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"fabro-mcp/fabroapi/wire"
)

// A graph of 20,000 nodes (in the long form 100,000) is created and read back like any other.
func TestHugeGraph(t *testing.T) {
	var b strings.Builder
	b.WriteString("digraph Huge { graph [goal=\"Much\"] start [shape=Mdiamond] exit [shape=Msquare]\n")
	nodes := 20_000
	if os.Getenv("FABRO_LONG") != "" {
		nodes = 100_000
	}
	for i := range nodes {
		fmt.Fprintf(&b, "n%d [shape=parallelogram, script=\"true\"]\n", i)
	}
	b.WriteString("start -> n0\n")
	for i := range nodes - 1 {
		fmt.Fprintf(&b, "n%d -> n%d\n", i, i+1)
	}
	fmt.Fprintf(&b, "n%d -> exit }", nodes-1)
	m := newManager(t)
	run, err := m.Create(context.Background(), creation(t, b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if run.Workflow.NodeCount != nodes+2 || run.Lifecycle.Status.Kind != wire.StatusSubmitted {
		t.Errorf("%+v", run.Workflow)
	}
	page, _, err := m.Events(context.Background(), run.ID, PageQuery{Since: 1, Limit: 100})
	if err != nil || len(page) != 2 {
		t.Fatal(len(page), err)
	}
	if d, err := m.Document(context.Background(), run.ID); err != nil || len(d.Spec().Graph) == 0 {
		t.Fatal(err)
	}
	if _, _, err := m.Cancel(context.Background(), run.ID, wire.DevUser()); err != nil {
		t.Fatal(err)
	}
}
