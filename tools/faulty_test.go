package tools

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// faults are what a server, or the network before it, can do to a request.
var faults = []struct {
	name  string
	fault func(w http.ResponseWriter, r *http.Request) bool
	// say is a part of what the error must say.
	say string
	// hangs: only a time-out ends it.
	hangs bool
}{
	{"500", func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, 500, "", "database is locked")
		return true
	}, "database is locked", false},
	{"500 without a body", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }, "500", false},
	{"401", func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, 401, "unauthorized", "Authentication required.")
		return true
	}, "fabro auth login", false},
	{"404", func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 404, "", "Run not found."); return true }, "not found", false},
	{"501", func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 501, "", "Not implemented."); return true }, "Not implemented", false},
	{"429", func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, 429, "", "Slow down."); return true }, "Slow down", false},
	{"a web page", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>Welcome</html>"))
		return true
	}, "", false},
	{"wrong JSON", func(w http.ResponseWriter, _ *http.Request) bool { w.Write([]byte(`["unexpected"]`)); return true }, "", false},
	{"half of the JSON", func(w http.ResponseWriter, _ *http.Request) bool { w.Write([]byte(`{"id":"01`)); return true }, "", false},
	{"an empty answer", func(http.ResponseWriter, *http.Request) bool { return true }, "", false},
	{"an empty object", func(w http.ResponseWriter, _ *http.Request) bool { w.Write([]byte(`{}`)); return true }, "", false},
	{"closed in the middle", func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"id":`))
		panic(http.ErrAbortHandler)
	}, "", false},
	{"closed at once", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "", false},
	{"no answer", func(_ http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body) // a server learns that a client is gone only then
		<-r.Context().Done()
		return true
	}, "", true},
	{"an answer that stops", func(w http.ResponseWriter, r *http.Request) bool {
		io.Copy(io.Discard, r.Body)
		w.Write([]byte(`{"id":`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}, "", true},
}

// TestFaultyAPI lets every fault meet every tool, at its first request and at those
// after the run was found: a clear error in bounded time, and the server lives on.
func TestFaultyAPI(t *testing.T) {
	calls := []struct{ tool, arguments string }{
		{nameCreate, `{"runs":["hello"]}`},
		{nameSearch, `{}`},
		{nameSearch, `{"run_ids":["RUN"]}`},
		{nameGet, `{"run_id":"RUN"}`},
		{nameInteract, `{"action":"get","run_id":"RUN"}`},
		{nameInteract, `{"action":"start","run_id":"RUN"}`},
		{nameInteract, `{"action":"approve","run_id":"RUN"}`},
		{nameInteract, `{"action":"deny","run_id":"RUN"}`},
		{nameInteract, `{"action":"message","message":"m","run_id":"RUN"}`},
		{nameInteract, `{"action":"interrupt","run_id":"RUN"}`},
		{nameInteract, `{"action":"cancel","run_id":"RUN"}`},
		{nameInteract, `{"action":"archive","run_id":"RUN"}`},
		{nameInteract, `{"action":"unarchive","run_id":"RUN"}`},
		{nameInteract, `{"action":"link_parent","parent_id":"RUN","run_id":"RUN"}`},
		{nameInteract, `{"action":"unlink_parent","run_id":"RUN"}`},
		{nameInteract, `{"action":"get_questions","run_id":"RUN"}`},
		{nameInteract, `{"action":"answer","question_id":"q1","answer":{"option":"A"},"run_id":"RUN"}`},
		{nameGather, `{"run_ids":["RUN"],"timeout_seconds":0}`},
		{namePair, `{"action":"status","run_id":"RUN"}`},
		{namePair, `{"action":"start","stage_id":"work@1","run_id":"RUN"}`},
		{namePair, `{"action":"message","text":"t","pair_id":"RUN","run_id":"RUN"}`},
		{namePair, `{"action":"transcript","pair_id":"RUN","run_id":"RUN"}`},
		{namePair, `{"action":"end","pair_id":"RUN","run_id":"RUN"}`},
		{nameEvents, `{"action":"list","run_id":"RUN"}`},
		{nameDiagnose, `{"run_id":"RUN"}`},
		{nameLogs, `{"run_id":"RUN"}`},
	}
	for _, fault := range faults {
		for _, where := range []string{"first", "later"} {
			t.Run(fault.name+" "+where, func(t *testing.T) {
				t.Parallel()
				api := newFakeAPI(t)
				env, project := home(t)
				run := api.add(wire.StatusRunning)
				api.ask(run, deployQuestion())
				api.fault = func(w http.ResponseWriter, r *http.Request) bool {
					if where == "later" && strings.HasSuffix(r.URL.Path, "/resolve") {
						return false
					}
					return fault.fault(w, r)
				}
				patience := time.Minute
				if fault.hangs {
					patience = 300 * time.Millisecond
				}
				connect := func(context.Context) (*fabroapi.Client, error) {
					target, err := fabroapi.ParseTarget(api.server.URL)
					if err != nil {
						return nil, err
					}
					return fabroapi.NewClient(fabroapi.Options{Target: target, NoProxy: true, Timeout: patience, StreamTimeout: patience,
						Backoff: func(int) time.Duration { return time.Millisecond }})
				}
				s := open(t, Config{Connect: connect, Env: env, Cwd: project, Toolsets: []string{"runs", "insight"}}, rev2607, nil)
				replies := make([]<-chan map[string]any, len(calls))
				for i, c := range calls {
					replies[i] = s.beginCall(c.tool, strings.ReplaceAll(c.arguments, "RUN", run.ID), nil)
				}
				for i, c := range calls {
					r := s.finish(replies[i], c.tool, c.arguments)
					text := r.text()
					harmless := where == "later" && (c.tool == nameSearch && strings.Contains(c.arguments, "RUN") || c.tool == nameGather) ||
						strings.Contains(fault.name, "an empty") || fault.name == "404" && c.tool == nameGather
					switch {
					case !r.failed() && !harmless && !ignoresBody(c.arguments, fault.name):
						t.Errorf("%s %s succeeds: %s", c.tool, c.arguments, text)
					case r.failed() && fault.say != "" && !strings.Contains(text, fault.say):
						t.Errorf("%s %s: %q does not say %q", c.tool, c.arguments, text, fault.say)
					case len(text) < 15 || strings.Contains(text, "panic") || strings.Contains(text, "%!"):
						t.Errorf("%s %s: %q", c.tool, c.arguments, text)
					}
				}
				api.mu.Lock()
				api.fault = nil
				api.mu.Unlock()
				patience = time.Minute // no call is under way
				if r := s.call(nameGet, `{"run_id":"`+run.ID+`"}`); r.failed() {
					t.Errorf("after the faults: %s", r.text())
				}
			})
		}
	}
}

// ignoresBody: the answers to these requests say nothing, so that a strange one
// hides nothing.
func ignoresBody(arguments, fault string) bool {
	for _, action := range []string{`"message","message"`, `"interrupt"`, `"answer"`} {
		if strings.Contains(arguments, `"action":`+action) {
			return fault == "a web page" || fault == "wrong JSON" || fault == "half of the JSON"
		}
	}
	return false
}

// TestNoServer: without a server, or with one that cannot be had, a call says so
// and the next one tries again.
func TestNoServer(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	tries := 0
	s := open(t, Config{Connect: func(ctx context.Context) (*fabroapi.Client, error) {
		if tries++; tries == 1 {
			target, err := fabroapi.ParseTarget("http://127.0.0.1:1")
			if err != nil {
				return nil, err
			}
			return fabroapi.NewClient(fabroapi.Options{Target: target, NoProxy: true, Retries: -1})
		}
		return api.connect(ctx)
	}}, rev2607, nil)
	if r := s.call(nameGet, `{"run_id":"`+run.ID+`"}`); !r.failed() || !strings.Contains(r.text(), "127.0.0.1:1") {
		t.Error(r.text())
	}
	if r := s.call(nameGet, `{"run_id":"`+run.ID+`"}`); r.failed() {
		t.Error(r.text())
	}
}

// TestCancelled: a call that the host cancels ends, and its requests with it.
func TestCancelled(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	ended := make(chan struct{})
	api.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/state") {
			<-r.Context().Done()
			close(ended)
			return true
		}
		return false
	}
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	s.beginCall(nameGet, `{"run_id":"`+run.ID+`"}`, nil)
	api.waitFor(t, "/state")
	s.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": 1}})
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Error("the request goes on")
	}
}
