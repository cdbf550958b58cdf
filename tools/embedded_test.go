package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded"
)

// liveServer runs the embedded server in this process and returns a configuration
// for it, with a project directory.
func liveServer(t *testing.T) Config {
	t.Helper()
	site := newSite(t)
	t.Cleanup(site.serve(t))
	return site.config(t)
}

// site is a home for an embedded server.
type site struct {
	home   string
	server embedded.Config
	log    *slog.Logger // of the API client, nil for none
}

func newSite(t *testing.T) *site {
	t.Helper()
	// A short path: a socket's path is limited.
	home, err := os.MkdirTemp("", "ft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	return &site{home: home, server: embedded.Config{StorageDir: filepath.Join(home, "storage"), FabroHome: home, Version: "1.0.0", IdleStop: -1, KeepPath: true}}
}

// serve starts the server and waits until it answers.
func (s *site) serve(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- embedded.Serve(ctx, s.server) }()
	stop = func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the embedded server: %v", err)
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		if _, state, err := embedded.Status(ctx, s.server); err == nil && state == embedded.Running {
			return stop
		}
		select {
		case <-tick.C:
		case err := <-served:
			t.Fatalf("the embedded server ended: %v", err)
		case <-deadline:
			t.Fatal("the embedded server did not come up")
		}
	}
}

