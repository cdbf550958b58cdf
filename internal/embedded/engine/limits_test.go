package engine

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

func TestRetryPolicies(t *testing.T) {
	cases := []struct {
		attrs    string
		attempts int
		delays   []time.Duration
	}{
		{``, 1, nil},
		{`max_retries=2`, 3, []time.Duration{5 * time.Second, 10 * time.Second}},
		{`max_retries="2"`, 1, nil},
		{`max_retries=-1`, 1, nil},
		{`retry_policy=none, max_retries=4`, 1, nil},
		{`retry_policy=standard`, 5, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}},
		{`retry_policy=aggressive`, 5, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}},
		{`retry_policy=linear`, 3, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond}},
		{`retry_policy=patient`, 3, []time.Duration{2 * time.Second, 6 * time.Second}},
		{`retry_policy=eager, max_retries=1`, 2, []time.Duration{5 * time.Second}},
		{`max_retries=6`, 7, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}},
	}
	for _, c := range cases {
		g, err := workflow.Parse("t.fabro", []byte("digraph T { n ["+c.attrs+"] }"))
		if err != nil {
			t.Fatal(err)
		}
		p := policyOf(g, g.Node("n"))
		if p.attempts != c.attempts {
			t.Errorf("%s: %d attempts", c.attrs, p.attempts)
		}
		for i, want := range c.delays {
			if got := p.delay(i+1, 0.5); got != want {
				t.Errorf("%s: delay %d is %s, want %s", c.attrs, i+1, got, want)
			}
			if low, high := p.delay(i+1, 0), p.delay(i+1, math.Nextafter(1, 0)); low != want/2 || high < want || high > want*3/2 {
				t.Errorf("%s: delay %d is between %s and %s", c.attrs, i+1, low, high)
			}
		}
	}
}

// A node timeout ends what the node does; its failure is worth another attempt.
func TestNodeTimeout(t *testing.T) {
	tr := newTrial(t, frame(`think [prompt="x", timeout="20s", max_retries=1] start -> think -> exit`))
	tr.spec.AgentCommand = []string{"sh", "-c", "sleep 1000"}
	tr.start()
	tr.clock.pass(t, 20*time.Second)
	tr.clock.pass(t, 5*time.Second)
	tr.clock.pass(t, 20*time.Second)
	result, got := tr.wait()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	failures := only(got, "stage.failed")
	want := map[string]any{"message": "handler timed out after 20000ms", "category": TransientInfra, "system_actor": "timeout"}
	if len(failures) != 2 || failures[0].Actor != "timeout" {
		t.Fatalf("%v", failures)
	}
	if diff := cmp.Diff(want, failures[0].Props["failure"]); diff != "" {
		t.Error(diff)
	}
}

