package tools

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// endOnAnswer lets a run succeed as soon as nothing is asked any more.
func endOnAnswer(api *fakeAPI) {
	api.onAnswer = func(run *fakeRun, _ string, _ wire.SubmitAnswer) {
		if len(run.questions) == 0 {
			run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusSucceeded, Reason: wire.SucceededCompleted}
			api.logLocked(run, wire.EventRunCompleted, "")
		}
	}
}

// TestForms shows every type of question in every era: what the form holds, and
// what is sent for what a person fills in.
func TestForms(t *testing.T) {
	options := []wire.QuestionOption{{Key: "A", Label: "Alpha", Description: wire.Ptr("the first")}, {Key: "B", Label: "Beta"}}
	for _, c := range []struct {
		name     string
		question wire.Question
		filled   map[string]map[string]any // by revision, "" for all others
		schema   map[string]string         // a part of it
		sent     string
	}{
		{"yes or no", wire.Question{ID: "q", Text: "Go on?", Type: wire.QuestionYesNo},
			map[string]map[string]any{"": {"answer": false}}, map[string]string{"": `"type":"boolean"`}, `{"kind":"no"}`},
		{"confirmation", wire.Question{ID: "q", Text: "Sure?", Type: wire.QuestionConfirmation},
			map[string]map[string]any{"": {"answer": true}}, map[string]string{"": `"type":"boolean"`}, `{"kind":"yes"}`},
		{"one of several", wire.Question{ID: "q", Text: "Which?", Type: wire.QuestionMultipleChoice, Options: options},
			map[string]map[string]any{"": {"answer": "B"}},
			map[string]string{"": `"oneOf":[{"const":"A","title":"Alpha"},{"const":"B","title":"Beta"}]`, rev2506: `"enum":["A","B"],"enumNames":["Alpha","Beta"]`}, `{"kind":"selected","option_key":"B"}`},
		{"several of many", wire.Question{ID: "q", Text: "Which ones?", Type: wire.QuestionMultiSelect, Options: options},
			map[string]map[string]any{"": {"answer": []string{"A", "B"}}, rev2506: {"option_1": true, "option_2": true}},
			map[string]string{"": `"items":{"anyOf":[{"const":"A","title":"Alpha"},{"const":"B","title":"Beta"}]}`, rev2506: `"option_2":`}, `{"kind":"multi_selected","option_keys":["A","B"]}`},
		{"none of many", wire.Question{ID: "q", Text: "Which ones?", Type: wire.QuestionMultiSelect, Options: options},
			map[string]map[string]any{"": {"answer": []string{}}, rev2506: {}}, nil, `{"kind":"multi_selected","option_keys":[]}`},
		{"free text", wire.Question{ID: "q", Text: "Say something", Type: wire.QuestionFreeform, AllowFreeform: true},
			map[string]map[string]any{"": {"answer": "words"}}, map[string]string{"": `"minLength":1`}, `{"kind":"text","text":"words"}`},
		{"text instead of a choice", wire.Question{ID: "q", Text: "Which?", Type: wire.QuestionMultipleChoice, Options: options, AllowFreeform: true},
			map[string]map[string]any{"": {"text": "neither"}}, map[string]string{"": `"text":`}, `{"kind":"text","text":"neither"}`},
	} {
		for _, revision := range eras {
			t.Run(c.name+" "+revision, func(t *testing.T) {
				pick := func(m map[string]map[string]any) map[string]any {
					if v, special := m[revision]; special {
						return v
					}
					return m[""]
				}
				api := newFakeAPI(t)
				endOnAnswer(api)
				run := api.add(wire.StatusRunning)
				api.ask(run, c.question)
				s := open(t, Config{Connect: api.connect}, revision, accept(pick(c.filled)))
				r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
				var got gatherResult
				r.structured(&got)
				if got.EndedBy != endedTerminal {
					t.Fatal(r.text())
				}
				if body := api.bodies["POST /api/v1/runs/"+run.ID+"/questions/q/answer"]; len(body) != 1 || string(body[0]) != c.sent {
					t.Errorf("sent %s, want %s", body, c.sent)
				}
				want := c.schema[revision]
				if want == "" {
					want = c.schema[""]
				}
				shown, _ := json.Marshal(s.forms()[0]["requestedSchema"])
				if !strings.Contains(string(shown), want) {
					t.Errorf("form %s\nlacks %s", shown, want)
				}
			})
		}
	}
}

