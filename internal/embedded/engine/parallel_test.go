package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const fork = `fork [shape=component, max_parallel=1] a [script="echo a"] b [script="exit 2"] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; a -> join; b -> join; join -> exit`

// The events of a fork: branches have events of their own and no stage events.
func TestParallelEvents(t *testing.T) {
	tr := newTrial(t, frame(fork))
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	got = steady(got)
	first := slices.IndexFunc(got, func(l line) bool { return l.Event == "parallel.started" })
	last := slices.IndexFunc(got, func(l line) bool { return l.Event == "checkpoint.completed" && l.Node == "join" })
	for i := range got {
		delete(got[i].Props, "context_values")
		delete(got[i].Props, "node_outcomes")
	}
	results := `[{"id":"a","index":0,"status":"succeeded","context_updates":{"command.output":"$BLOB"}},{"id":"b","index":1,"status":"failed","context_updates":{"command.output":"$BLOB"}}]`
	want := parse(t, `
parallel.started W fork fork fork@1 {"visit":1,"branch_count":2}
parallel.branch.started W a a a@1 {"index":0,"graph_visit":1}
command.started W a a a@1 {"script":"echo a","command":"exec 2>&1\necho a","language":"shell"}
command.completed W a a a@1 {"output":"$BLOB","exit_code":0,"duration_ms":0,"termination":"exited","output_bytes":2,"live_streaming":true}
parallel.branch.completed W a a a@1 {"index":0,"duration_ms":0,"status":"succeeded"}
parallel.branch.started W b b b@1 {"index":1,"graph_visit":1}
command.started W b b b@1 {"script":"exit 2","command":"exec 2>&1\nexit 2","language":"shell"}
command.completed W b b b@1 {"output":"$BLOB","exit_code":2,"duration_ms":0,"termination":"exited","output_bytes":0,"live_streaming":true}
parallel.branch.completed W b b b@1 {"index":1,"duration_ms":0,"status":"failed"}
parallel.completed W fork fork fork@1 {"visit":1,"duration_ms":0,"success_count":1,"failure_count":1,"results":$RESULTS}
stage.completed W fork fork fork@1 {"index":1,"timing":$ZERO,"status":"partially_succeeded","jump_to_node":"join","context_updates":{"parallel.branch_count":2,"parallel.results":$RESULTS},
  "node_visits":{"start":1,"fork":1},"attempt":1,"max_attempts":1}
edge.selected W - - - {"from_node":"fork","to_node":"join","reason":"jump","stage_status":"partially_succeeded","is_jump":true}
checkpoint.completed W fork fork fork@1 {"status":"partially_succeeded","current_node":"fork","completed_nodes":["start","fork"],"next_node_id":"join","node_visits":{"start":1,"fork":1},"graph_visit":1}
stage.started W join join join@1 {"index":2,"handler_type":"parallel.fan_in","attempt":1,"max_attempts":1,"graph_visit":1}
stage.completed W join join join@1 {"index":2,"timing":$ZERO,"status":"succeeded","notes":"Joined 2 parallel branches","node_visits":{"start":1,"fork":1,"join":1},"attempt":1,"max_attempts":1}
edge.selected W - - - {"from_node":"join","to_node":"exit","reason":"unconditional","stage_status":"succeeded","is_jump":false}
`, "$ZERO", zeroTiming, "$RESULTS", results)
	for i := range want {
		if want[i].Node == "a" || want[i].Node == "b" {
			want[i].Group = "fork@1"
			want[i].Branch = map[string]string{"a": "fork@1:0", "b": "fork@1:1"}[want[i].Node]
		}
	}
	if diff := cmp.Diff(want, got[first:last]); diff != "" {
		t.Error(diff)
	}
}

// Branches work on copies: what they learn stays in the results.
func TestParallelContextIsCopied(t *testing.T) {
	tr := newTrial(t, frame(`fork [shape=component] a [output_schema=routing, script="echo '{\"context_updates\":{\"k\":\"from a\"}}'"] b [script="true"] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; a -> join; b -> join; join -> exit`))
	_, got := tr.run()
	checkpoints := only(got, "checkpoint.completed")
	values := checkpoints[len(checkpoints)-1].Props["context_values"].(map[string]any)
	if _, leaked := values["k"]; leaked {
		t.Error("a branch's context came back")
	}
	if _, leaked := values["command.output"]; leaked {
		t.Error("a branch's output came back")
	}
}

func TestParallelStatus(t *testing.T) {
	cases := []struct{ name, a, b, want, order string }{
		{"all good", "true", "true", "succeeded", "start fork (a) (b) join exit"},
		{"mixed", "true", "false", "partially_succeeded", "start fork (a) (b) join exit"},
		{"all failed", "false", "false", "failed", "start fork (a) (b) a join exit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer(`"echo a"`, `"`+c.a+`"`, `"exit 2"`, `"`+c.b+`"`).Replace(fork)
			tr := newTrial(t, frame(text))
			_, got := tr.run()
			for _, l := range only(got, "checkpoint.completed") {
				if l.Node == "fork" && l.Props["status"] != c.want {
					t.Errorf("the fork is %v", l.Props["status"])
				}
			}
			if order(got) != c.order {
				t.Errorf("the way is %s", order(got))
			}
		})
	}
}

