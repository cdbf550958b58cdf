package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// What the agent command gets and what becomes of what it says.
func TestAgentCommand(t *testing.T) {
	tr := newTrial(t, frame(`build [label="Build it", script="echo compiled; echo fine"] broken [script="exit 3"] ask [shape=hexagon, label="Go?"]
  think [label="Think", prompt="Do the {{ goal }} thing"]
  start -> build -> broken -> ask -> think -> exit`))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("t")}
	tr.spec.AgentCommand = []string{"sh", "-c", `cat > input; pwd -P > place; env | grep '^FABRO_[RSN].*_ID\|^MY_TOKEN' | sort > env; echo "warming up" >&2; echo "It is done."`}
	tr.spec.Env = append(tr.spec.Env, "MY_TOKEN=needed")
	result, got := tr.run()
	if status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(tr.spec.Cwd, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	want := `# Goal

G

# Stages so far

## start: succeeded

## Build it (build): succeeded

compiled
fine

## broken: failed

Script failed with exit code: 3

## Go? (ask): succeeded

t

# Task

Do the G thing
`
	if diff := cmp.Diff(want, read("input")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("FABRO_NODE_ID=think\nFABRO_RUN_ID="+testRun+"\nFABRO_STAGE_ID=think@1\nMY_TOKEN=needed\n", read("env")); diff != "" {
		t.Error(diff)
	}
	dir, _ := filepath.EvalSymlinks(tr.spec.Cwd)
	if read("place") != dir+"\n" {
		t.Errorf("it ran in %s", read("place"))
	}
	if log, err := os.ReadFile(StageLogPath(tr.spec.RunDir, "think@1")); !strings.Contains(string(log), "warming up\n") || !strings.Contains(string(log), "done") {
		t.Errorf("the log is %q, %v", log, err)
	}
	var think []line
	for _, l := range got {
		if l.Node == "think" && l.Event != "checkpoint.completed" {
			delete(l.Props, "context_values")
			delete(l.Props, "node_visits")
			delete(l.Props, "timing")
			delete(l.Props, "loop_failure_signatures") // of the stage before
			think = append(think, l)
		}
	}
	expected := parse(t, `
stage.started W think Think think@1 {"index":4,"handler_type":"agent","attempt":1,"max_attempts":1,"graph_visit":1}
stage.prompt W think Think think@1 {"visit":1,"text":"Do the G thing","mode":"agent","provider":"agent-command","model":"sh"}
prompt.completed W think Think think@1 {"response":"It is done.","model":"sh","provider":"agent-command"}
stage.completed W think Think think@1 {"index":4,"status":"succeeded","notes":"Stage completed: think","response":"It is done.",
  "context_updates":{"last_stage":"think","last_response":"It is done.","response.think":"It is done."},"attempt":1,"max_attempts":1}
`)
	if diff := cmp.Diff(expected, think); diff != "" {
		t.Error(diff)
	}
}

func TestAgentFailures(t *testing.T) {
	graph := frame(`think [prompt="x", max_retries=2] start -> think -> exit`)
	cases := []struct {
		name    string
		command []string
		failure string
	}{
		{"exit code", []string{"sh", "-c", "echo quota exceeded >&2; exit 7"}, "Agent command failed with exit code: 7\n\n## output\nquota exceeded\n"},
		{"exit code, words on stdout only", []string{"sh", "-c", "echo no idea; exit 1"}, "Agent command failed with exit code: 1\n\n## output\nno idea\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t, graph)
			tr.spec.AgentCommand = c.command
			_, got := tr.run()
			failures := only(got, "stage.failed")
			if len(failures) != 1 {
				t.Fatalf("%s", names(got))
			}
			if diff := cmp.Diff(c.failure, failures[0].Props["failure"].(map[string]any)["message"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A run does not pass over work that nothing could do.
func TestAgentMissing(t *testing.T) {
	for want, command := range map[string][]string{
		`the agent command "no-such-agent-anywhere" is not to be found`:                                                                              {"no-such-agent-anywhere"},
		"stage think needs a language model, and this run has no agent command: run it with dry_run, with FABRO_AGENT_COMMAND, or on a Fabro server": nil,
	} {
		tr := newTrial(t, frame(`think [prompt="x", max_retries=2] start -> think -> exit`))
		tr.spec.AgentCommand = command
		if result, _ := tr.run(); status(result) != "failed(workflow_error): "+want {
			t.Error(status(result))
		}
	}
}

func TestAgentCancel(t *testing.T) {
	tr := newTrial(t, frame(`think [prompt="x"] start -> think -> exit`))
	tr.spec.AgentCommand = []string{"sh", "-c", "sleep 1000"}
	tr.start()
	tr.journal.await(t, "stage.prompt", 1)
	tr.cancel(ErrCancelled)
	result, got := tr.wait()
	if status(result) != "failed(cancelled): Pipeline cancelled" || len(only(got, "stage.failed")) != 1 {
		t.Errorf("%s\n%s", status(result), names(got))
	}
}

// Routing JSON in a response is honoured, wherever it stands; with output_schema it is asked for again when it is
// missing.
func TestAgentStructured(t *testing.T) {
	route := frame(`think [prompt="x" SCHEMA] l [script="true"] r [script="true"] start -> think; think -> l [label="Left", weight=5]; think -> r [label="Right"]; l -> exit; r -> exit`)
	say := func(text string) []string { return []string{"sh", "-c", "cat > /dev/null; echo '" + text + "'"} }
	run := func(schema string, command []string) (Result, []line) {
		tr := newTrial(t, replaceOnce(route, "SCHEMA", schema))
		tr.spec.AgentCommand = command
		return tr.run()
	}
	_, got := run("", say(`I think: {"preferred_next_label": "right", "context_updates": {"n": 42}} and that is all.`))
	if order(got) != "start think r exit" || only(got, "checkpoint.completed")[1].Props["context_values"].(map[string]any)["n"] != 42.0 {
		t.Error(order(got))
	}
	_, got = run("", say(`{"preferred_next_label": 7}`))
	if order(got) != "start think l exit" || len(only(got, "stage.failed")) != 0 {
		t.Error(order(got))
	}
	_, got = run(", output_schema=routing", say(`no json`))
	if f := only(got, "stage.failed"); len(f) != 1 || !strings.HasPrefix(f[0].Props["failure"].(map[string]any)["message"].(string), "The output holds no JSON object with any of preferred_next_label") {
		t.Error(names(got))
	}
	_, got = run(", output_schema=routing", []string{"sh", "-c", `cat > input; if grep -q 'previous response was refused' input; then echo '{"suggested_next_ids":["r"]}'; else echo hm; fi`})
	if order(got) != "start think r exit" {
		t.Error(order(got))
	}
	_, got = run(`, output_schema="{\"type\":\"object\",\"required\":[\"score\"],\"properties\":{\"score\":{\"type\":\"integer\",\"maximum\":10}}}", output_retries=0`, say(`{"score": 9}`))
	if v := only(got, "checkpoint.completed")[1].Props["context_values"].(map[string]any)["output.think"]; cmp.Diff(map[string]any{"score": 9.0}, v) != "" {
		t.Errorf("%v", v)
	}
	_, got = run(`, output_schema="{\"type\":\"object\",\"properties\":{\"score\":{\"type\":\"integer\",\"maximum\":10}}}", output_retries=0`, say(`{"score": 11}`))
	if f := only(got, "stage.failed"); len(f) != 1 || !strings.Contains(f[0].Props["failure"].(map[string]any)["message"].(string), "does not satisfy output_schema: score: Must be less than or equal to 10") {
		t.Errorf("%v", f)
	}
	_, got = run("", say(`{"outcome":"failed","failure_reason":"cannot do it"}`))
	if f := only(got, "stage.failed"); len(f) != 1 || f[0].Props["failure"].(map[string]any)["message"] != "cannot do it" {
		t.Errorf("%v", f)
	}
}

// The account is bounded: 2,000 characters a stage, 12,000 in all, the latest stages first.
func TestAgentAccountIsBounded(t *testing.T) {
	var b strings.Builder
	chain := "start"
	for _, id := range strings.Split("abcdefghij", "") {
		b.WriteString(id + ` [script="printf 'BEGIN` + id + `'; head -c 9000 /dev/zero | tr '\\0' x; printf 'END` + id + `'"] `)
		chain += " -> " + id
	}
	tr := newTrial(t, frame(b.String()+`think [prompt="x"] `+chain+` -> think -> exit`))
	tr.spec.AgentCommand = []string{"sh", "-c", "cat > input"}
	tr.run()
	raw, err := os.ReadFile(filepath.Join(tr.spec.Cwd, "input"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if n := strings.Count(text, "x"); n > accountTotal || n < accountTotal-100 {
		t.Errorf("%d characters are quoted", n)
	}
	if strings.Contains(text, "BEGIN") || strings.Contains(text, "ENDd") || !strings.Contains(text, "ENDe") || !strings.Contains(text, "ENDj") || !strings.Contains(text, "## a: succeeded") {
		t.Error("the wrong parts are quoted")
	}
	if strings.Index(text, "ENDe") > strings.Index(text, "ENDj") {
		t.Error("the order is wrong")
	}
}

// A resumed run gives the same account as the run it goes on with.
func TestAgentAccountAfterResume(t *testing.T) {
	graph := frame(`a [script="echo one"] think [prompt="x"] start -> a -> think -> exit`)
	tr := newTrial(t, graph)
	tr.spec.AgentCommand = []string{"sh", "-c", "sleep 1000"}
	tr.start()
	tr.journal.await(t, "stage.prompt", 1)
	tr.cancel(ErrShutdown)
	tr.wait()
	again := trialOf(t, tr.spec.Compiled)
	again.spec.Resume, again.journal.blobs = tr.journal.checkpoint(t), tr.journal.blobs
	again.spec.AgentCommand = []string{"sh", "-c", "cat > input"}
	again.run()
	raw, _ := os.ReadFile(filepath.Join(again.spec.Cwd, "input"))
	if want := "# Goal\n\nG\n\n# Stages so far\n\n## start: succeeded\n\n## a: succeeded\n\none\n\n# Task\n\nx\n"; string(raw) != want {
		t.Error(cmp.Diff(want, string(raw)))
	}
}

func TestNeedsAgent(t *testing.T) {
	c := compileLoose(t, frame(`a [script="true"] b [prompt="x"] c [shape=tab, prompt="y"] d [shape=tripleoctagon] e [shape=tripleoctagon, prompt="z"] f [type=unheard_of, label="l"]
  m [shape=house, stack.child_dot_source="digraph C { start [shape=Mdiamond] exit [shape=Msquare] inner [prompt=\"p\"] start -> inner -> exit }"]
  start -> a -> b -> c -> d -> e -> f -> m -> exit`))
	if diff := cmp.Diff([]string{"b", "c", "e", "f"}, NeedsAgent(c.Graph)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b", "c", "e", "f", "m/inner"}, NeedsAgentBelow(c)); diff != "" {
		t.Error(diff)
	}
	if ids := NeedsAgent(&workflow.Graph{}); len(ids) != 0 {
		t.Error(ids)
	}
}