// TestGatherAsksForSeveral: all open questions at once since 2026-07-28, one after
// another before.
func TestGatherAsksForSeveral(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			endOnAnswer(api)
			one, two := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
			yes := func(id string) wire.Question {
				return wire.Question{ID: id, Text: "Go " + id + "?", Type: wire.QuestionYesNo}
			}
			api.ask(one, yes("a"), yes("b"))
			api.ask(two, yes("c"))
			s := open(t, Config{Connect: api.connect}, revision, accept(map[string]any{"answer": true}))
			r := s.call(nameGather, `{"run_ids":["`+one.ID+`","`+two.ID+`"]}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedTerminal || len(s.forms()) != 3 || len(got.WaitingFor) != 0 {
				t.Errorf("%d forms, %s", len(s.forms()), r.text())
			}
		})
	}
}

// TestGatherPartlyDeclined: what was answered goes to the run, the rest stays open.
func TestGatherPartlyDeclined(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, wire.Question{ID: "a", Text: "First?", Type: wire.QuestionYesNo}, wire.Question{ID: "b", Text: "Second?", Type: wire.QuestionYesNo})
			s := open(t, Config{Connect: api.connect}, revision, func(params map[string]any) map[string]any {
				if strings.Contains(params["message"].(string), "Second?") {
					return map[string]any{"action": "decline"}
				}
				return map[string]any{"action": "accept", "content": map[string]any{"answer": true}}
			})
			var got gatherResult
			s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`).structured(&got)
			if got.EndedBy != endedDeclined || len(got.WaitingFor) != 1 || got.WaitingFor[0].QuestionID != "b" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAnsweredElsewhere: a question that somebody else answers while the form is
// open is no error.
func TestAnsweredElsewhere(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			s := open(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any {
				api.change(run, wire.EventInterviewCompleted, func() {
					run.questions = nil
					run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusRunning}
				})
				go api.end(run)
				return map[string]any{"action": "accept", "content": map[string]any{"answer": "A"}}
			})
			r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedTerminal || !strings.Contains(strings.Join(got.Notes, " "), "answered elsewhere meanwhile") {
				t.Errorf("%s", r.text())
			}
		})
	}
}

// TestDeletedWhileAsking: a run that is deleted while the form is open is reported
// as gone, in every era.
func TestDeletedWhileAsking(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			s := open(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any {
				api.change(run, "run.archived", func() { run.gone = true })
				return map[string]any{"action": "accept", "content": map[string]any{"answer": "A"}}
			})
			r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedTerminal || len(got.Runs) != 1 || got.Runs[0].Status != "gone" || got.Runs[0].CreatedAt != stamp(run.Timestamps.CreatedAt) {
				t.Errorf("%s", r.text())
			}
			notes := []string{"question q1 of " + run.ID + " is gone with its run; the answer given here was not used", run.ID + " was deleted meanwhile"}
			if diff := cmp.Diff(notes, got.Notes); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestNobodyReacts: a form that nobody reacts to is given up. In 2026-07-28 no
// request of ours waits for the person.
func TestNobodyReacts(t *testing.T) {
	for _, revision := range []string{rev2506, rev2511} {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			s := openHost(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any { return nil }, func(h *host) {
				if h.askFor != 10*time.Minute {
					t.Errorf("a form waits %s", h.askFor)
				}
				h.askFor = 50 * time.Millisecond
			})
			r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedDeclined || len(got.WaitingFor) != 1 || !strings.Contains(r.text(), "nobody answered in time") || len(api.bodies) != 0 {
				t.Errorf("%s", r.text())
			}
			if r := s.call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`"}`); !r.failed() || !strings.Contains(r.text(), "nobody answered in time") || len(api.bodies) != 0 {
				t.Errorf("%s", r.text())
			}
		})
	}
}

