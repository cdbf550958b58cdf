package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

const demo = `digraph Demo {
  graph [goal="Ship it"]
  start  [shape=Mdiamond, label="Start"]
  exit   [shape=Msquare,  label="Exit"]
  build  [shape=parallelogram, label="Build", script="echo hi"]
  ok     [shape=hexagon, label="Ship?"]
  start -> build -> ok
  ok -> exit  [label="[Y] Yes"]
  ok -> build [label="[N] Again"]
}`

// parse reads expected events: one a line, `name actor node label stage {properties}`; node, label and stage are - where
// the envelope has none. Properties that go on are indented. $WORD is replaced.
func parse(t *testing.T, text string, replace ...string) []line {
	t.Helper()
	text = strings.NewReplacer(replace...).Replace(text)
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n  ", " ")
	var all []line
	for _, row := range strings.Split(text, "\n") {
		fields := strings.SplitN(row, " ", 6)
		if len(fields) != 6 {
			t.Fatalf("bad row %q", row)
		}
		for i, f := range fields[:5] {
			if f == "-" {
				fields[i] = ""
			}
		}
		l := line{Event: fields[0], Actor: fields[1], Node: fields[2], Label: fields[3], Stage: fields[4], Props: map[string]any{}}
		if err := json.Unmarshal([]byte(fields[5]), &l.Props); err != nil {
			t.Fatalf("%s: %v in %s", l.Event, err, fields[5])
		}
		all = append(all, l)
	}
	return all
}

// steady replaces the times that a real process takes, and references to its output, by fixed ones.
func steady(all []line) []line {
	var fix func(v any) any
	fix = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				switch {
				case strings.HasPrefix(key, "tool_time") || strings.HasPrefix(key, "active_time"):
					v[key] = 0.0
				default:
					v[key] = fix(member)
				}
			}
		case []any:
			for i := range v {
				v[i] = fix(v[i])
			}
		case string:
			if strings.HasPrefix(v, blobScheme) {
				return "$BLOB"
			}
		}
		return v
	}
	for i := range all {
		fix(all[i].Props)
		if all[i].Event == "command.completed" {
			all[i].Props["duration_ms"] = 0.0
		}
	}
	return all
}

