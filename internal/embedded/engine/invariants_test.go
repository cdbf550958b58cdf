package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fabro-mcp/fabroapi/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transitions are the statuses that a status may change to by an event of the engine. Every status may stay as it is.
var transitions = map[string][]string{
	wire.StatusRunnable: {wire.StatusStarting},
	wire.StatusStarting: {wire.StatusRunning, wire.StatusFailed},
	wire.StatusRunning:  {wire.StatusBlocked, wire.StatusPaused, wire.StatusSucceeded, wire.StatusFailed},
	wire.StatusBlocked:  {wire.StatusRunning, wire.StatusPaused, wire.StatusFailed},
	wire.StatusPaused:   {wire.StatusRunning, wire.StatusBlocked, wire.StatusFailed},
}

var statusEvents = map[string]string{
	"run.starting": wire.StatusStarting, "run.running": wire.StatusRunning, "run.blocked": wire.StatusBlocked,
	"run.unblocked": wire.StatusRunning, "run.paused": wire.StatusPaused,
	wire.EventRunCompleted: wire.StatusSucceeded, wire.EventRunFailed: wire.StatusFailed,
}

// checkInvariants holds every run of the tests against what is true of all runs: legal statuses, one terminal event with
// only the sandbox behind it, stages that begin before they end and end once, questions that are closed, checkpoints
// that follow the end of their stage.
func checkInvariants(t testing.TB, result Result, all []line) {
	t.Helper()
	current, ended := wire.StatusRunnable, 0
	open := map[string]bool{}      // stages between start and end
	questions := map[string]bool{} // question ids
	closed := ""                   // the stage that ended last
	for i, l := range all {
		if next, ok := statusEvents[l.Event]; ok && next != current {
			if current == wire.StatusPaused && l.Event == "run.unblocked" {
				continue // the reducer keeps it paused
			}
			if current == wire.StatusPaused { // the engine does not append run.unpaused itself
				current = wire.StatusRunning
			}
			if !slices.Contains(transitions[current], next) && next != current {
				t.Errorf("event %d, %s: %s to %s is not legal", i, l.Event, current, next)
			}
			current = next
		}
		if ended > 0 && l.Event != "sandbox.stop.started" && l.Event != "sandbox.stop.completed" {
			t.Errorf("event %d, %s, comes after the end", i, l.Event)
		}
		if wire.TerminalEvent(l.Event) {
			ended++
		}
		if l.Stage != "" && l.Actor == "" || l.Props == nil {
			t.Errorf("event %d, %s, is incomplete: %+v", i, l.Event, l)
		}
		id, _ := l.Props["question_id"].(string)
		switch l.Event {
		case "stage.started":
			if open[l.Stage] {
				t.Errorf("event %d: %s starts twice", i, l.Stage)
			}
			open[l.Stage] = true
		case "stage.completed", "stage.failed":
			if !open[l.Stage] {
				t.Errorf("event %d: %s ends without having started", i, l.Stage)
			}
			delete(open, l.Stage)
			closed = l.Stage
		case "checkpoint.completed":
			if closed != l.Stage {
				t.Errorf("event %d: the checkpoint of %s follows the end of %s", i, l.Stage, closed)
			}
		case "interview.started":
			questions[id] = true
		case "interview.completed", "interview.timeout", "interview.interrupted":
			if !questions[id] {
				t.Errorf("event %d: %s was not open", i, id)
			}
			delete(questions, id)
		}
	}
	if ended != 1 {
		t.Errorf("%d terminal events", ended)
	}
	if current != result.Status.Kind {
		t.Errorf("the run is %s by its events and %s by its result", current, result.Status.Kind)
	}
	if result.Failure == nil && len(open)+len(questions) > 0 {
		t.Errorf("a success leaves open: %v %v", open, questions)
	}
}