// TestAnswerCannotAsk: where nobody can be asked, an answer without an answer is
// told the question, its options and the next call.
func TestAnswerCannotAsk(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, wire.Question{ID: "q1", Text: "Publish?", Type: wire.QuestionMultipleChoice, Options: []wire.QuestionOption{
		{Key: "P", Label: "[P] Publish"}, {Key: "h", Label: "H) Hold"}, {Key: "W", Label: "Wait"}}})
	r := open(t, Config{Connect: api.connect}, rev2607, nil).call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`"}`)
	for _, want := range []string{"question_id is required", "> Publish?\n> - P: Publish\n> - h: Hold\n> - W: Wait\n",
		nameInteract + ` {"action":"answer","answer":{"option":"P"},"question_id":"q1","run_id":"` + run.ID + `"}`} {
		if !r.failed() || !strings.Contains(r.text(), want) {
			t.Errorf("no %q in %s", want, r.text())
		}
	}
}

// TestHostFailsToAsk: a host that declared forms and then fails to show them is not
// taken for a person who does not answer.
func TestHostFailsToAsk(t *testing.T) {
	for name, answer := range map[string]map[string]any{
		"an error":  {"error": map[string]any{"code": -32603, "message": "no window"}},
		"no answer": {"action": "whatever"},
		"half":      {"action": "accept", "content": map[string]any{}},
	} {
		for _, revision := range []string{rev2506, rev2511} {
			t.Run(name+" "+revision, func(t *testing.T) {
				api := newFakeAPI(t)
				run := api.add(wire.StatusRunning)
				api.ask(run, deployQuestion())
				s := open(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any { return answer })
				r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
				var got gatherResult
				r.structured(&got)
				if got.EndedBy != endedAskFailed || len(got.WaitingFor) != 1 || len(got.Notes) != 1 || !strings.Contains(r.text(), "The host could not ask the person") {
					t.Errorf("%+v\n%s", got, r.text())
				}
				for _, call := range []struct{ tool, arguments string }{{nameGet, `{}`}, {nameInteract, `{"action":"answer","run_id":"` + run.ID + `"}`}} {
					r := s.call(call.tool, call.arguments)
					if !r.failed() || strings.Contains(r.text(), "The person") || len(api.bodies) != 0 {
						t.Errorf("%s: %s", call.tool, r.text())
					}
				}
			})
		}
	}
}

// TestEmptyForm: a form that comes back filled in as it may be, and without an
// answer, is left open by the person; the host has done its part.
func TestEmptyForm(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, wire.Question{ID: "q", Text: "Say something", Type: wire.QuestionFreeform})
			s := open(t, Config{Connect: api.connect}, revision, accept(map[string]any{"answer": "  "}))
			r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
			var got gatherResult
			r.structured(&got)
			if got.EndedBy != endedDeclined || len(got.WaitingFor) != 1 || len(api.bodies) != 0 || strings.Contains(r.text(), "could not ask") {
				t.Errorf("%s", r.text())
			}
		})
	}
}

