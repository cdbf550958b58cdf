package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
)

// home is an environment with a project that has one workflow, "hello".
func home(t *testing.T) (fabroapi.Environment, string) {
	t.Helper()
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	files := map[string]string{
		".fabro/project.toml":                   "_version = 1\n",
		".fabro/workflows/hello/workflow.toml":  "_version = 1\n[workflow]\ndescription = \"Says hello\"\n",
		".fabro/workflows/hello/workflow.fabro": "digraph Hello {\n  graph [goal=\"Say hello\"]\n  start [shape=Mdiamond]\n  work [shape=parallelogram, script=\"echo hello\"]\n  exit [shape=Msquare]\n  start -> work -> exit\n}\n",
		"broken.fabro":                          "digraph Broken {\n  start [shape=Mdiamond]\n  work [shape=\n}\n",
		"warns.fabro":                           "digraph Warns {\n  start [shape=Mdiamond]\n  work [shape=parallelogram, script=\"cd /srv && ls\"]\n  exit [shape=Msquare]\n  start -> work -> exit\n}\n",
		"nostart.fabro":                         "digraph NoStart {\n  exit [shape=Msquare]\n}\n",
	}
	for name, text := range files {
		path := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fabroapi.Environment{Getenv: func(string) string { return "" }, HomeDir: dir}, project
}

func TestCreate(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, rev2607, nil)
	r := s.call(nameCreate, `{"runs":["hello",{"workflow":"hello","start":false,"inputs":{"n":3},"labels":{"team":"a"},"goal":"Be brief","dry_run":true}]}`)
	var got createResult
	r.structured(&got)
	want := createResult{NotTried: []int{}, Runs: []createdRun{
		{RunID: api.runs[0].ID, Workflow: "hello", StartRequested: true, Status: wire.StatusRunnable},
		{RunID: api.runs[1].ID, Workflow: "hello", Status: wire.StatusSubmitted},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, part := range []string{"2 Fabro runs created, start requested for 1.", "fabro_run_gather {\"run_ids\":[\"" + api.runs[0].ID, `{"action":"start","run_id":"` + api.runs[1].ID} {
		if !strings.Contains(r.text(), part) {
			t.Errorf("text lacks %q:\n%s", part, r.text())
		}
	}
	var sent wire.RunManifest
	if err := json.Unmarshal(api.bodies["POST /api/v1/runs"][1], &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Cwd != project || sent.Goal == nil || sent.Goal.Text != "Be brief" || sent.Args == nil || sent.Args.DryRun == nil || !*sent.Args.DryRun {
		t.Errorf("manifest: %+v", sent)
	}
	if diff := cmp.Diff([]string{"n=3"}, sent.Args.Input); diff != "" {
		t.Errorf("inputs (-want +got)\n%s", diff)
	}
}

func TestCreatePartly(t *testing.T) {
	for _, c := range []struct{ name, second, want string }{
		{"unknown workflow", `"helo"`, `Did you mean`},
		{"broken file", `"broken.fabro"`, `broken.fabro:4:`},
		{"lint", `"nostart.fabro"`, `start`},
		{"missing goal file", `{"workflow":"hello","goal_file":"none.md"}`, `none.md`},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFakeAPI(t)
			env, project := home(t)
			s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, rev2607, nil)
			r := s.call(nameCreate, `{"runs":["hello",`+c.second+`,"hello"]}`)
			if !r.failed() {
				t.Fatal("no error")
			}
			for _, part := range []string{"1 Fabro run created", api.runs[0].ID, "runs[1]", "was not created", c.want, "Not tried: runs[2]"} {
				if !strings.Contains(r.text(), part) {
					t.Errorf("text lacks %q:\n%s", part, r.text())
				}
			}
			if len(api.runs) != 1 {
				t.Errorf("%d runs were created", len(api.runs))
			}
		})
	}
}

func TestCreateStartFails(t *testing.T) {
	api := newFakeAPI(t)
	api.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/start") {
			refuse(w, 409, "", "an engine process is still running for this run")
			return true
		}
		return false
	}
	env, project := home(t)
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, rev2607, nil)
	r := s.call(nameCreate, `{"runs":["hello"]}`)
	if !r.failed() || !strings.Contains(r.text(), "The run "+api.runs[0].ID+" exists and is not started") {
		t.Error(r.text())
	}
}