// Graphs made by chance, among them loops, forks into each other, gates and dead ends: whatever they do, they come to an
// end and keep to the rules above. The seed is fixed; a failure names its graph.
func TestRandomGraphs(t *testing.T) {
	kinds := []string{
		`script="true"`, `script="true", goal_gate=true`, `shape=diamond`, `shape=hexagon`, `shape=hexagon, timeout="5s"`, `shape=component`,
		`shape=component, max_parallel=1`, `shape=tripleoctagon`, `prompt="p"`, `shape=tab, retry_policy=linear`, `shape=insulator, duration="3s"`,
		`script="true", max_visits=2`, `script=" "`, `script="true", auto_status=true, retry_target=n1`, `shape=box, selection=random`,
		`shape=house, stack.child_dot_source="digraph C { start [shape=Mdiamond] exit [shape=Msquare] n1 [script=true] start -> n1 -> exit }"`,
	}
	edges := []string{
		``, ``, ``, `label="[Y] Yes"`, `weight=3`, `condition="outcome=failed"`, `condition="context.internal.node_visit_count > 2"`, `freeform=true`, `loop_restart=true`,
	}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		graph := randomGraph(r, kinds, edges)
		tr := trialOf(t, compileLoose(t, graph))
		tr.spec.DryRun, tr.spec.Random = true, r.Float64
		tr.spec.Clock = instant{tr.clock}
		if result, _ := tr.run(); t.Failed() {
			t.Fatalf("seed %d: %s\n%s", seed, status(result), graph)
		}
	}
}

func randomGraph(r *rand.Rand, kinds, edges []string) string {
	n := 2 + r.IntN(9)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d [%s]\n", i, kinds[r.IntN(len(kinds))])
	}
	b.WriteString("start -> n0\n")
	for i := range n {
		for range r.IntN(4) {
			to := fmt.Sprintf("n%d", r.IntN(n))
			if r.IntN(4) == 0 {
				to = "exit"
			}
			fmt.Fprintf(&b, "n%d -> %s [%s]\n", i, to, edges[r.IntN(len(edges))])
		}
	}
	return frame(b.String())
}

// The same for real, with people who answer or do not, and an end that comes from outside at some event: nothing hangs,
// nothing breaks the rules, and every cut-off run can be resumed.
func TestRandomEnds(t *testing.T) {
	kinds := []string{
		`script="true"`, `script="exit 1"`, `script="echo x; sleep 0.01"`, `shape=diamond`, `shape=hexagon`, `shape=hexagon, timeout="5s"`,
		`shape=component`, `shape=tripleoctagon`, `prompt="p"`, `prompt="p", timeout="50s"`, `shape=insulator, duration="3s"`, `script="sleep 100"`,
		`shape=house, stack.child_dot_source="digraph C { start [shape=Mdiamond] exit [shape=Msquare] n1 [shape=hexagon] start -> n1 -> exit }"`,
	}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		graph := randomGraph(r, kinds, []string{``, ``, `label="[Y] Yes"`, `condition="outcome=failed"`, `loop_restart=true`})
		c := compileLoose(t, graph)
		var resume *Checkpoint
		for round := range 3 {
			tr := trialOf(t, c)
			tr.spec.AgentCommand, tr.spec.Clock, tr.spec.Resume = []string{"true"}, instant{tr.clock}, resume
			for range r.IntN(4) {
				tr.desk.answers = append(tr.desk.answers, wire.AnswerOfOption("Y"))
			}
			left, cause := 5+r.IntN(40), []error{ErrCancelled, ErrShutdown}[r.IntN(2)]
			var once sync.Once
			ready := make(chan struct{})
			answers := len(tr.desk.answers)
			tr.journal.fail = func(e Event) error {
				left--
				if started, ok := e.Properties.(commandStarted); ok && started.Script == "sleep 100" {
					left = 0 // it would never end by itself
				}
				if e.Name == "interview.started" {
					if answers--; answers < 0 {
						left = 0 // nor would this
					}
				}
				if left <= 0 {
					once.Do(func() { go func() { <-ready; tr.cancel(cause) }() })
				}
				return nil
			}
			tr.start()
			close(ready)
			if result, _ := tr.wait(); t.Failed() {
				t.Fatalf("seed %d, round %d: %s\n%s", seed, round, status(result), graph)
			}
			if cp := tr.journal.checkpoint(t); cp != nil {
				resume = cp
			}
		}
	}
}

// instant is a clock on which every back-off has passed at once.
type instant struct{ *clock }

func (c instant) Timer(d time.Duration) (<-chan time.Time, func()) {
	if d > time.Minute { // the watchdog
		return c.clock.Timer(d)
	}
	return c.clock.Timer(0)
}