// The example of the facts' section 3.6: start, command, human, exit.
func TestWorkedExample(t *testing.T) {
	tr := newTrial(t, demo)
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("Y")}
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	want := parse(t, `
run.starting W - - - {}
sandbox.initializing W - - - {"provider":"local"}
sandbox.ready W - - - {"provider":"local","duration_ms":0}
sandbox.initialized W - - - {"working_directory":"$CWD","provider":"local","id":"local:$RUN"}
run.started W - - - {"name":"Demo","goal":"Ship it"}
run.running W - - - {}
stage.started W start Start start@1 {"index":0,"handler_type":"start","attempt":1,"max_attempts":1,"graph_visit":1}
stage.completed W start Start start@1 {"index":0,"timing":$ZERO,"status":"succeeded",
  "context_values":{"current_node":"start","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":null},
  "node_visits":{"start":1},"attempt":1,"max_attempts":1}
edge.selected W - - - {"from_node":"start","to_node":"build","reason":"unconditional","stage_status":"succeeded","is_jump":false}
checkpoint.completed W start start start@1 {"status":"succeeded","current_node":"start","completed_nodes":["start"],
  "context_values":{"current_node":"start","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":null,
  "outcome":"succeeded","failure_class":"","failure_signature":"","internal.retry_count.start":0},
  "node_outcomes":{"start":{"status":"succeeded","usage":null}},"next_node_id":"build","node_visits":{"start":1},"graph_visit":1}
stage.started W build Build build@1 {"index":1,"handler_type":"command","attempt":1,"max_attempts":1,"graph_visit":1}
command.started W build Build build@1 {"script":"echo hi","command":"exec 2>&1\necho hi","language":"shell"}
command.completed W build Build build@1 {"output":"$BLOB","exit_code":0,"duration_ms":0,"termination":"exited","output_bytes":3,"live_streaming":true}
stage.completed W build Build build@1 {"index":1,"timing":$ZERO,"status":"succeeded","notes":"Script completed: echo hi","context_updates":{"command.output":"$BLOB"},
  "context_values":{"current_node":"build","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":"start","thread.start.current_node":"build",
  "outcome":"succeeded","failure_class":"","failure_signature":"","internal.retry_count.start":0},
  "node_visits":{"start":1,"build":1},"attempt":1,"max_attempts":1}
edge.selected W - - - {"from_node":"build","to_node":"ok","reason":"unconditional","stage_status":"succeeded","is_jump":false}
checkpoint.completed W build build build@1 {"status":"succeeded","current_node":"build","completed_nodes":["start","build"],
  "context_values":{"current_node":"build","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":"start","thread.start.current_node":"build",
  "outcome":"succeeded","failure_class":"","failure_signature":"","internal.retry_count.start":0,"internal.retry_count.build":0,"command.output":"$BLOB"},
  "node_outcomes":{"start":{"status":"succeeded","usage":null},"build":{"status":"succeeded","context_updates":{"command.output":"$BLOB"},"notes":"Script completed: echo hi","usage":null}},
  "next_node_id":"ok","node_visits":{"start":1,"build":1},"graph_visit":1}
stage.started W ok Ship? ok@1 {"index":2,"handler_type":"human","attempt":1,"max_attempts":1,"graph_visit":1}
interview.started W ok ok ok@1 {"question_id":"Q1","question":"Ship?","stage":"ok","question_type":"multiple_choice","options":[{"key":"Y","label":"[Y] Yes"},{"key":"N","label":"[N] Again"}],"allow_freeform":false}
run.blocked W - - - {"blocked_reason":"human_input_required"}
interview.completed U ok ok ok@1 {"question_id":"Q1","question":"Ship?","answer":"Y","duration_ms":0}
run.unblocked W - - - {}
stage.completed W ok Ship? ok@1 {"index":2,"timing":$ZERO,"status":"succeeded","preferred_label":"[Y] Yes","suggested_next_ids":["exit"],"context_updates":$GATE,
  "context_values":{"current_node":"ok","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":"build","thread.start.current_node":"build","thread.build.current_node":"ok",
  "outcome":"succeeded","failure_class":"","failure_signature":"","internal.retry_count.start":0,"internal.retry_count.build":0,"command.output":"$BLOB"},
  "node_visits":{"start":1,"build":1,"ok":1},"attempt":1,"max_attempts":1}
edge.selected W - - - {"from_node":"ok","to_node":"exit","label":"[Y] Yes","reason":"preferred_label","preferred_label":"[Y] Yes","suggested_next_ids":["exit"],"stage_status":"succeeded","is_jump":false}
checkpoint.completed W ok ok ok@1 {"status":"succeeded","current_node":"ok","completed_nodes":["start","build","ok"],
  "context_values":{"current_node":"ok","graph.goal":"Ship it","internal.fidelity":"compact","internal.node_visit_count":1,"internal.run_id":"$RUN","internal.thread_id":"build","thread.start.current_node":"build","thread.build.current_node":"ok",
  "outcome":"succeeded","failure_class":"","failure_signature":"","internal.retry_count.start":0,"internal.retry_count.build":0,"internal.retry_count.ok":0,"command.output":"$BLOB","preferred_label":"[Y] Yes",
  "human.gate.selected":"Y","human.gate.label":"[Y] Yes","human.gate.ok.question":"Ship?","human.gate.ok.answer":"Y","human.gate.ok.label":"[Y] Yes"},
  "node_outcomes":{"start":{"status":"succeeded","usage":null},"build":{"status":"succeeded","context_updates":{"command.output":"$BLOB"},"notes":"Script completed: echo hi","usage":null},
  "ok":{"status":"succeeded","preferred_label":"[Y] Yes","suggested_next_ids":["exit"],"context_updates":$GATE,"usage":null}},
  "next_node_id":"exit","node_visits":{"start":1,"build":1,"ok":1},"graph_visit":1}
stage.started W exit Exit exit@1 {"index":3,"handler_type":"exit","attempt":1,"max_attempts":1,"graph_visit":1}
stage.completed W exit Exit exit@1 {"index":3,"timing":$ZERO,"status":"succeeded","attempt":1,"max_attempts":1}
run.completed W - - - {"timing":$ZERO,"artifact_count":0,"status":"succeeded","reason":"completed"}
sandbox.stop.started W - - - {"provider":"local"}
sandbox.stop.completed W - - - {"provider":"local","duration_ms":0}
`, "$CWD", tr.spec.Cwd, "$RUN", testRun, "$ZERO", zeroTiming,
		"$GATE", `{"human.gate.selected":"Y","human.gate.label":"[Y] Yes","human.gate.ok.question":"Ship?","human.gate.ok.answer":"Y","human.gate.ok.label":"[Y] Yes"}`)
	if diff := cmp.Diff(want, steady(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]error{nil}, tr.desk.done); diff != "" {
		t.Errorf("the answer's giver was told: %s", diff)
	}
}

const zeroTiming = `{"wall_time_ms":0,"inference_time_ms":0,"tool_time_ms":0,"active_time_ms":0}`