func TestRequestKey(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		t.Run("state in "+filepath.Base(dir), func(t *testing.T) {
			api := newFakeAPI(t)
			env, project := home(t)
			cfg := Config{Connect: api.connect, Env: env, Cwd: project, StateDir: dir}
			call := `{"runs":["hello","hello"],"request_key":"k1"}`
			s := open(t, cfg, rev2607, nil)
			var first, second, third createResult
			s.call(nameCreate, call).structured(&first)
			s.call(nameCreate, call).structured(&second)
			if !second.Repeated || len(api.runs) != 2 || second.Runs[0].RunID != first.Runs[0].RunID || second.Runs[1].RunID != first.Runs[1].RunID {
				t.Errorf("the same key creates again: %+v, then %+v", first, second)
			}
			r := s.call(nameCreate, `{"runs":["hello"],"request_key":"k1"}`)
			r.structured(&third)
			if len(api.runs) != 2 || !strings.Contains(r.text(), "differ from those of the first call") {
				t.Errorf("%d runs, %s", len(api.runs), r.text())
			}
			if dir == "" {
				return
			}
			s.call(nameCreate, `{"runs":["hello"],"request_key":"k2"}`)
			again := open(t, cfg, rev2607, nil) // another process
			var fourth createResult
			again.call(nameCreate, call).structured(&fourth)
			if !fourth.Repeated || len(api.runs) != 3 {
				t.Errorf("a restart forgets the key: %+v, %d runs", fourth, len(api.runs))
			}
		})
	}
}

// TestRequestKeyUnfinished: a call that ends while the server creates a run (killed,
// or its answer lost) is repeated without creating the run again.
func TestRequestKeyUnfinished(t *testing.T) {
	const call = `{"runs":["hello",{"workflow":"hello","labels":{"team":"a"}}],"request_key":"k"}`
	for _, c := range []struct {
		name    string
		keep    bool // whether the state outlives the first process
		fails   int  // the creation that fails, from 1
		created bool // whether the server had made that run
		again   string
		want    int // runs in the end
		reused  int
	}{
		{"the first, created", true, 1, true, call, 2, 1},
		{"the first, not created", true, 1, false, call, 2, 0},
		{"the second, created", true, 2, true, call, 2, 2},
		{"the second, not created", true, 2, false, call, 2, 1},
		{"in one process", false, 2, true, call, 2, 2},
		{"other arguments after a run", true, 1, true, `{"runs":["hello","hello","hello"],"request_key":"k"}`, 1, 1},
		{"other arguments after nothing", true, 1, false, `{"runs":["hello","hello","hello"],"request_key":"k"}`, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFakeAPI(t)
			env, project := home(t)
			cfg := Config{Connect: api.connect, Env: env, Cwd: project}
			if c.keep {
				cfg.StateDir = t.TempDir()
			}
			creations := 0
			api.fault = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method != "POST" || r.URL.Path != "/api/v1/runs" {
					return false
				}
				api.mu.Lock()
				creations++
				fails := creations == c.fails
				api.mu.Unlock()
				if !fails {
					return false
				}
				if c.created {
					api.create(httptest.NewRecorder(), r)
				}
				panic(http.ErrAbortHandler) // the connection ends without an answer
			}
			start := func() *session {
				return openHost(t, cfg, rev2607, nil, func(h *host) { h.now = func() time.Time { return epoch } })
			}
			s := start()
			if r := s.call(nameCreate, call); !r.failed() {
				t.Fatalf("%s", r.text())
			}
			const others = 120 // more than a page, since
			for range others {
				api.add(wire.StatusRunning)
			}
			if c.keep {
				s = start()
			}
			for range 2 {
				var got createResult
				r := s.call(nameCreate, c.again)
				r.structured(&got)
				if len(api.runs)-others != c.want || len(got.Runs) != c.want {
					t.Fatalf("%d runs, %s", len(api.runs)-others, r.text())
				}
				if first := fmt.Sprintf("%d of them created by an earlier call", c.reused); c.reused > 0 && !strings.Contains(r.text(), first) {
					t.Errorf("no %q in %s", first, r.text())
				}
				for _, run := range got.Runs {
					if run.Status != wire.StatusRunnable {
						t.Errorf("%s is %s", run.RunID, run.Status)
					}
				}
				c.reused = c.want // all of them, by then
			}
		})
	}
	t.Run("cannot be looked up", func(t *testing.T) {
		api := newFakeAPI(t)
		env, project := home(t)
		api.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/api/v1/runs" {
				refuse(w, 503, "", "database is locked")
				return true
			}
			return false
		}
		s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, rev2607, nil)
		for _, want := range []string{"was not created: database is locked", "did not end, and what it has created cannot be looked up: database is locked"} {
			if r := s.call(nameCreate, call); !r.failed() || !strings.Contains(r.text(), want) {
				t.Errorf("no %q in %s", want, r.text())
			}
		}
	})
}

