package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// frame puts nodes and edges between a start and an exit.
func frame(body string) string {
	return `digraph T { goal="G"
  start [shape=Mdiamond] exit [shape=Msquare]
` + body + "\n}"
}

// The traps of the dialect that change where a run goes or how it ends. Each is a behaviour of Fabro that one would not
// expect, kept on purpose.
func TestTraps(t *testing.T) {
	cases := []struct {
		name, graph   string
		dry           bool
		order, status string
	}{
		{
			name: "a diamond does not see its predecessor's outcome",
			graph: frame(`validate [script="exit 1"] gate [shape=diamond] fix [script="true"]
  start -> validate -> gate
  gate -> exit [condition="outcome=succeeded"]
  gate -> fix
  fix -> exit`),
			order: "start validate gate exit", status: "succeeded(completed)",
		},
		{
			name: "nor through the context key outcome",
			graph: frame(`validate [script="exit 1"] gate [shape=diamond] fix [script="true"]
  start -> validate -> gate
  gate -> fix [condition="context.outcome=failed"]
  gate -> exit
  fix -> exit`),
			order: "start validate gate exit", status: "succeeded(completed)",
		},
		{
			name: "routing on failure works on the failing node's own edges",
			graph: frame(`verify [script="exit 1"] fixup [script="true"]
  start -> verify
  verify -> exit [condition="outcome=succeeded"]
  verify -> fixup
  fixup -> exit`),
			order: "start verify fixup exit", status: "succeeded(completed)",
		},
		{
			name: "and through the command's output",
			graph: frame(`test [script="echo all PASS"] gate [shape=diamond] good [script="true"]
  start -> test -> gate
  gate -> good [condition="context.command.output contains PASS"]
  gate -> exit
  good -> exit`),
			order: "start test gate good exit", status: "succeeded(completed)",
		},
		{
			name:  "a failed node does not stop the run",
			graph: frame(`a [script="exit 7"] start -> a -> exit`),
			order: "start a exit", status: "succeeded(completed)",
		},
		{
			name: "a pipeline reports its last command only",
			graph: frame(`a [script="false | true"] b [script="true"] start -> a
  a -> b [condition="outcome=succeeded"]
  a -> exit
  b -> exit`),
			order: "start a b exit", status: "succeeded(completed)",
		},
		{
			name: "a non-zero exit code is never retried",
			graph: frame(`graph [default_max_retries=3] a [script="echo x >> tries; test $(wc -l < tries) -gt 1", max_retries=5] b [script="true"] start -> a
  a -> b [condition="outcome=failed"]
  a -> exit
  b -> exit`),
			order: "start a b exit", status: "succeeded(completed)",
		},
		{
			name:  "a quoted visit limit is no limit",
			graph: frame(`graph [max_node_visits=4] a [script="true", max_visits="1"] start -> a -> a`),
			order: "start a a a a", status: `failed(workflow_error): node "a" visited 4 times (graph limit 4); run is stuck in a cycle`,
		},
		{
			name:  "a limit admits that many visits",
			graph: frame(`a [script="true", max_visits=2] start -> a -> a`),
			order: "start a a", status: `failed(workflow_error): node "a" visited 2 times (node limit 2); run is stuck in a cycle`,
		},
		{
			name: "a dry run has a limit of ten", dry: true,
			graph: frame(`a [script="true"] start -> a -> a`),
			order: "start" + strings.Repeat(" a", 10), status: `failed(workflow_error): node "a" visited 10 times (graph limit 10); run is stuck in a cycle`,
		},
		{
			name:  "a quoted goal gate is none",
			graph: frame(`a [script="exit 1", goal_gate="true"] start -> a -> exit`),
			order: "start a exit", status: "succeeded(completed)",
		},
		{
			name: "a goal gate that was bypassed fails the run",
			graph: frame(`a [script="true"] gate [script="true", goal_gate=true] start -> a
  a -> exit [weight=1]
  a -> gate
  gate -> exit`),
			order: "start a", status: "failed(workflow_error): goal gate unsatisfied for node gate and no retry target",
		},
		{
			name:  "a terminal retry target means failure",
			graph: frame(`gate [script="exit 1", goal_gate=true, retry_target=exit] start -> gate -> exit`),
			order: "start gate", status: "failed(workflow_error): goal gate unsatisfied for node gate and no retry target",
		},
		{
			name:   "goal gate retries are bounded by the circuit breaker only",
			graph:  frame(`gate [script="exit 1", goal_gate=true, retry_target=gate] start -> gate -> exit`),
			order:  "start gate gate gate",
			status: "failed(workflow_error): deterministic failure cycle detected: signature gate|deterministic|script failed with exit code: <n> repeated 3 times (limit 3)",
		},
		{
			name:   "output in the message keeps the breaker from tripping",
			graph:  frame(`graph [max_node_visits=5] gate [script="echo a >> n; head -c $(wc -l < n) /dev/zero | tr '\\0' x; exit 1", goal_gate=true, retry_target=gate] start -> gate -> exit`),
			order:  "start gate gate gate gate gate",
			status: `failed(workflow_error): node "gate" visited 5 times (graph limit 5); run is stuck in a cycle`,
		},
		{
			name: "a gate on a branch node can never be satisfied",
			graph: frame(`fork [shape=component, max_parallel=1] a [script="true", goal_gate=true] b [script="true"] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; a -> join; b -> join; join -> exit`),
			order: "start fork (a) (b) join", status: "failed(workflow_error): goal gate unsatisfied for node a and no retry target",
		},
		{
			name: "a parallel branch is one node, whatever follows it",
			graph: frame(`fork [shape=component, max_parallel=1] a [script="true"] a2 [script="true"] b [script="true"] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; a -> a2; a2 -> join; a -> join; b -> join; join -> exit`),
			order: "start fork (a) (b) join exit", status: "succeeded(completed)",
		},
		{
			name: "without a common target a branch node is executed again",
			graph: frame(`fork [shape=component, max_parallel=1] a [script="true"] b [script="true"]
  start -> fork; fork -> b; fork -> a; a -> exit; b -> a`),
			order: "start fork (b) (a) a exit", status: "succeeded(completed)",
		},
		{
			name:  "a fork that leads to itself comes to an end",
			graph: frame(`fork [shape=component, max_visits=1] start -> fork -> fork`),
			order: "start fork (fork) (fork) (fork) (fork)", status: `failed(workflow_error): node "fork" visited 1 times (node limit 1); run is stuck in a cycle`,
		},
		{
			name: "edges of a fork ignore conditions",
			graph: frame(`fork [shape=component, max_parallel=1] a [script="true"] b [script="true"]
  start -> fork; fork -> a [condition="outcome=failed"]; fork -> b; a -> exit; b -> exit`),
			order: "start fork (a) (b) exit", status: "succeeded(completed)",
		},
		{
			name: "a node called exit without the shape is not the end", dry: true,
			graph: `digraph T { start [shape=Mdiamond] exit [label="not the end"] start -> exit }`,
			order: "start exit", status: "succeeded(completed)",
		},
		{
			name: "a command's JSON is not looked at without output_schema",
			graph: frame(`a [script="echo '{\"outcome\":\"failed\",\"context_updates\":{\"k\":1}}'"] b [script="true"] start -> a
  a -> b [condition="context.k=1"]
  a -> exit
  b -> exit`),
			order: "start a exit", status: "succeeded(completed)",
		},
		{
			name: "the last command's output replaces all earlier ones",
			graph: frame(`a [script="echo first"] b [script="echo second"] c [script="true"] start -> a -> b
  b -> c [condition="context.command.output contains first"]
  b -> exit
  c -> exit`),
			order: "start a b exit", status: "succeeded(completed)",
		},
		{
			name:  "equal weights go to the smaller id",
			graph: frame(`z [script="true"] a [script="true"] start -> z; start -> a; a -> exit; z -> exit`),
			order: "start a exit", status: "succeeded(completed)",
		},
		{
			name:  "a quoted weight counts nothing",
			graph: frame(`z [script="true"] a [script="true"] start -> z [weight="9"]; start -> a; a -> exit; z -> exit`),
			order: "start a exit", status: "succeeded(completed)",
		},
		{
			name: "a failed node without any edge ends the run",
			graph: `digraph T { start [shape=Mdiamond] exit [shape=Msquare] a [script="exit 1"] start -> a
  a -> exit [condition="outcome=succeeded"]
  a -> exit [condition="outcome=skipped"] b [script="true"] start -> b [weight=-1] b -> exit }`,
			order: "start a", status: "failed(workflow_error): stage a failed with no outgoing fail edge",
		},
		{
			name: "a failed node without an edge goes to its retry target, silently",
			graph: `digraph T { start [shape=Mdiamond] exit [shape=Msquare] a [script="test -e ok", retry_target=mend] mend [script="touch ok"] start -> a
  a -> exit [condition="outcome=succeeded"]
  mend -> a }`,
			order: "start a mend a exit", status: "succeeded(completed)",
		},
		{
			name: "auto_status makes a failure a success",
			graph: frame(`a [script="exit 1", auto_status=true] b [script="true"] start -> a
  a -> b [condition="outcome=succeeded"]
  a -> exit
  b -> exit`),
			order: "start a b exit", status: "succeeded(completed)",
		},
		{
			name: "a preferred label of the past stays in the context",
			graph: frame(`a [script="echo '{\"preferred_next_label\":\"left\"}'", output_schema=routing] l [script="true"] r [script="true"] start -> a
  a -> r [label="right", weight=9]
  a -> l [label="[L] Left"]
  l -> r [condition="context.preferred_label=left"]
  l -> exit
  r -> exit`),
			order: "start a l r exit", status: "succeeded(completed)",
		},
		{
			name: "preferred_label itself is that of the node looked at",
			graph: frame(`a [script="echo '{\"preferred_next_label\":\"left\"}'", output_schema=routing] l [script="true"] r [script="true"] start -> a
  a -> r [label="right", weight=9]
  a -> l [label="[L] Left"]
  l -> r [condition="preferred_label=left"]
  l -> exit
  r -> exit`),
			order: "start a l exit", status: "succeeded(completed)",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := trialOf(t, compileLoose(t, c.graph))
			tr.spec.DryRun = c.dry
			result, got := tr.run()
			if diff := cmp.Diff([]string{c.order, c.status}, []string{order(got), status(result)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A gate whose default choice has no timeout beside it waits for ever.
func TestTrapDefaultChoiceNeedsTimeout(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon, human.default_choice="exit"] start -> ask -> exit`))
	tr.start()
	tr.journal.await(t, "run.blocked", 1)
	tr.clock.advance(1000 * time.Hour)
	tr.cancel(ErrCancelled)
	result, got := tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" || len(only(got, "interview.timeout")) != 0 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

// A label that looks like a duration is none, so the question is the node's id.
func TestTrapDurationLabel(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon, label="30s"] start -> ask -> exit`))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("e")}
	if result, _ := tr.run(); status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	if q := tr.desk.asked[0]; q.Text != "ask" {
		t.Errorf("the question is %q", q.Text)
	}
}

// A quoted stall timeout without a unit is ignored: the default of half an hour holds.
func TestTrapStallTimeoutWithoutUnit(t *testing.T) {
	tr := newTrial(t, frame(`graph [stall_timeout="300"] a [script="sleep 1000"] start -> a -> exit`))
	tr.start()
	tr.journal.await(t, "command.started", 1)
	tr.clock.awaitTimer(t, 600*time.Second)
	tr.clock.awaitTimer(t, 1800*time.Second)
	tr.clock.advance(301 * time.Second)
	tr.cancel(ErrCancelled)
	if result, got := tr.wait(); len(only(got, "watchdog.timeout")) != 0 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

// Words in a command's output change the category of its failure.
func TestTrapOutputChangesCategory(t *testing.T) {
	tr := newTrial(t, frame(`a [script="echo request timeout; exit 1"] start -> a -> exit`))
	_, got := tr.run()
	failure := only(got, "stage.failed")[0].Props["failure"].(map[string]any)
	if failure["category"] != TransientInfra {
		t.Errorf("category is %v", failure["category"])
	}
}