// The example's command exits with 3: a failed stage follows its unconditional edge all the same.
func TestWorkedExampleFailure(t *testing.T) {
	tr := newTrial(t, strings.Replace(demo, "echo hi", "echo no; exit 3", 1))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("Y")}
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	var build []line
	for _, l := range steady(got) {
		if l.Node == "build" || l.Props["from_node"] == "build" {
			if l.Event == "checkpoint.completed" {
				l.Props = map[string]any{"status": l.Props["status"], "next_node_id": l.Props["next_node_id"],
					"failure_class": l.Props["context_values"].(map[string]any)["failure_class"]}
			}
			build = append(build, l)
		}
	}
	want := parse(t, `
stage.started W build Build build@1 {"index":1,"handler_type":"command","attempt":1,"max_attempts":1,"graph_visit":1}
command.started W build Build build@1 {"script":"echo no; exit 3","command":"exec 2>&1\necho no; exit 3","language":"shell"}
command.completed W build Build build@1 {"output":"$BLOB","exit_code":3,"duration_ms":0,"termination":"exited","output_bytes":3,"live_streaming":true}
stage.failed W build Build build@1 {"index":1,"failure":{"message":"Script failed with exit code: 3\n\n## output\nno\n","category":"deterministic"},"will_retry":false,"timing":$ZERO}
edge.selected W - - - {"from_node":"build","to_node":"ok","reason":"unconditional","stage_status":"failed","is_jump":false}
checkpoint.completed W build build build@1 {"status":"failed","next_node_id":"ok","failure_class":"deterministic"}
`, "$ZERO", zeroTiming)
	if diff := cmp.Diff(want, build); diff != "" {
		t.Error(diff)
	}
}

// In a dry run the command and the person's events are missing, and the rest is as it would be.
func TestWorkedExampleDryRun(t *testing.T) {
	tr := newTrial(t, demo)
	tr.spec.DryRun = true
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	want := `run.starting sandbox.initializing sandbox.ready sandbox.initialized run.started run.running
stage.started stage.completed edge.selected checkpoint.completed
stage.started stage.completed edge.selected checkpoint.completed
stage.started stage.completed edge.selected checkpoint.completed
stage.started stage.completed run.completed sandbox.stop.started sandbox.stop.completed`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(names(got))); diff != "" {
		t.Error(diff)
	}
	var notes []any
	for _, l := range only(got, "stage.completed") {
		notes = append(notes, l.Props["notes"])
	}
	if diff := cmp.Diff([]any{"[Simulated] start", "[Simulated] Command skipped: echo hi", "[Simulated] ok", nil}, notes); diff != "" {
		t.Error(diff)
	}
	if len(tr.desk.asked) != 0 {
		t.Error("a dry run asked a person")
	}
}

// A cancel while the command runs: its group is ended, the stage fails as canceled, its edge is still chosen, and then
// the run ends.
func TestWorkedExampleCancelInCommand(t *testing.T) {
	tr := newTrial(t, strings.Replace(demo, "echo hi", "echo up; sleep 1000", 1))
	tr.start()
	tr.journal.await(t, "command.started", 1)
	tr.cancel(ErrCancelled)
	result, got := tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" {
		t.Fatal(status(result))
	}
	at := len(got) - 7
	want := strings.Fields("command.completed stage.failed edge.selected checkpoint.completed run.failed sandbox.stop.started sandbox.stop.completed")
	if diff := cmp.Diff(want, strings.Fields(names(got[at:]))); diff != "" {
		t.Fatal(diff)
	}
	if got[at].Props["termination"] != "cancelled" {
		t.Errorf("termination is %v", got[at].Props["termination"])
	}
	failure := got[at+1].Props["failure"].(map[string]any)
	if failure["category"] != Canceled || !strings.HasPrefix(failure["message"].(string), "Script cancelled: echo up; sleep 1000") {
		t.Errorf("failure is %v", failure)
	}
	if diff := cmp.Diff(map[string]any{"reason": "cancelled", "detail": map[string]any{"message": "Pipeline cancelled", "category": Canceled}}, got[at+4].Props["failure"]); diff != "" {
		t.Error(diff)
	}
}

// A cancel while a person is asked: the question gets no end, nor does the stage.
func TestWorkedExampleCancelAtGate(t *testing.T) {
	tr := newTrial(t, demo)
	tr.start()
	tr.journal.await(t, "run.blocked", 1)
	tr.cancel(ErrCancelled)
	result, got := tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" {
		t.Fatal(status(result))
	}
	want := strings.Fields("stage.started interview.started run.blocked run.unblocked run.failed sandbox.stop.started sandbox.stop.completed")
	if diff := cmp.Diff(want, strings.Fields(names(got[len(got)-7:]))); diff != "" {
		t.Error(diff)
	}
}