// The time in which a person is asked does not count against the timeout of the stage around the question.
func TestNodeTimeoutStandsStillForPeople(t *testing.T) {
	tr := newTrial(t, frame(`fork [shape=component, timeout="20s"] ask [shape=hexagon, timeout="300s", human.default_choice="join"] join [shape=tripleoctagon]
  start -> fork -> ask -> join -> exit`))
	tr.start()
	tr.journal.await(t, "interview.started", 1)
	tr.clock.pass(t, 300*time.Second)
	result, got := tr.wait()
	if status(result) != "succeeded(completed)" || len(only(got, "stage.failed")) != 0 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

func TestStallWatchdog(t *testing.T) {
	tr := newTrial(t, frame(`graph [stall_timeout="120s"] a [script="sleep 1000"] start -> a -> exit`))
	tr.start()
	tr.journal.await(t, "command.started", 1)
	tr.clock.awaitTimer(t, 600*time.Second)
	tr.clock.pass(t, 120*time.Second)
	result, got := tr.wait()
	if status(result) != `failed(workflow_error): stall watchdog: node "a" had no activity for 120s` {
		t.Fatal(status(result))
	}
	want := "watchdog.timeout command.completed run.failed"
	if diff := cmp.Diff(want, join(only(got, "watchdog.timeout", "command.completed", "stage.failed", "run.failed"))); diff != "" {
		t.Error(diff)
	}
	dog := only(got, "watchdog.timeout")[0]
	if dog.Props["idle_seconds"] != 120.0 || dog.Actor != "watchdog" {
		t.Errorf("%+v", dog)
	}
}

func TestStallWatchdogWaitsForPeople(t *testing.T) {
	tr := newTrial(t, frame(`graph [stall_timeout="120s"] ask [shape=hexagon] start -> ask -> exit`))
	tr.start()
	tr.journal.await(t, "run.blocked", 1)
	for range 5 {
		tr.clock.pass(t, 120*time.Second)
	}
	tr.cancel(ErrCancelled)
	if result, got := tr.wait(); len(only(got, "watchdog.timeout")) != 0 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

func TestStallWatchdogOff(t *testing.T) {
	tr := newTrial(t, frame(`graph [stall_timeout="0s"] a [shape=insulator, duration="9000s"] start -> a -> exit`))
	tr.start()
	tr.clock.pass(t, 9000*time.Second)
	if result, _ := tr.wait(); status(result) != "succeeded(completed)" {
		t.Error(status(result))
	}
}

// A wait lasts its time, and ends at once on cancel.
func TestWait(t *testing.T) {
	tr := newTrial(t, frame(`a [shape=insulator, duration="90s"] start -> a -> exit`))
	tr.start()
	tr.clock.pass(t, 90*time.Second)
	result, got := tr.wait()
	if status(result) != "succeeded(completed)" || only(got, "stage.completed")[1].Props["timing"].(map[string]any)["wall_time_ms"] != 90000.0 {
		t.Errorf("%s", status(result))
	}
	tr = newTrial(t, frame(`a [shape=insulator, duration="90s"] start -> a -> exit`))
	tr.start()
	tr.clock.awaitTimer(t, 90*time.Second)
	tr.cancel(ErrCancelled)
	result, got = tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" || len(only(got, "stage.failed")) != 0 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
	tr = newTrial(t, frame(`a [shape=insulator, max_retries=2] start -> a -> exit`))
	if _, got = tr.run(); len(only(got, "stage.failed")) != 1 {
		t.Errorf("%s", names(got))
	}
}

// loop_restart forgets everything but the visits, and is only taken after a failure that may pass.
func TestLoopRestart(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo '{\"context_updates\":{\"k\":1}}'", output_schema=routing, max_visits=2] start -> a
  a -> start2 start2 [script="true"] start2 -> a [loop_restart=true]`))
	result, got := tr.run()
	if order(got) != "start a start2 a start2" || !strings.Contains(status(result), `node "a" visited 2 times`) {
		t.Fatalf("%s: %s", order(got), status(result))
	}
	at := 0
	for i, l := range got {
		if l.Event == "loop.restart" {
			at = i
			break
		}
	}
	if diff := cmp.Diff("loop.restart run.started run.running stage.started", join(got[at:at+4])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"from_node": "start2", "to_node": "a"}, got[at].Props); diff != "" {
		t.Error(diff)
	}
	if started := got[at+3]; started.Props["index"] != 0.0 || started.Props["graph_visit"] != 2.0 || started.Stage != "a@2" {
		t.Errorf("%+v", started)
	}
	again := only(got[at:], "stage.completed")[0]
	if _, kept := again.Props["context_values"].(map[string]any)["k"]; kept {
		t.Error("the context was not emptied")
	}
	cp := only(got[at:], "checkpoint.completed")[0]
	if diff := cmp.Diff([]any{"a"}, cp.Props["completed_nodes"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"start": 1.0, "a": 2.0, "start2": 1.0}, cp.Props["node_visits"]); diff != "" {
		t.Error(diff)
	}

	blocked := newTrial(t, frame(`a [script="exit 1"] start -> a
  a -> start2 [loop_restart=true] start2 [script="true"] start2 -> exit`))
	result, got = blocked.run()
	if !strings.HasPrefix(status(result), "failed(workflow_error): loop_restart from a blocked: the failure is deterministic") {
		t.Error(status(result))
	}
	if diff := cmp.Diff("stage.failed edge.selected run.failed", join(only(got[len(got)-6:], "stage.failed", "edge.selected", "checkpoint.completed", "run.failed"))); diff != "" {
		t.Error(diff)
	}

	transient := newTrial(t, frame(`a [script="echo connection refused; exit 1"] start -> a
  a -> b [loop_restart=true] b [script="true"] b -> a`))
	result, _ = transient.run()
	if !strings.Contains(status(result), "repeated 3 times (limit 3)") {
		t.Error(status(result))
	}
}

func TestRandomSelection(t *testing.T) {
	graph := frame(`a [script="true", selection=random] b [script="true"] c [script="true"] start -> a; a -> b [weight=3]; a -> c [weight=-5]; b -> exit; c -> exit`)
	for mark, way := range map[float64]string{0: "b", 0.74: "b", 0.76: "c", 0.999: "c"} {
		tr := newTrial(t, graph)
		tr.spec.Random = func() float64 { return mark }
		if _, got := tr.run(); order(got) != "start a "+way+" exit" {
			t.Errorf("%v: %s", mark, order(got))
		}
	}
}

type panickingDesk struct{}

func (panickingDesk) Ask(context.Context, wire.Question, AskInfo) (Answer, error) {
	panic("out of paper")
}

// A panic is a failure of its stage, and is not tried again.
func TestHandlerPanics(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon, max_retries=3] start -> ask -> exit`))
	result, err := Run(t.Context(), tr.spec, tr.journal, panickingDesk{})
	if err != nil || status(result) != "failed(workflow_error): stage ask failed with no outgoing fail edge" {
		t.Fatal(status(result), err)
	}
	f := only(tr.journal.lines(t), "stage.failed")
	if len(f) != 1 || !strings.HasPrefix(f[0].Props["failure"].(map[string]any)["message"].(string), "the handler of ask panicked: out of paper\n") {
		t.Errorf("%v", f)
	}
}