func TestParallelCancel(t *testing.T) {
	tr := newTrial(t, frame(`fork [shape=component] a [script="sleep 1000"] b [script="sleep 1000"] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; a -> join; b -> join; join -> exit`))
	tr.start()
	tr.journal.await(t, "command.started", 2)
	tr.cancel(ErrCancelled)
	result, got := tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" || len(only(got, "command.completed")) != 2 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

func TestForEach(t *testing.T) {
	graph := frame(`emit [output_schema=routing, script="echo '{\"context_updates\":{\"list\":LIST}}'"] each [shape=component, for_each="list", max_parallel=2]
  work [prompt="Do it"] join [shape=tripleoctagon]
  start -> emit -> each -> work -> join -> exit`)
	agent := []string{"sh", "-c", "tail -n 1"}
	t.Run("items", func(t *testing.T) {
		tr := newTrial(t, replaceOnce(graph, "LIST", `[{\"name\":\"one\",\"n\":1},{\"label\":\"two\"},3]`))
		tr.spec.AgentCommand = agent
		result, got := tr.run()
		if status(result) != "succeeded(completed)" {
			t.Fatal(status(result))
		}
		var seen []string
		for _, r := range only(got, "parallel.completed")[0].Props["results"].([]any) {
			r := r.(map[string]any)
			seen = append(seen, r["item_label"].(string)+" "+r["context_updates"].(map[string]any)["response.work"].(string))
		}
		if diff := cmp.Diff([]string{`one {"n":1,"name":"one"}`, `two {"label":"two"}`, `2 3`}, seen); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("no items", func(t *testing.T) {
		tr := newTrial(t, replaceOnce(graph, "LIST", `[]`))
		tr.spec.AgentCommand = agent
		_, got := tr.run()
		if s := only(got, "stage.completed")[2].Props["status"]; s != "succeeded" {
			t.Errorf("%v", s)
		}
	})
	t.Run("no list", func(t *testing.T) {
		tr := newTrial(t, replaceOnce(graph, "LIST", `{}`))
		tr.spec.AgentCommand = agent
		_, got := tr.run()
		f := only(got, "stage.failed")[0].Props["failure"].(map[string]any)
		if f["message"] != `for_each source "list" is not a JSON array in the context` {
			t.Error(f)
		}
	})
	t.Run("dry run", func(t *testing.T) {
		tr := newTrial(t, replaceOnce(graph, "LIST", `[]`))
		tr.spec.DryRun = true
		result, got := tr.run()
		if status(result) != "succeeded(completed)" || only(got, "parallel.branch.started")[0].Props["item_label"] != "dry-run item" {
			t.Errorf("%s\n%s", status(result), names(got))
		}
	})
}

func TestFanInWithoutFork(t *testing.T) {
	tr := newTrial(t, frame(`join [shape=tripleoctagon] start -> join -> exit`))
	_, got := tr.run()
	if f := only(got, "stage.failed")[0].Props["failure"].(map[string]any); f["message"] != "No parallel results to join" {
		t.Error(f)
	}
}

// A join with a prompt asks about the results.
func TestFanInWithPrompt(t *testing.T) {
	tr := newTrial(t, frame(strings.Replace(fork, "[shape=tripleoctagon]", `[shape=tripleoctagon, prompt="Which is best?"]`, 1)))
	tr.spec.AgentCommand = []string{"cat"}
	_, got := tr.run()
	prompts := only(got, "stage.prompt")
	if len(prompts) != 1 || prompts[0].Props["mode"] != "prompt" {
		t.Fatal(names(got))
	}
	text := prompts[0].Props["text"].(string)
	if !strings.HasPrefix(text, "Which is best?\n\nResults of the branches:\n[{") || !strings.Contains(text, `"id":"b"`) {
		t.Error(text)
	}
	if response := only(got, "prompt.completed")[0].Props["response"].(string); !strings.HasSuffix(response, text) {
		t.Error(response)
	}
}

// A branch is retried by its own policy, without events of its attempts.
func TestBranchRetries(t *testing.T) {
	tr := newTrial(t, frame(`fork [shape=component] ask [shape=hexagon, timeout="40s", retry_policy=linear] join [shape=tripleoctagon]
  start -> fork -> ask -> join -> exit`))
	tr.start()
	for range 2 {
		tr.clock.pass(t, 40*time.Second)
		tr.clock.pass(t, 500*time.Millisecond)
	}
	tr.clock.pass(t, 40*time.Second)
	tr.journal.await(t, "parallel.completed", 1)
	tr.cancel(ErrCancelled) // the failed fork's edge leads to the gate again
	_, got := tr.wait()
	if n := len(only(got, "interview.timeout")); n != 3 || len(only(got, "stage.retrying")) != 0 {
		t.Errorf("%d timeouts\n%s", n, names(got))
	}
	if r := only(got, "parallel.branch.completed"); len(r) != 1 || r[0].Props["status"] != "failed" {
		t.Errorf("%v", r)
	}
}