// TestMaxWaitCapsForms: a call comes back in time although a person has not
// answered yet, takes its form away, and says what to do next.
func TestMaxWaitCapsForms(t *testing.T) {
	for _, revision := range []string{rev2506, rev2511} {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			var now time.Time // stands still, so that each form gets the whole cap
			s := openHost(t, Config{Connect: api.connect, MaxWait: 20 * time.Millisecond}, revision, func(map[string]any) map[string]any { return nil },
				func(h *host) { h.now = func() time.Time { return now } })
			for _, c := range []struct{ tool, arguments, want string }{
				{nameGather, `{"run_ids":["` + run.ID + `"]}`, "Time is up: this server caps one call (--max-wait), and a person has to answer 1 question, see below. Call " + nameGather + " again"},
				{nameInteract, `{"action":"answer","run_id":"` + run.ID + `"}`, "(--max-wait); call again to ask again; nothing was answered, the run still waits"},
				{nameGet, `{}`, "(--max-wait); call again to ask again. No run was chosen"},
			} {
				r := s.call(c.tool, c.arguments)
				if !strings.Contains(r.text(), c.want) || len(api.bodies) != 0 {
					t.Errorf("%s: %s", c.tool, r.text())
				}
				s.untilNote("notifications/cancelled")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != 3 {
				t.Errorf("%d forms", len(s.asked))
			}
		})
	}
	t.Run("no time left", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		api.ask(run, deployQuestion())
		clock := time.Now()
		s := openHost(t, Config{Connect: api.connect, MaxWait: time.Minute}, rev2511, accept(nil), func(h *host) {
			h.now = func() time.Time {
				api.mu.Lock()
				defer api.mu.Unlock()
				clock = clock.Add(2 * time.Minute)
				return clock
			}
		})
		r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
		if !strings.Contains(r.text(), "caps one call (--max-wait), and a person has to answer 1 question") || len(s.forms()) != 0 {
			t.Errorf("%d forms, %s", len(s.forms()), r.text())
		}
	})
}

// TestBlockedButAnswered: on a server that moves a run on only some time after the
// answer, the text does not ask for the answer again.
func TestBlockedButAnswered(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			one, two := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
			api.onAnswer = func(run *fakeRun, _ string, _ wire.SubmitAnswer) {
				run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusBlocked, BlockedReason: wire.BlockedHumanInput}
			}
			api.ask(one, wire.Question{ID: "a", Text: "First?", Type: wire.QuestionYesNo})
			api.ask(two, wire.Question{ID: "b", Text: "Second?", Type: wire.QuestionYesNo})
			s := open(t, Config{Connect: api.connect}, revision, func(params map[string]any) map[string]any {
				if strings.Contains(params["message"].(string), "Second?") {
					return map[string]any{"action": "decline"}
				}
				return map[string]any{"action": "accept", "content": map[string]any{"answer": true}}
			})
			r := s.call(nameGather, `{"run_ids":["`+one.ID+`","`+two.ID+`"]}`)
			if line := one.ID + " (release): blocked(human_input_required). No question is open any more"; !strings.Contains(r.text(), line) {
				t.Errorf("no %q in\n%s", line, r.text())
			}
		})
	}
}

// TestPersonsTimeDoesNotCount: the time limit stands still while a form is open.
func TestPersonsTimeDoesNotCount(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			endOnAnswer(api)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion())
			var h *host
			clock := time.Now()
			s := openHost(t, Config{Connect: api.connect}, revision, func(map[string]any) map[string]any {
				api.mu.Lock() // orders the clock with the handler, which makes requests
				clock = clock.Add(time.Hour)
				api.mu.Unlock()
				return map[string]any{"action": "accept", "content": map[string]any{"answer": "A"}}
			}, func(made *host) {
				h = made
				h.now = func() time.Time {
					api.mu.Lock()
					defer api.mu.Unlock()
					return clock
				}
			})
			var got gatherResult
			s.call(nameGather, `{"run_ids":["`+run.ID+`"],"timeout_seconds":5}`).structured(&got)
			if got.EndedBy != endedTerminal || got.Elapsed < 3600 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAnswerAsks(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run := api.add(wire.StatusRunning)
			api.ask(run, deployQuestion(), wire.Question{ID: "q2", Text: "Tell us why", Type: wire.QuestionFreeform})
			s := open(t, Config{Connect: api.connect}, revision, func(params map[string]any) map[string]any {
				content := map[string]any{"answer": "because"}
				if message := params["message"].(string); strings.Contains(message, "Which run") {
					content = map[string]any{"choice": run.ID}
				} else if strings.Contains(message, "Which one is answered") {
					content = map[string]any{"choice": "q2"}
				}
				return map[string]any{"action": "accept", "content": content}
			})
			r := s.call(nameInteract, `{"action":"answer"}`)
			var got interactResult
			r.structured(&got)
			if len(s.forms()) != 3 || got.Result["question_id"] != "q2" {
				t.Errorf("%d forms, %+v", len(s.forms()), got)
			}
			if body := api.bodies["POST /api/v1/runs/"+run.ID+"/questions/q2/answer"]; len(body) != 1 || string(body[0]) != `{"kind":"text","text":"because"}` {
				t.Errorf("sent %s", body)
			}
		})
	}
}