// A pause holds the run between two nodes, and says so itself unless somebody has said it already.
func TestPause(t *testing.T) {
	for _, already := range []bool{false, true} {
		t.Run(fmt.Sprintf("already=%v", already), func(t *testing.T) {
			tr := newTrial(t, frame(`a [shape=insulator, duration="10s"] b [script="true"] start -> a -> b -> exit`))
			tr.spec.Control = NewControl()
			tr.start()
			tr.clock.awaitTimer(t, 10*time.Second)
			if already {
				tr.spec.Control.PausedAlready()
			} else {
				tr.spec.Control.Pause()
			}
			tr.clock.advance(10 * time.Second)
			if already {
				tr.journal.await(t, "checkpoint.completed", 2)
			} else {
				tr.journal.await(t, "run.paused", 1)
			}
			tr.spec.Control.Unpause()
			result, got := tr.wait()
			want := "checkpoint.completed run.paused stage.started"
			if already {
				want = "checkpoint.completed stage.started"
			}
			all := join(only(got, "checkpoint.completed", "run.paused", "stage.started"))
			if status(result) != "succeeded(completed)" || !strings.Contains(all, want) {
				t.Errorf("%s: %s", status(result), all)
			}
		})
	}
}

// A run that is paused while its last question is open does not end before it goes on.
func TestPauseBeforeTheEnd(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon] start -> ask -> exit`))
	tr.spec.Control = NewControl()
	desk := &gatedDesk{open: make(chan struct{})}
	ended := make(chan Result, 1)
	go func() {
		result, err := Run(t.Context(), tr.spec, tr.journal, desk)
		if err != nil {
			t.Error(err)
		}
		ended <- result
	}()
	tr.journal.await(t, "run.blocked", 1)
	tr.spec.Control.PausedAlready()
	close(desk.open)
	tr.journal.await(t, "checkpoint.completed", 2)
	if n := len(only(tr.journal.lines(t), "run.completed")); n != 0 {
		t.Error("the run ended while it was paused")
	}
	tr.spec.Control.Unpause()
	if result := <-ended; status(result) != "succeeded(completed)" {
		t.Error(status(result))
	}
}

func TestPauseThenCancel(t *testing.T) {
	tr := newTrial(t, frame(`a [script="true"] start -> a -> exit`))
	tr.spec.Control = NewControl()
	tr.spec.Control.Pause()
	tr.start()
	tr.journal.await(t, "run.paused", 1)
	tr.cancel(ErrCancelled)
	if result, got := tr.wait(); status(result) != "failed(cancelled): Pipeline cancelled" || order(got) != "" {
		t.Errorf("%s: %s", status(result), order(got))
	}
}

// Prepare steps run before the graph, in a dry run too.
func TestPrepare(t *testing.T) {
	c := compileText(t, frame(`a [script="true"] start -> a -> exit`))
	c.Settings.Prepare = workflow.Prepare{Timeout: time.Minute, Steps: []workflow.PrepareStep{
		{Script: "echo $WHO > made", Env: map[string]string{"WHO": "me"}}, {Command: []string{"touch", "a b"}},
	}}
	tr := trialOf(t, c)
	tr.spec.DryRun = true
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	setup := got[4:10]
	for i := range setup {
		delete(setup[i].Props, "duration_ms")
	}
	want := parse(t, `
