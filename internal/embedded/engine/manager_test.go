package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/internal/workflow"
)

// family is a parent whose manager m runs a child; ATTRS and CHILD are filled in.
func family(t *testing.T, attrs, child string) *workflow.Compiled {
	t.Helper()
	return compileBundle(t, workflow.Bundle{Target: "parent.fabro", Workflows: map[string]workflow.BundleWorkflow{
		"parent.fabro": {Source: frame(`m [shape=house, stack.child_workflow="./child.fabro"` + attrs + `] after [script="true"] start -> m
  m -> after [condition="outcome=succeeded"]
  m -> exit
  after -> exit`)},
		"child.fabro": {Source: `digraph Child { graph [goal="child's own"] start [shape=Mdiamond] exit [shape=Msquare] ` + child + `}`},
	}})
}

// The child's events are among the parent's, with ordinals of their own count, without checkpoints; what it learned
// comes back, its bookkeeping does not.
func TestManager(t *testing.T) {
	c := family(t, "", `work [script="echo '{\"context_updates\":{\"k\":5,\"internal.x\":1,\"current_thing\":1}}'", output_schema=routing] start -> work -> exit`)
	tr := trialOf(t, c)
	result, got := tr.run()
	if order(got) != "start m start work exit after exit" || status(result) != "succeeded(completed)" {
		t.Fatalf("%s: %s", order(got), status(result))
	}
	var stages []string
	for _, l := range only(got, "stage.started", "run.started", "checkpoint.completed") {
		text := l.Event + " " + l.Stage
		if l.Event == "run.started" {
			text = "run.started " + l.Props["name"].(string) + " " + l.Props["goal"].(string)
		}
		stages = append(stages, text)
	}
	want := []string{
		"run.started T G", "stage.started start@1", "checkpoint.completed start@1", "stage.started m@1",
		"run.started Child child's own", "stage.started start@2", "stage.started work@1", "stage.started exit@1",
		"checkpoint.completed m@1", "stage.started after@1", "checkpoint.completed after@1", "stage.started exit@2",
	}
	if diff := cmp.Diff(want, stages); diff != "" {
		t.Error(diff)
	}
	for _, l := range only(got, "stage.completed") {
		values, _ := l.Props["context_values"].(map[string]any)
		switch l.Stage {
		case "work@1":
			if values["graph.goal"] != "child's own" || values["current_node"] != "work" {
				t.Errorf("the child's context is %v", values)
			}
		case "m@1":
			if l.Props["notes"] != "Child completed at cycle 1" {
				t.Errorf("notes %v", l.Props["notes"])
			}
			updates := l.Props["context_updates"].(map[string]any)
			for _, key := range []string{"internal.x", "current_thing", "graph.goal", "current_node"} {
				if _, leaked := updates[key]; leaked {
					t.Errorf("%s came back", key)
				}
			}
			if updates["k"] != 5.0 {
				t.Errorf("updates %v", updates)
			}
		case "after@1":
			if values["k"] != 5.0 || values["graph.goal"] != "G" {
				t.Errorf("the parent's context is %v", values)
			}
		}
	}
}

func TestManagerChildFails(t *testing.T) {
	tr := trialOf(t, family(t, "", `work [script="true", max_visits=2] start -> work -> work`))
	result, got := tr.run()
	if order(got) != "start m start work work exit" || status(result) != "succeeded(completed)" {
		t.Fatalf("%s: %s", order(got), status(result))
	}
	f := only(got, "stage.failed")
	if len(f) != 1 || f[0].Stage != "m@1" || f[0].Props["failure"].(map[string]any)["message"] != `node "work" visited 2 times (node limit 2); run is stuck in a cycle` {
		t.Errorf("%v", f)
	}
}

func TestManagerWithoutChild(t *testing.T) {
	tr := trialOf(t, compileLoose(t, frame(`m [shape=house, stack.child_workflow="./gone.fabro"] start -> m -> exit`)))
	_, got := tr.run()
	f := only(got, "stage.failed")
	if len(f) != 1 || !strings.HasPrefix(f[0].Props["failure"].(map[string]any)["message"].(string), "Failed to parse child pipeline: ") {
		t.Errorf("%v", f)
	}
}

func TestManagerStops(t *testing.T) {
	slow := `work [script="sleep 1000"] start -> work -> exit`
	t.Run("cycles", func(t *testing.T) {
		tr := trialOf(t, family(t, `, manager.max_cycles=2, manager.poll_interval="7s"`, slow))
		tr.start()
		tr.journal.await(t, "command.started", 1)
		tr.clock.pass(t, 7*time.Second)
		tr.clock.pass(t, 7*time.Second)
		result, got := tr.wait()
		f := only(got, "stage.failed")
		if !strings.HasPrefix(order(got), "start m start work") || status(result) != "succeeded(completed)" ||
			f[len(f)-1].Props["failure"].(map[string]any)["message"] != "Max cycles (2) exceeded for manager loop node: m" {
			t.Errorf("%s: %s\n%v", order(got), status(result), f)
		}
	})
	t.Run("condition", func(t *testing.T) {
		tr := trialOf(t, family(t, `, manager.stop_condition="outcome=succeeded && context.graph.goal=G"`, slow))
		tr.start()
		tr.journal.await(t, "command.started", 1)
		tr.clock.pass(t, 45*time.Second)
		result, got := tr.wait()
		if order(got) != "start m start work after exit" || status(result) != "succeeded(completed)" {
			t.Errorf("%s: %s", order(got), status(result))
		}
	})
	t.Run("cancel", func(t *testing.T) {
		tr := trialOf(t, family(t, "", slow))
		tr.start()
		tr.journal.await(t, "command.started", 1)
		tr.cancel(ErrCancelled)
		if result, _ := tr.wait(); status(result) != "failed(cancelled): Pipeline cancelled" {
			t.Error(status(result))
		}
	})
}

// A workflow that manages itself comes to an end.
func TestManagerOfItself(t *testing.T) {
	tr := trialOf(t, family(t, "", `again [shape=house, stack.child_workflow="./child.fabro"] start -> again -> exit`))
	result, got := tr.run()
	f := only(got, "stage.failed")
	if status(result) != "succeeded(completed)" || len(f) == 0 || f[0].Props["failure"].(map[string]any)["message"] != "Workflows run each other more than 8 deep" {
		t.Errorf("%s %v", status(result), f)
	}
}