func TestAnswerDeclined(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, deployQuestion())
	s := open(t, Config{Connect: api.connect}, rev2607, decline)
	r := s.call(nameInteract, `{"action":"answer","run_id":"`+run.ID+`"}`)
	if !r.failed() || !strings.Contains(r.text(), "nothing was answered, the run still waits") || len(api.bodies) != 0 {
		t.Errorf("%s, sent %v", r.text(), api.bodies)
	}
}

// TestMissingArguments: what a person could choose is asked for, with real
// candidates.
func TestMissingArguments(t *testing.T) {
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			env, project := home(t)
			old, run := api.add(wire.StatusSucceeded), api.add(wire.StatusRunning)
			s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, revision, func(params map[string]any) map[string]any {
				schema, _ := json.Marshal(params["requestedSchema"])
				choice := old.ID
				if strings.Contains(params["message"].(string), "workflow") {
					choice = "hello"
				}
				if !strings.Contains(string(schema), choice) {
					t.Errorf("no %s among the candidates: %s", choice, schema)
				}
				return map[string]any{"action": "accept", "content": map[string]any{"choice": choice}}
			})
			var got getResult
			s.call(nameGet, `{}`).structured(&got)
			if got.RunID != old.ID {
				t.Errorf("got %s", got.RunID)
			}
			for _, arguments := range []string{`{}`, `{"runs":[{"start":false}]}`} {
				var created createResult
				s.call(nameCreate, arguments).structured(&created)
				if len(created.Runs) != 1 || created.Runs[0].Workflow != "hello" {
					t.Errorf("%+v", created)
				}
			}
			_ = run
			if r := s.call(nameSearch, `{"frist":1}`); !r.failed() || !strings.Contains(r.text(), "unknown field") {
				t.Error(r.text())
			}
		})
	}
	t.Run("declined", func(t *testing.T) {
		api := newFakeAPI(t)
		api.add(wire.StatusRunning)
		s := open(t, Config{Connect: api.connect}, rev2607, decline)
		r := s.call(nameGet, `{}`)
		if !r.failed() || !strings.Contains(r.text(), "chose no run") {
			t.Error(r.text())
		}
	})
	t.Run("nothing to choose", func(t *testing.T) {
		api := newFakeAPI(t)
		s := open(t, Config{Connect: api.connect}, rev2607, decline)
		r := s.call(nameGet, `{}`)
		if !r.failed() || !strings.Contains(r.text(), "run_id is required") || len(s.forms()) != 0 {
			t.Error(r.text())
		}
	})
}