setup.started W - - - {"command_count":2}
setup.command.started W - - - {"command":"echo $WHO > made","index":0}
setup.command.completed W - - - {"command":"echo $WHO > made","index":0,"exit_code":0}
setup.command.started W - - - {"command":"touch 'a b'","index":1}
setup.command.completed W - - - {"command":"touch 'a b'","index":1,"exit_code":0}
setup.completed W - - - {}
`)
	if diff := cmp.Diff(want, setup); diff != "" {
		t.Error(diff)
	}
	if made, err := os.ReadFile(filepath.Join(tr.spec.Cwd, "made")); string(made) != "me\n" {
		t.Errorf("%q %v", made, err)
	}
}

func TestPrepareFails(t *testing.T) {
	c := compileText(t, frame(`a [script="true"] start -> a -> exit`))
	c.Settings.Prepare = workflow.Prepare{Steps: []workflow.PrepareStep{{Script: "echo why >&2; exit 9"}, {Script: "touch never"}}}
	tr := trialOf(t, c)
	result, got := tr.run()
	if status(result) != "failed(bootstrap_failed): Setup command failed: echo why >&2; exit 9 (exit code 9)\n\n## output\nwhy\n" {
		t.Error(status(result))
	}
	failed := only(got, "setup.failed")
	if len(failed) != 1 || failed[0].Props["exit_code"] != 9.0 || failed[0].Props["stderr"] != "why\n" || len(only(got, "run.started")) != 0 {
		t.Errorf("%v\n%s", failed, names(got))
	}
}

func TestPrepareTimesOutAndCancels(t *testing.T) {
	c := compileText(t, frame(`a [script="true"] start -> a -> exit`))
	c.Settings.Prepare = workflow.Prepare{Timeout: time.Minute, Steps: []workflow.PrepareStep{{Script: "sleep 1000"}}}
	tr := trialOf(t, c)
	tr.start()
	tr.clock.pass(t, time.Minute)
	if result, _ := tr.wait(); !strings.Contains(status(result), "failed(bootstrap_failed): Setup command failed: sleep 1000 (the prepare steps took longer than 1m0s)") {
		t.Error(status(result))
	}
	tr = trialOf(t, c)
	tr.start()
	tr.journal.await(t, "setup.command.started", 1)
	tr.cancel(ErrCancelled)
	if result, _ := tr.wait(); status(result) != "failed(cancelled): Pipeline cancelled" {
		t.Error(status(result))
	}
}

// An answer that could not be put on record is not confirmed to its giver.
func TestAnswerNotRecorded(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon] start -> ask -> exit`))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("e")}
	tr.journal.fail = func(e Event) error {
		if e.Name == "interview.completed" {
			return os.ErrClosed
		}
		return nil
	}
	tr.run()
	if len(tr.desk.done) != 1 || tr.desk.done[0] == nil {
		t.Errorf("the giver was told %v", tr.desk.done)
	}
}
