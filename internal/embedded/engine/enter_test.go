package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// Where the fidelity and the thread of a node come from.
func TestFidelityAndThread(t *testing.T) {
	tr := newTrial(t, frame(`graph [default_fidelity=truncate] a [script="true", fidelity=full] b [script="true", thread_id=own] c [script="true", class="one two"]
  d [script="true"] e [script="true", fidelity=unheard]
  start -> a -> b -> c
  c -> d [fidelity="summary:low", thread_id=edge]
  d -> e -> exit`))
	tr.run()
	type entry struct{ fidelity, thread any }
	seen := map[string]entry{}
	for _, l := range only(tr.journal.lines(t), "checkpoint.completed") {
		values := l.Props["context_values"].(map[string]any)
		seen[l.Node] = entry{values["internal.fidelity"], values["internal.thread_id"]}
		if thread, ok := values["internal.thread_id"].(string); ok && values["thread."+thread+".current_node"] != l.Node {
			t.Errorf("%s: the thread's node is %v", l.Node, values["thread."+thread+".current_node"])
		}
	}
	want := map[string]entry{
		"start": {"truncate", nil}, "a": {"full", "start"}, "b": {"truncate", "own"}, "c": {"truncate", "one"},
		"d": {"summary:low", "edge"}, "e": {"truncate", "d"},
	}
	if diff := cmp.Diff(want, seen, cmp.AllowUnexported(entry{})); diff != "" {
		t.Error(diff)
	}
}

// The first node after a resume gets less than everything, once.
func TestResumeLowersFidelity(t *testing.T) {
	tr := newTrial(t, frame(`graph [default_fidelity=full] ask [shape=hexagon] b [script="true"] start -> ask -> b -> exit`))
	tr.start()
	tr.journal.await(t, "run.blocked", 1)
	tr.cancel(ErrShutdown)
	tr.wait()
	again := trialOf(t, tr.spec.Compiled)
	again.spec.Resume = tr.journal.checkpoint(t)
	again.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("b")}
	_, got := again.run()
	var seen []any
	for _, l := range only(got, "checkpoint.completed") {
		seen = append(seen, l.Props["context_values"].(map[string]any)["internal.fidelity"])
	}
	if diff := cmp.Diff([]any{"summary:high", "full"}, seen); diff != "" {
		t.Error(diff)
	}
}
