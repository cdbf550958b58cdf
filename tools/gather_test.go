package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

func deployQuestion() wire.Question {
	return wire.Question{ID: "q1", Text: "Deploy?", Stage: "gate", Type: wire.QuestionMultipleChoice, Options: []wire.QuestionOption{
		{Key: "A", Label: "Approve"}, {Key: "R", Label: "Reject"}, {Key: "A", Label: "Approve twice"},
	}, ContextDisplay: wire.Ptr("All \x1b[32mtests\x1b[0m pass")}
}

// eras are the revisions in which a host can show forms.
var eras = []string{rev2506, rev2511, rev2607}

func TestGatherUntilTheEnd(t *testing.T) {
	for _, revision := range append(eras, rev2024) {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			one, two := api.add(wire.StatusRunning), api.add(wire.StatusSucceeded)
			s := open(t, Config{Connect: api.connect}, revision, nil)
			reply := s.beginCall(nameGather, `{"run_ids":["`+one.ID+`","`+two.ID+`","`+one.ID+`"],"poll_interval_seconds":600}`, nil)
			api.waitFor(t, "attach")
			api.end(one)
			var got gatherResult
			r := s.finish(reply, nameGather, "")
			if revision == rev2024 {
				if !strings.Contains(r.text(), "2 of 2 runs ended") {
					t.Error(r.text())
				}
				return
			}
			r.structured(&got)
			ids := []string{got.EndedBy}
			for _, run := range got.Runs {
				ids = append(ids, run.RunID+" "+run.Status)
			}
			if diff := cmp.Diff([]string{endedTerminal, one.ID + " succeeded", two.ID + " succeeded", one.ID + " succeeded"}, ids); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// waitFor waits until a request whose path contains part has come in.
func (f *fakeAPI) waitFor(t *testing.T, part string) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		f.mu.Lock()
		for _, r := range f.requests {
			if strings.Contains(r, part) {
				f.mu.Unlock()
				return
			}
		}
		f.mu.Unlock()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no request with %q", part)
		}
	}
}

func TestGatherAsks(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			api.onAnswer = func(run *fakeRun, _ string, _ wire.SubmitAnswer) {
				run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusSucceeded}
				api.logLocked(run, wire.EventRunCompleted, "")
			}
			s := open(t, Config{Connect: api.connect}, revision, accept(map[string]any{"answer": "R"}))
			var got gatherResult
			s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`).structured(&got)
			if got.EndedBy != endedTerminal || len(got.WaitingFor) != 0 {
				t.Errorf("ended by %s, waits for %v", got.EndedBy, got.WaitingFor)
			}
			bodies := api.bodies["POST /api/v1/runs/"+run.ID+"/questions/q1/answer"]
			if len(bodies) != 1 || string(bodies[0]) != `{"kind":"selected","option_key":"R"}` {
				t.Errorf("answers sent: %s", bodies)
			}
			forms := s.forms()
			if len(forms) != 1 {
				t.Fatalf("%d forms", len(forms))
			}
			message := forms[0]["message"].(string)
			for _, part := range []string{run.ID, "release", "Deploy?", "All tests pass"} {
				if !strings.Contains(message, part) {
					t.Errorf("message %q lacks %q", message, part)
				}
			}
			schema, _ := json.Marshal(forms[0]["requestedSchema"])
			if strings.Contains(string(schema), "twice") || strings.Count(string(schema), "Approve") != 1 {
				t.Errorf("options of one key are offered once: %s", schema)
			}
			if _, titled := forms[0]["requestedSchema"].(map[string]any)["title"]; titled {
				t.Errorf("a form has no title: %s", schema)
			}
		})
	}
}

func TestGatherDeclined(t *testing.T) {
	for _, revision := range eras {
		for _, action := range []string{"decline", "cancel"} {
			t.Run(revision+" "+action, func(t *testing.T) {
				api := newFakeAPI(t)
				run := api.add(wire.StatusRunning)
				api.ask(run, deployQuestion())
				s := open(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any { return map[string]any{"action": action} })
				r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
				var got gatherResult
				r.structured(&got)
				if got.EndedBy != endedDeclined || got.TimedOut || len(got.WaitingFor) != 1 {
					t.Errorf("%+v", got)
				}
				if !strings.Contains(r.text(), "nothing was answered for them") {
					t.Error(r.text())
				}
				if len(api.bodies) != 0 {
					t.Errorf("sent: %v", api.bodies)
				}
			})
		}
	}
}

func TestGatherCannotAsk(t *testing.T) {
	for _, c := range []struct {
		name     string
		cfg      Config
		revision string
		answer   func(map[string]any) map[string]any
	}{
		{"host without forms", Config{}, rev2607, nil},
		{"old host", Config{}, rev2024, nil},
		{"read-only", Config{ReadOnly: true}, rev2511, accept(map[string]any{"answer": "A"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			c.cfg.Connect = api.connect
			s := open(t, c.cfg, c.revision, c.answer)
			r := s.call(nameGather, `{"run_ids":["`+run.ID+`"],"until":"attention"}`)
			text := r.text()
			for _, part := range []string{"Every unfinished run waits for a person", "> Deploy?", "> - A: Approve", "> All tests pass"} {
				if !strings.Contains(text, part) {
					t.Errorf("text lacks %q:\n%s", part, text)
				}
			}
			call := `fabro_run_interact {"action":"answer","answer":{"option":"A"},"question_id":"q1","run_id":"` + run.ID + `"}`
			if strings.Contains(text, call) == c.cfg.ReadOnly {
				t.Errorf("the next call is named where the tool is offered and nowhere else:\n%s", text)
			}
			if len(s.forms()) != 0 || len(api.bodies) != 0 {
				t.Errorf("asked %v, sent %v", s.forms(), api.bodies)
			}
		})
	}
}
