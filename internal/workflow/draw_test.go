package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const drawn = `digraph Release {
	goal="Ship it"
	start [shape=Mdiamond, label="Start"]
	build [label="Build", script="make", max_retries=2, timeout=15m]
	ok [shape=diamond, label="Good?"]
	ask [shape=hexagon, label="Release now?"]
	ship [label="Ship", script="make ship", goal_gate=true, retry_target=build]
	exit [shape=Msquare, label="Exit"]
	lost [prompt="x"]
	start -> build -> ok
	ok -> ask [condition="context.n > 0"]
	ok -> build [label="No"]
	ask -> ship [label="[Y] Yes"]
	ask -> exit [label="[N] No"]
	ask -> build [freeform=true, weight=2]
	ship -> exit
	lost -> nowhere
}`

func TestDrawText(t *testing.T) {
	want := `Release: Ship it
7 nodes, 9 edges

  ((start)) Start  (start)
    │
    ▼
  /build/ Build  (command, max retries 2, timeout 15m)
    │
    ▼
  <ok> Good?  (conditional)
    ├─ if context.n > 0 ─▶ ask
    └─ No ─▶ build ↑

  {ask} Release now?  (human)
    ├─ [Y] Yes ─▶ ship
    ├─ [N] No ─▶ exit
    └─ free text, weight 2 ─▶ build ↑

  /ship/ Ship  (command, goal gate, retries from build)
    │
    ▼
  [[exit]] Exit  (exit)

  not reachable from the start:
  [lost]  (agent)
    └─▶ nowhere (not declared)
`
	if diff := cmp.Diff(want, DrawText(mustParse(t, drawn))); diff != "" {
		t.Error(diff)
	}
}

func TestDOT(t *testing.T) {
	want := `digraph "G" {
  rankdir=LR
  node [fontname="Helvetica", fontsize=12]
  edge [fontname="Helvetica", fontsize=10]
  "a" [shape=box, label="say \"hi\" \\n"]
  "b" [shape=parallelogram, label="b"]
  "a" -> "b" [label="if x=\"y\""]
}
`
	g := mustParse(t, `digraph G { rankdir=LR a [label="say \"hi\" \\n", shape=circle] b [script="x", human.default_choice=5s] a -> b [condition="x=\"y\""] }`)
	if diff := cmp.Diff(want, DOT(g)); diff != "" {
		t.Error(diff)
	}
}

// A drawing is linear, also of a graph that is one long path.
func TestDrawLongGraph(t *testing.T) {
	g := mustParse(t, chain(20_000))
	if lines := strings.Count(DrawText(g), "\n"); lines < 60_000 {
		t.Errorf("%d lines", lines)
	}
}