// An orderly shutdown leaves the stage as if it had never ended, so that a resumed run does it again.
func TestWorkedExampleShutdown(t *testing.T) {
	tr := newTrial(t, strings.Replace(demo, "echo hi", "sleep 1000", 1))
	tr.start()
	tr.journal.await(t, "command.started", 1)
	tr.cancel(ErrShutdown)
	result, got := tr.wait()
	if status(result) != "failed(terminated): Fabro server shut down before the run reached a terminal state." {
		t.Fatal(status(result))
	}
	want := strings.Fields("command.started command.completed run.failed sandbox.stop.started sandbox.stop.completed")
	if diff := cmp.Diff(want, strings.Fields(names(got[len(got)-5:]))); diff != "" {
		t.Error(diff)
	}
	if cp := tr.journal.checkpoint(t); cp.NextNode != "build" || cp.Ordinals["build"] != 1 {
		t.Errorf("checkpoint goes on at %q, ordinals %v", cp.NextNode, cp.Ordinals)
	}
}

// A command that outlives its timeout is tried again, with the same stage id, and then fails.
func TestWorkedExampleTimeoutAndRetry(t *testing.T) {
	tr := newTrial(t, strings.Replace(demo, `script="echo hi"`, `script="echo up; sleep 1000", timeout="30s", max_retries=1`, 1))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("Y")}
	tr.start()
	tr.clock.pass(t, 30*time.Second)
	tr.clock.pass(t, 5*time.Second)
	tr.clock.pass(t, 30*time.Second)
	result, got := tr.wait()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	var build []line
	for _, l := range steady(got) {
		if l.Node == "build" {
			delete(l.Props, "context_values")
			delete(l.Props, "node_outcomes")
			delete(l.Props, "output_bytes")
			if f, ok := l.Props["failure"].(map[string]any); ok {
				f["message"], _, _ = strings.Cut(f["message"].(string), "\n")
			}
			build = append(build, l)
		}
	}
	failure := `{"message":"Script timed out after 30000ms: echo up; sleep 1000","category":"transient_infra","system_actor":"timeout"}`
	want := parse(t, `
stage.started W build Build build@1 {"index":1,"handler_type":"command","attempt":1,"max_attempts":2,"graph_visit":1}
command.started W build Build build@1 {"script":"echo up; sleep 1000","command":"exec 2>&1\necho up; sleep 1000","language":"shell","timeout_ms":30000}
command.completed W build Build build@1 {"output":"$BLOB","duration_ms":0,"termination":"timed_out","live_streaming":true}
stage.failed timeout build Build build@1 {"index":1,"failure":$FAILURE,"will_retry":true,"timing":{"wall_time_ms":30000,"inference_time_ms":0,"tool_time_ms":0,"active_time_ms":0}}
stage.retrying W build Build build@1 {"index":1,"attempt":1,"max_attempts":2,"delay_ms":5000}
stage.started W build Build build@1 {"index":1,"handler_type":"command","attempt":2,"max_attempts":2,"graph_visit":1}
command.started W build Build build@1 {"script":"echo up; sleep 1000","command":"exec 2>&1\necho up; sleep 1000","language":"shell","timeout_ms":30000}
command.completed W build Build build@1 {"output":"$BLOB","duration_ms":0,"termination":"timed_out","live_streaming":true}
stage.failed timeout build Build build@1 {"index":1,"failure":$FAILURE,"will_retry":false,"timing":{"wall_time_ms":65000,"inference_time_ms":0,"tool_time_ms":0,"active_time_ms":0}}
checkpoint.completed W build build build@1 {"status":"failed","current_node":"build","completed_nodes":["start","build"],"next_node_id":"ok",
  "node_retries":{"build":1},"node_visits":{"start":1,"build":1},"graph_visit":1}
`, "$FAILURE", failure)
	if diff := cmp.Diff(want, build); diff != "" {
		t.Error(diff)
	}
}

// A journal that fails ends the run; the end is put on record if that is still possible.
func TestJournalFailureEndsTheRun(t *testing.T) {
	tr := newTrial(t, demo)
	full := errors.New("database or disk is full")
	tr.journal.fail = func(e Event) error {
		if e.Name == "command.completed" {
			return full
		}
		return nil
	}
	result, got := tr.run()
	if status(result) != "failed(workflow_error): database or disk is full" {
		t.Fatal(status(result))
	}
	want := strings.Fields("command.started run.failed sandbox.stop.started sandbox.stop.completed")
	if diff := cmp.Diff(want, strings.Fields(names(got[len(got)-4:]))); diff != "" {
		t.Error(diff)
	}
}