// config makes a configuration for the server, and the workflows of the tests.
func (s *site) config(t *testing.T) Config {
	t.Helper()
	home, server := s.home, s.server
	env := fabroapi.Environment{Getenv: func(string) string { return "" }, HomeDir: home}
	connector := &fabroapi.Connector{StorageDir: server.StorageDir, Env: env, Options: fabroapi.Options{Logger: s.log}, StartEmbedded: func(ctx context.Context, _ string) (string, string, error) {
		return embedded.Ensure(ctx, server, []string{"/nonexistent"})
	}}
	work := filepath.Join(home, "work")
	files := map[string]string{
		"gate.fabro": `digraph Gate {
  graph [goal="Ask and go on"]
  start [shape=Mdiamond]
  build [shape=parallelogram, label="Build", script="printf '\033[32mbuilt\033[0m\n'"]
  gate [shape=hexagon, label="Ship it?"]
  ship [shape=parallelogram, script="echo shipped"]
  hold [shape=parallelogram, script="echo held"]
  exit [shape=Msquare]
  start -> build -> gate
  gate -> ship [label="[S] Ship"]
  gate -> hold [label="[H] Hold"]
  ship -> exit
  hold -> exit
}
`,
		"fails.fabro": `digraph Fails {
  graph [goal="Fail"]
  start [shape=Mdiamond]
  work [shape=parallelogram, goal_gate=true, script="echo about to fail; echo the reason >&2; exit 3"]
  exit [shape=Msquare]
  start -> work -> exit
}
`,
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Config{Connect: connector.Connect, Env: env, Cwd: work, StateDir: filepath.Join(server.StorageDir, "mcp"), Toolsets: []string{"runs", "insight"}}
}

// create makes one run and returns its id.
func (s *session) create(spec string) string {
	s.t.Helper()
	var got createResult
	s.call(nameCreate, `{"runs":[`+spec+`]}`).structured(&got)
	return got.Runs[0].RunID
}

// TestEmbeddedGate plays a run with a human gate against the embedded server, in
// every era: asked in the host, answered by a call, and as a task.
func TestEmbeddedGate(t *testing.T) {
	cfg := liveServer(t)
	for _, revision := range eras {
		t.Run("asked in the host "+revision, func(t *testing.T) {
			s := open(t, cfg, revision, func(params map[string]any) map[string]any {
				if !strings.Contains(params["message"].(string), "Ship it?") {
					t.Errorf("asked %v", params)
				}
				return map[string]any{"action": "accept", "content": map[string]any{"answer": "S"}}
			})
			id := s.create(`"gate.fabro"`)
			r := s.call(nameGather, `{"run_ids":["`+id+`"],"timeout_seconds":60}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedTerminal || got.Runs[0].Status != wire.StatusSucceeded {
				t.Fatalf("%s", r.text())
			}
			if r := s.call(nameEvents, `{"action":"search","query":"shipped","run_id":"`+id+`"}`); !strings.Contains(r.text(), "shipped") || strings.Contains(r.text(), "\x1b") {
				t.Error(r.text())
			}
		})
	}
	t.Run("answered by a call", func(t *testing.T) {
		s := open(t, cfg, rev2024, nil)
		id := ""
		// The oldest revision has no structured values: everything is in the text.
		text := s.call(nameCreate, `{"runs":["gate.fabro"]}`).text()
		for _, word := range strings.Fields(text) {
			if isULID(strings.Trim(word, `.,:"[]{}()`)) {
				id = strings.Trim(word, `.,:"[]{}()`)
				break
			}
		}
		text = s.call(nameGather, `{"run_ids":["`+id+`"],"until":"attention","timeout_seconds":60}`).text()
		_, rest, found := strings.Cut(text, "answer with: "+nameInteract+" ")
		call, _, _ := strings.Cut(rest, "\n")
		if !found {
			t.Fatalf("no next call in\n%s", text)
		}
		if text := s.call(nameInteract, call).text(); !strings.Contains(text, "Answered question") {
			t.Fatal(text)
		}
		if text := s.call(nameGather, `{"run_ids":["`+id+`"],"timeout_seconds":60}`).text(); !strings.Contains(text, "1 of 1 run ended") {
			t.Error(text)
		}
	})
	t.Run("as a task", func(t *testing.T) {
		s := open(t, cfg, rev2607, accept(nil)).withTasks()
		id := s.create(`"gate.fabro"`)
		task := s.startTask(`{"run_ids":["` + id + `"]}`)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range 3000 {
			state := s.task(task)
			switch state["status"] {
			case "input_required":
				responses := map[string]any{}
				for key := range state["inputRequests"].(map[string]any) {
					responses[key] = map[string]any{"action": "accept", "content": map[string]any{"answer": "H"}}
				}
				s.request("tasks/update", map[string]any{"taskId": task, "inputResponses": responses})
			case "completed":
				if got := state["result"].(map[string]any)["structuredContent"].(map[string]any); got["ended_by"] != endedTerminal {
					t.Errorf("%v", got)
				}
				return
			}
			<-tick.C
		}
		t.Error("the task did not end")
	})
}

// TestEmbeddedTools calls every other tool and action on the embedded server.
func TestEmbeddedTools(t *testing.T) {
	cfg := liveServer(t)
	s := open(t, cfg, rev2607, nil)
	failed := s.create(`"fails.fabro"`)
	if r := s.call(nameGather, `{"run_ids":["`+failed+`"],"timeout_seconds":60}`); !strings.Contains(r.text(), "failed(workflow_error)") {
		t.Fatal(r.text())
	}
	var d diagnosis
	r := s.call(nameDiagnose, `{"run_id":"`+failed+`"}`)
	r.structured(&d)
	if d.FailedStage == nil || d.FailedStage.StageID != "work@1" || !strings.Contains(r.text(), "the reason") {
		t.Errorf("%+v\n%s", d, r.text())
	}
	var logs logsResult
	s.call(nameLogs, `{"run_id":"`+failed+`"}`).structured(&logs)
	if !strings.Contains(logs.Text, "about to fail") {
		t.Errorf("%+v", logs)
	}
	submitted := s.create(`{"workflow":"gate.fabro","start":false,"labels":{"team":"a"},"parent_id":"` + failed + `"}`)
	act := func(action, more string) *result {
		t.Helper()
		return s.call(nameInteract, `{"action":"`+action+`","run_id":"`+submitted+`"`+more+`}`)
	}
	for _, c := range []struct{ action, more, want string }{
		{actGet, "", "Not started"},
		{actUnlinkParent, "", "Parent removed."},
		{actLinkParent, `,"parent_id":"` + failed + `"`, "Parent set."},
		{actMessage, `,"message":"hi"`, ""},
		{actInterrupt, "", ""},
		{actApprove, "", "not pending approval"},
		{actDeny, "", "not pending approval"},
		{actStart, "", "Start requested."},
		{actStart, "", "start"},
	} {
		r := act(c.action, c.more)
		if !strings.Contains(r.text(), c.want) {
			t.Errorf("%s: %s", c.action, r.text())
		}
		if c.want == "" && !r.failed() {
			t.Errorf("%s: the embedded server has no agents: %s", c.action, r.text())
		}
	}
	s.call(nameGather, `{"run_ids":["`+submitted+`"],"until":"attention","timeout_seconds":60}`)
	for _, c := range []struct{ action, more, want string }{
		{actQuestions, "", "Ship it?"},
		{actAnswer, `,"question_id":"none","answer":true`, "Ship it?"},
		{actMessage, `,"message":"hi"`, "get_questions shows the question"},
		{actArchive, "", "must be terminal"},
		{actCancel, "", "Cancel requested."},
	} {
		if r := act(c.action, c.more); !strings.Contains(r.text(), c.want) {
			t.Errorf("%s: %s", c.action, r.text())
		}
	}
	s.call(nameGather, `{"run_ids":["`+submitted+`"],"timeout_seconds":60}`)
	for _, c := range []struct{ action, want string }{{actArchive, "Archived."}, {actArchive, "Archived."}, {actStart, "is archived"}, {actUnarchive, "Brought back"}, {actCancel, "terminal"}} {
		if r := act(c.action, ""); !strings.Contains(r.text(), c.want) {
			t.Errorf("%s: %s", c.action, r.text())
		}
	}
	for _, action := range []string{pairStatus, pairStart, pairGet, pairMessage, pairEnd, pairTranscript} {
		r := s.call(namePair, `{"action":"`+action+`","run_id":"`+submitted+`","stage_id":"work@1","pair_id":"`+submitted+`","text":"t"}`)
		if !r.failed() && action != pairStatus {
			t.Errorf("%s: %s", action, r.text())
		}
	}
	var found searchResult
	s.call(nameSearch, `{"labels":{"team":"a"},"status":["failed"],"parent_id":"`+failed+`"}`).structured(&found)
	if diff := cmp.Diff([]string{submitted}, found.ids()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var got getResult
	s.call(nameGet, `{"run_id":"`+submitted+`"}`).structured(&got)
	if got.Summary.Status != wire.StatusFailed || got.Summary.StatusReason == nil || *got.Summary.StatusReason != wire.FailedCancelled {
		t.Errorf("%+v", got.Summary)
	}
	for _, part := range []string{"", "/state", "/events", "/questions", "/graph", "/artifacts", "/logs/build@1"} {
		if text := s.readText("fabro://runs/" + submitted + part); text == "" {
			t.Errorf("%s is empty", part)
		}
	}
	if text := s.readText("fabro://runs/" + submitted + "/artifacts"); !strings.Contains(text, `"artifacts": []`) || !strings.Contains(text, "leaves its files in its working directory") {
		t.Error(text)
	}
	if text := s.readText("fabro://server"); !strings.Contains(text, `"embedded": true`) {
		t.Error(text)
	}
	var keyed createResult
	s.call(nameCreate, `{"runs":["fails.fabro"],"request_key":"k"}`).structured(&keyed)
	s.call(nameGet, `{"run_id":"`+keyed.Runs[0].RunID+`"}`).structured(&got)
	if got.Summary.Labels[keyLabel] == "" {
		t.Errorf("no mark among the labels %v", got.Summary.Labels)
	}
}

// TestEmbeddedSubscription: an answered gate shows in a subscribed resource.
func TestEmbeddedSubscription(t *testing.T) {
	cfg := liveServer(t)
	s := open(t, cfg, rev2511, nil)
	id := s.create(`{"workflow":"fails.fabro","start":false}`)
	s.request("resources/subscribe", map[string]any{"uri": "fabro://runs/" + id})
	s.call(nameInteract, `{"action":"start","run_id":"`+id+`"}`)
	select {
	case <-s.noted:
	case <-time.After(2 * time.Minute):
		t.Fatal("no notification")
	}
	s.call(nameGather, fmt.Sprintf(`{"run_ids":[%q],"timeout_seconds":60}`, id))
}