// TestRequestKeyAtOnce: calls with one key at the same time create once.
func TestRequestKeyAtOnce(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	cfg := Config{Connect: api.connect, Env: env, Cwd: project, StateDir: t.TempDir()}
	a, b := open(t, cfg, rev2607, nil), open(t, cfg, rev2607, nil)
	call := `{"runs":["hello"],"request_key":"k"}`
	var replies []<-chan map[string]any
	for range 4 {
		replies = append(replies, a.beginCall(nameCreate, call, nil), b.beginCall(nameCreate, call, nil))
	}
	for i, reply := range replies {
		a.finish(reply, nameCreate, fmt.Sprint(i))
	}
	if len(api.runs) != 1 {
		t.Errorf("%d runs were created", len(api.runs))
	}
}

// TestLinkTitles: the title of a link has no blank at an end, whatever names a run
// has.
func TestLinkTitles(t *testing.T) {
	for _, c := range []struct {
		name, want string
		workflow   wire.RunWorkflow
	}{
		{"a slug", "release", wire.RunWorkflow{Slug: wire.Ptr("release"), Name: wire.Ptr("Release")}},
		{"a blank slug", "Release", wire.RunWorkflow{Slug: wire.Ptr(" "), Name: wire.Ptr(" Release\n")}},
		{"no name", "unnamed workflow", wire.RunWorkflow{Slug: wire.Ptr(""), GraphName: wire.Ptr("\t")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := &wire.Run{ID: "R", Workflow: c.workflow}
			var got []string
			for _, link := range linksTo(run, "", "state") {
				got = append(got, link.(protocol.ResourceLink).Title)
			}
			if diff := cmp.Diff([]string{c.want, c.want + " state"}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestGet(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, deployQuestion())
	s := open(t, Config{Connect: api.connect}, rev2511, nil)
	r := s.call(nameGet, `{"run_id":"release"}`)
	var got getResult
	r.structured(&got)
	if got.RunID != run.ID || got.Summary.Status != wire.StatusBlocked || len(got.Questions) != 1 || got.Summary.CreatedAt != "2026-05-11T20:00:00+00:00" {
		t.Errorf("%+v", got)
	}
	for _, part := range []string{"build@1 succeeded (command)", "gate@1 running (human)", "> Ship it", "> Deploy?", `"answer":{"option":"A"}`} {
		if !strings.Contains(r.text(), part) {
			t.Errorf("text lacks %q:\n%s", part, r.text())
		}
	}
	if r := s.call(nameGet, `{"run_id":"nothing"}`); !r.failed() || !strings.Contains(r.text(), "fabro_run_search lists the runs there are") {
		t.Error(r.text())
	}
}

func TestInteract(t *testing.T) {
	api := newFakeAPI(t)
	run, parent := api.add(wire.StatusSubmitted), api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	api.seen()
	resolve := "GET /api/v1/runs/resolve?selector=" + run.ID
	path := " /api/v1/runs/" + run.ID
	for _, c := range []struct {
		action, more string
		requests     []string
		text         string
	}{
		{actGet, ``, []string{resolve, "GET" + path + "/state"}, "submitted"},
		{actStart, ``, []string{resolve, "POST" + path + "/start"}, "Start requested."},
		{actApprove, ``, []string{resolve, "POST" + path + "/approve"}, "Approved."},
		{actDeny, `,"reason":"no"`, []string{resolve, "POST" + path + "/deny"}, "Denied."},
		{actMessage, `,"message":" hi ","interrupt":true`, []string{resolve, "POST" + path + "/steer"}, "round was cancelled and the message sent"},
		{actInterrupt, ``, []string{resolve, "POST" + path + "/interrupt"}, "was interrupted"},
		{actCancel, ``, []string{resolve, "POST" + path + "/cancel"}, "Cancel requested."},
		{actArchive, ``, []string{resolve, "POST" + path + "/archive"}, "Archived."},
		{actUnarchive, ``, []string{resolve, "POST" + path + "/unarchive"}, "Brought back"},
		{actLinkParent, `,"parent_id":"` + parent.ID + `"`, []string{resolve, "GET /api/v1/runs/resolve?selector=" + parent.ID, "PUT" + path + "/parent"}, "Parent set."},
		{actUnlinkParent, ``, []string{resolve, "DELETE" + path + "/parent"}, "Parent removed."},
		{actQuestions, ``, []string{resolve, "GET" + path + "/questions?page[limit]=100&page[offset]=0"}, "0 open questions"},
	} {
		t.Run(c.action, func(t *testing.T) {
			r := s.call(nameInteract, `{"action":"`+c.action+`","run_id":"`+run.ID+`"`+c.more+`}`)
			var got interactResult
			r.structured(&got)
			if got.RunID != run.ID || got.Action != c.action || !strings.Contains(r.text(), c.text) {
				t.Errorf("%+v\n%s", got, r.text())
			}
			requests := api.seen()
			for i := range requests {
				requests[i] = strings.NewReplacer("%5B", "[", "%5D", "]").Replace(requests[i])
			}
			if c.action == actQuestions {
				requests[1], _, _ = strings.Cut(requests[1], "?")
				c.requests[1], _, _ = strings.Cut(c.requests[1], "?")
			}
			if diff := cmp.Diff(c.requests, requests); diff != "" {
				t.Errorf("requests (-want +got)\n%s", diff)
			}
		})
	}
	if body := api.bodies["POST /api/v1/runs/"+run.ID+"/steer"]; len(body) != 1 || string(body[0]) != `{"text":"hi","interrupt":true}` {
		t.Errorf("steer: %s", body)
	}
	if body := api.bodies["POST /api/v1/runs/"+run.ID+"/deny"]; len(body) != 1 || string(body[0]) != `{"reason":"no"}` {
		t.Errorf("deny: %s", body)
	}
}

func TestAnswerShapes(t *testing.T) {
	for given, want := range map[string]string{
		`true`: `{"kind":"yes"}`, `false`: `{"kind":"no"}`, `" text "`: `{"kind":"text","text":" text "}`, `{"text":"t"}`: `{"kind":"text","text":"t"}`,
		`{"option":"A"}`: `{"kind":"selected","option_key":"A"}`, `{"options":["A","R"]}`: `{"kind":"multi_selected","option_keys":["A","R"]}`, `{"options":[]}`: `{"kind":"multi_selected","option_keys":[]}`,
	} {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		api.ask(run, deployQuestion())
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		s.call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`","question_id":"q1","answer":`+given+`}`)
		if body := api.bodies["POST /api/v1/runs/"+run.ID+"/questions/q1/answer"]; len(body) != 1 || string(body[0]) != want {
			t.Errorf("%s sends %s, want %s", given, body, want)
		}
	}
}

func TestAnswerRefused(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, deployQuestion())
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	r := s.call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`","question_id":"q1","answer":{"option":"Z"}}`)
	if !r.failed() || !strings.Contains(r.text(), "Invalid option key.") || !strings.Contains(r.text(), "> - A: Approve") {
		t.Error(r.text())
	}
	r = s.call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`","question_id":"q9","answer":true}`)
	if !r.failed() || !strings.Contains(r.text(), "already answered") || !strings.Contains(r.text(), "question q1") {
		t.Error(r.text())
	}
}

func TestPair(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	for _, c := range []struct{ action, more, text string }{
		{pairStatus, ``, `"stage_id":"work@1"`},
		{pairStart, `,"stage_id":"work@1"`, "Paired: pair"},
		{pairGet, `,"pair_id":"` + run.ID + `"`, "is active"},
		{pairMessage, `,"pair_id":"` + run.ID + `","text":"hello"`, "was accepted"},
		{pairTranscript, `,"pair_id":"` + run.ID + `"`, "> #4 assistant_message: hi"},
		{pairEnd, `,"pair_id":"` + run.ID + `"`, "Ended: pair"},
	} {
		r := s.call(namePair, `{"action":"`+c.action+`","run_id":"`+run.ID+`"`+c.more+`}`)
		var got pairResult
		r.structured(&got)
		if !strings.Contains(r.text(), c.text) {
			t.Errorf("%s: %s", c.action, r.text())
		}
	}
}
