package engine

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// A run that was cut off goes on at the node of its last checkpoint, with everything it knew; ordinals go on counting,
// visits do not count the lost execution.
func TestResume(t *testing.T) {
	graph := frame(`a [script="echo '{\"context_updates\":{\"k\":\"kept\"}}'", output_schema=routing] b [script="test -e go || sleep 1000"] c [script="echo done"]
  start -> a -> b
  b -> c [condition="context.k=kept && outcome=succeeded"]
  b -> exit
  c -> exit`)
	tr := newTrial(t, graph)
	tr.start()
	tr.journal.await(t, "command.started", 2)
	tr.cancel(ErrShutdown)
	tr.wait()
	cp := tr.journal.checkpoint(t)

	if err := os.WriteFile(filepath.Join(tr.spec.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := trialOf(t, tr.spec.Compiled)
	again.spec.Cwd, again.spec.Resume = tr.spec.Cwd, cp
	again.journal.blobs = tr.journal.blobs
	result, got := again.run()
	if order(got) != "b c exit" || status(result) != "succeeded(completed)" {
		t.Fatalf("%s: %s", order(got), status(result))
	}
	if diff := cmp.Diff("run.starting sandbox.initializing sandbox.ready sandbox.initialized run.started run.running stage.started", join(got[:7])); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"index": 2.0, "handler_type": "command", "attempt": 1.0, "max_attempts": 1.0, "graph_visit": 1.0, "resumed_from_stage_id": "b@1"}
	if diff := cmp.Diff(want, got[6].Props); diff != "" || got[6].Stage != "b@2" {
		t.Errorf("%s %s", got[6].Stage, diff)
	}
	last := only(got, "checkpoint.completed")[1]
	if diff := cmp.Diff([]any{"start", "a", "b", "c"}, last.Props["completed_nodes"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"start": 1.0, "a": 1.0, "b": 1.0, "c": 1.0}, last.Props["node_visits"]); diff != "" {
		t.Error(diff)
	}
	if only(got, "stage.started")[1].Props["resumed_from_stage_id"] != nil {
		t.Error("c takes nothing up")
	}
}

// A run that ended without a next node has nothing left to do.
func TestResumeAtTheEnd(t *testing.T) {
	tr := newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	tr.spec.Resume = &Checkpoint{CurrentNode: "a"}
	if result, got := tr.run(); status(result) != "succeeded(completed)" || order(got) != "" {
		t.Errorf("%s: %s", order(got), status(result))
	}
	tr = newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	tr.spec.Resume = &Checkpoint{CurrentNode: "a", NextNode: "gone"}
	if result, _ := tr.run(); !strings.HasPrefix(status(result), "failed(bootstrap_failed): the checkpoint goes on at \"gone\"") {
		t.Error(status(result))
	}
}

// A run that ended because its last node failed tries that node again.
func TestResumeAfterDeadEnd(t *testing.T) {
	tr := trialOf(t, compileLoose(t, frame(`a [script="test -e go"] start -> a; a -> exit [condition="outcome=succeeded"]`)))
	if result, _ := tr.run(); status(result) != "failed(workflow_error): stage a failed with no outgoing fail edge" {
		t.Fatal(status(result))
	}
	if err := os.WriteFile(filepath.Join(tr.spec.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := trialOf(t, tr.spec.Compiled)
	again.spec.Cwd, again.spec.Resume = tr.spec.Cwd, tr.journal.checkpoint(t)
	if result, got := again.run(); order(got) != "a exit" || status(result) != "succeeded(completed)" {
		t.Errorf("%s: %s", order(got), status(result))
	}
}

// From whatever checkpoint a run is resumed, it goes the way that it went.
func TestResumeAnywhere(t *testing.T) {
	graphs := map[string]string{
		"loop":    frame(`a [script="true"] gate [shape=diamond] start -> a -> gate; gate -> exit [condition="context.internal.node_visit_count >= 5"]; gate -> a`),
		"forks":   frame(fork + ` again [shape=diamond] `),
		"chain":   chain(12),
		"restart": frame(`a [script="true", max_visits=3] b [script="true"] start -> a -> b; b -> a [loop_restart=true]`),
		"gate":    frame(`ask [shape=hexagon] think [prompt="x", goal_gate=true, retry_target=ask] start -> ask -> think -> exit`),
		"child":   frame(`m [shape=house, stack.child_dot_source="digraph C { start [shape=Mdiamond] exit [shape=Msquare] start -> exit }"] start -> m -> exit`),
	}
	for name, graph := range graphs {
		t.Run(name, func(t *testing.T) {
			c := compileText(t, graph)
			first := trialOf(t, c)
			first.spec.DryRun = true
			result, whole := first.run()
			var fold Fold
			ordinals := map[string]int{}
			for i, e := range first.journal.events {
				if err := fold.Observe(e.Name, first.journal.stored[i]); err != nil {
					t.Fatal(err)
				}
				if node, n, err := wire.ParseStageID(e.StageID); err == nil {
					ordinals[node] = max(ordinals[node], n)
				}
				if e.Name != eventCheckpointCompleted {
					continue
				}
				again := trialOf(t, c)
				again.spec.DryRun, again.spec.Resume, again.spec.Cwd = true, fold.Checkpoint(), first.spec.Cwd
				again.spec.Resume.Ordinals = maps.Clone(ordinals)
				ended, rest := again.run()
				if diff := cmp.Diff(status(result), status(ended)); diff != "" {
					t.Error(diff)
				}
				from := i + 1
				if whole[from].Event == "loop.restart" {
					from += 3 // what a resumed run does not go through again
				}
				if diff := cmp.Diff(whole[from:], rest[6:]); diff != "" {
					t.Fatalf("resumed behind event %d:\n%s", i, diff)
				}
			}
		})
	}
}