func TestGatherEnds(t *testing.T) {
	t.Run("deadline, with the question", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		api.ask(run, deployQuestion())
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		r := s.call(nameGather, `{"run_ids":["`+run.ID+`"],"timeout_seconds":0}`)
		var got gatherResult
		r.structured(&got)
		if got.EndedBy != endedDeadline || !got.TimedOut || len(got.WaitingFor) != 1 || !strings.Contains(r.text(), "Call fabro_run_gather again") {
			t.Errorf("%+v\n%s", got, r.text())
		}
		if diff := cmp.Diff([]waitingOption{{Key: "A", Label: "Approve"}, {Key: "R", Label: "Reject"}}, got.WaitingFor[0].Options); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("capped", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		s := open(t, Config{Connect: api.connect, MaxWait: time.Millisecond}, rev2607, nil)
		r := s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
		if !strings.Contains(r.text(), "caps one call (--max-wait). Call fabro_run_gather again") {
			t.Error(r.text())
		}
	})
	t.Run("attention", func(t *testing.T) {
		api := newFakeAPI(t)
		running, blocked, pending := api.add(wire.StatusRunning), api.add(wire.StatusRunning), api.add(wire.StatusPending)
		api.ask(blocked, deployQuestion())
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		reply := s.beginCall(nameGather, `{"run_ids":["`+running.ID+`","`+blocked.ID+`","`+pending.ID+`"],"until":"attention"}`, nil)
		api.waitFor(t, running.ID+"/attach")
		api.end(running)
		var got gatherResult
		s.finish(reply, nameGather, "").structured(&got)
		if got.EndedBy != endedAttention || len(got.WaitingFor) != 1 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("input closed", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		reply := s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, nil)
		api.waitFor(t, "/attach")
		s.stream.CloseWrite()
		var got gatherResult
		s.finish(reply, nameGather, "").structured(&got)
		if got.EndedBy != endedInputClosed {
			t.Errorf("%+v", got)
		}
	})
	t.Run("deleted meanwhile", func(t *testing.T) {
		api := newFakeAPI(t)
		run, other := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		reply := s.beginCall(nameGather, `{"run_ids":["`+run.ID+`","`+other.ID+`"]}`, nil)
		api.waitFor(t, run.ID+"/attach")
		api.waitFor(t, other.ID+"/attach")
		api.change(run, "run.removing", func() { run.gone = true })
		api.end(other)
		r := s.finish(reply, nameGather, "")
		var got gatherResult
		r.structured(&got)
		if got.EndedBy != endedTerminal || got.Runs[0].Status != "gone" || !strings.Contains(r.text(), run.ID+": gone") {
			t.Errorf("%+v\n%s", got, r.text())
		}
	})
	t.Run("a passing failure", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		failures := 0
		api.fault = func(w http.ResponseWriter, r *http.Request) bool {
			api.mu.Lock()
			defer api.mu.Unlock()
			if r.URL.Path == "/api/v1/runs/"+run.ID && failures < 2 {
				failures++
				refuse(w, 500, "", "database is locked")
				return true
			}
			return false
		}
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		reply := s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, nil)
		api.waitFor(t, "/attach")
		api.end(run)
		var got gatherResult
		s.finish(reply, nameGather, "").structured(&got)
		if got.EndedBy != endedTerminal {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a lasting failure", func(t *testing.T) {
		api := newFakeAPI(t)
		run := api.add(wire.StatusRunning)
		api.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/api/v1/runs/"+run.ID) {
				refuse(w, 500, "", "database is locked")
				return true
			}
			return false
		}
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		r := s.call(nameGather, `{"run_ids":["`+run.ID+`"],"timeout_seconds":1}`)
		var got gatherResult
		r.structured(&got)
		if got.EndedBy != endedDeadline || got.Runs[0].Status != wire.StatusRunning || !strings.Contains(r.text(), "last known state") {
			t.Errorf("%+v\n%s", got, r.text())
		}
	})
}

func TestGatherProgress(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2511, nil)
	reply := s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, map[string]any{"_meta": map[string]any{"progressToken": 0}})
	api.waitFor(t, "/attach")
	select {
	case <-s.noted:
	case <-time.After(2 * time.Minute):
		t.Fatal("no progress")
	}
	api.end(run)
	s.finish(reply, nameGather, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	params := s.notes[0]["params"].(map[string]any)
	if s.notes[0]["method"] != "notifications/progress" || params["total"] != 300.0 || !strings.Contains(params["message"].(string), "0 of 1 run ended; release running") {
		t.Errorf("%v", s.notes[0])
	}
}
