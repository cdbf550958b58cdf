package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// How labels become options, and answers ways.
func TestAccelerators(t *testing.T) {
	for label, key := range map[string]string{
		"[Y] Yes": "Y", "[retry] Again": "retry", "Y) Yes": "Y", "abc) Alphabet": "abc", "abcd) Too long": "a", "Y - Yes": "Y",
		"Yes": "Y", "yes": "y", " Über": "Ü", "[] Empty": "[", "1) One": "1",
	} {
		if got := accelerator(label); got != key {
			t.Errorf("%q: %q, want %q", label, got, key)
		}
	}
	for label, plain := range map[string]string{
		"[Y] Yes": "yes", "Y) Yes": "yes", "y - Yes": "yes", " Yes ": "yes", "Yes": "yes", "ab) Yes": "ab) yes", "[open": "[open",
		"Ü) Ja": "ja",
	} {
		if got := normalLabel(label); got != plain {
			t.Errorf("%q: %q, want %q", label, got, plain)
		}
	}
}

func TestAnswers(t *testing.T) {
	fixed := `ask [shape=hexagon, label="Go?"QT] yes [script="true"] no [script="true"] start -> ask
  ask -> yes [label="[Y] Yes"]
  ask -> no [label="N) No"]
  yes -> exit; no -> exit`
	free := fixed + `
  ask -> free [freeform=true, label="Else"] free [script="true"] free -> exit`
	cases := []struct {
		name, graph, kind string
		answer            wire.SubmitAnswer
		way               string
		selected, label   any
		text              string
	}{
		{"an option", fixed, "", wire.AnswerOfOption("N"), "no", "N", "N) No", "N"},
		{"yes", fixed, "yes_no", wire.AnswerOfYes(true), "yes", "Y", "[Y] Yes", "yes"},
		{"no", fixed, "confirmation", wire.AnswerOfYes(false), "no", "N", "N) No", "no"},
		{"several options go by the first", fixed, "multi_select", wire.AnswerOfOptions("N", "Y"), "no", "N,Y", "N) No, [Y] Yes", "N, Y"},
		{"no options at all", fixed, "multi_select", wire.AnswerOfOptions(), "yes", "", "", ""},
		{"text that is a key", free, "", wire.AnswerOfText("n"), "no", "N", "N) No", "n"},
		{"text that is a label", free, "", wire.AnswerOfText("yes"), "yes", "Y", "[Y] Yes", "yes"},
		{"other text", free, "", wire.AnswerOfText("perhaps"), "free", "freeform", "perhaps", "perhaps"},
		{"other text without a way for it", fixed, "freeform", wire.AnswerOfText("perhaps"), "yes", "Y", "[Y] Yes", "perhaps"},
		{"text for a gate with one free way", `ask [shape=hexagon] free [script="true"] start -> ask; ask -> free [freeform=true]; free -> exit`, "", wire.AnswerOfText("hello"), "free", "freeform", "hello", "hello"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kind := ""
			if c.kind != "" {
				kind = `, question_type="` + c.kind + `"`
			}
			tr := newTrial(t, frame(replaceOnce(c.graph, "QT", kind)))
			tr.desk.answers = []wire.SubmitAnswer{c.answer}
			result, got := tr.run()
			if want := "start ask " + c.way + " exit"; order(got) != want || status(result) != "succeeded(completed)" {
				t.Errorf("%s: %s", order(got), status(result))
			}
			values := only(got, "checkpoint.completed")[1].Props["context_values"].(map[string]any)
			seen := []any{values["human.gate.selected"], values["human.gate.label"], only(got, "interview.completed")[0].Props["answer"]}
			var text any = c.text
			if c.text == "" {
				text = nil
			}
			if diff := cmp.Diff([]any{c.selected, c.label, text}, seen); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func replaceOnce(text, old, with string) string {
	for i := 0; i+len(old) <= len(text); i++ {
		if text[i:i+len(old)] == old {
			return text[:i] + with + text[i+len(old):]
		}
	}
	return text
}

func TestGateDeadline(t *testing.T) {
	t.Run("default choice", func(t *testing.T) {
		tr := newTrial(t, frame(`ask [shape=hexagon, timeout="90s", human.default_choice="b"] a [script="true"] b [script="true"]
  start -> ask; ask -> a [label="A"]; ask -> b [label="B"]; a -> exit; b -> exit`))
		tr.start()
		tr.clock.pass(t, 90*time.Second)
		result, got := tr.wait()
		if order(got) != "start ask b exit" || status(result) != "succeeded(completed)" {
			t.Errorf("%s: %s", order(got), status(result))
		}
		late := only(got, "interview.timeout")
		want := []line{{Event: "interview.timeout", Node: "ask", Label: "ask", Stage: "ask@1", Actor: "timeout",
			Props: map[string]any{"question_id": "Q1", "question": "ask", "stage": "ask", "duration_ms": 90000.0}}}
		if diff := cmp.Diff(want, late); diff != "" {
			t.Error(diff)
		}
		started := only(got, "interview.started")[0]
		if started.Props["timeout_seconds"] != 90.0 || tr.desk.about[0].Deadline.IsZero() {
			t.Errorf("%v %v", started.Props, tr.desk.about)
		}
		values := only(got, "checkpoint.completed")[1].Props["context_values"].(map[string]any)
		if values["human.gate.ask.answer"] != "timeout" || values["preferred_label"] != "b" {
			t.Errorf("%v", values)
		}
	})
	t.Run("no default", func(t *testing.T) {
		tr := newTrial(t, frame(`ask [shape=hexagon, timeout="90s", max_retries=1] start -> ask -> exit`))
		tr.start()
		tr.clock.pass(t, 90*time.Second)
		tr.clock.pass(t, 5*time.Second)
		tr.clock.pass(t, 90*time.Second)
		result, got := tr.wait()
		if order(got) != "start ask" || status(result) != "failed(workflow_error): stage ask failed with no outgoing fail edge" {
			t.Errorf("%s: %s", order(got), status(result))
		}
		if n := len(only(got, "interview.timeout")); n != 2 {
			t.Errorf("%d timeouts", n)
		}
	})
	t.Run("partial success", func(t *testing.T) {
		tr := newTrial(t, frame(`ask [shape=hexagon, timeout="90s", allow_partial=true] start -> ask -> exit`))
		tr.start()
		tr.clock.pass(t, 90*time.Second)
		result, got := tr.wait()
		if status(result) != "succeeded(completed)" || only(got, "stage.completed")[1].Props["status"] != "partially_succeeded" {
			t.Errorf("%s\n%s", status(result), names(got))
		}
	})
}

func TestAutoApprove(t *testing.T) {
	cases := map[string]string{
		`question_type="yes_no"`: "yes", `question_type="confirmation"`: "yes", `question_type="multiple_choice"`: "G",
		`question_type="multi_select"`: "G", `question_type="freeform"`: "auto-approved",
	}
	for kind, answer := range cases {
		t.Run(kind, func(t *testing.T) {
			tr := newTrial(t, frame(`ask [shape=hexagon, `+kind+`] start -> ask -> exit [label="[G] Go"]`))
			tr.spec.AutoApprove = true
			result, got := tr.run()
			if status(result) != "succeeded(completed)" || len(tr.desk.asked) != 0 {
				t.Fatal(status(result))
			}
			want := "interview.started run.blocked interview.completed run.unblocked"
			if diff := cmp.Diff(want, join(only(got, "interview.started", "run.blocked", "interview.completed", "run.unblocked"))); diff != "" {
				t.Error(diff)
			}
			if a := only(got, "interview.completed")[0].Props["answer"]; a != answer {
				t.Errorf("the answer is %v", a)
			}
		})
	}
}

func join(all []line) string {
	text := ""
	for i, l := range all {
		if i > 0 {
			text += " "
		}
		text += l.Event
	}
	return text
}

// Several questions at once block the run once, and the last answer unblocks it.
func TestQuestionsAtOnce(t *testing.T) {
	tr := newTrial(t, frame(`fork [shape=component] a [shape=hexagon] b [shape=hexagon] c [shape=hexagon] join [shape=tripleoctagon]
  start -> fork; fork -> a; fork -> b; fork -> c; a -> join; b -> join; c -> join; join -> exit`))
	desk := &gatedDesk{open: make(chan struct{})}
	go func() {
		tr.journal.await(t, "interview.started", 3)
		close(desk.open)
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	result, err := Run(ctx, tr.spec, tr.journal, desk)
	if err != nil || status(result) != "succeeded(completed)" {
		t.Fatal(status(result), err)
	}
	got := tr.journal.lines(t)
	if len(only(got, "run.blocked")) != 1 || len(only(got, "run.unblocked")) != 1 || len(only(got, "interview.completed")) != 3 {
		t.Errorf("%s", names(got))
	}
}

// gatedDesk answers everything with the first option once it is opened.
type gatedDesk struct{ open chan struct{} }

func (d *gatedDesk) Ask(ctx context.Context, q wire.Question, _ AskInfo) (Answer, error) {
	select {
	case <-d.open:
		return Answer{Submit: wire.AnswerOfOption(q.Options[0].Key)}, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

type brokenDesk struct{}

func (brokenDesk) Ask(context.Context, wire.Question, AskInfo) (Answer, error) {
	return Answer{}, errors.New("the desk is closed")
}

func TestQuestionInterrupted(t *testing.T) {
	tr := newTrial(t, frame(`ask [shape=hexagon, max_retries=3] start -> ask -> exit`))
	result, err := Run(t.Context(), tr.spec, tr.journal, brokenDesk{})
	if err != nil || status(result) != "failed(workflow_error): stage ask failed with no outgoing fail edge" {
		t.Fatal(status(result), err)
	}
	got := tr.journal.lines(t)
	if diff := cmp.Diff("interview.started run.blocked interview.interrupted run.unblocked stage.failed",
		join(only(got, "interview.started", "run.blocked", "interview.interrupted", "run.unblocked", "stage.failed"))); diff != "" {
		t.Error(diff)
	}
	if r := only(got, "interview.interrupted")[0].Props["reason"]; r != "the desk is closed" {
		t.Errorf("%v", r)
	}
}

func TestReviewTarget(t *testing.T) {
	emit := `emit [output_schema=routing, script="echo '{\"context_updates\":{\"review_target\":REVIEW}}'"] ask [shape=hexagon, review_target=true]
  start -> emit -> ask -> exit`
	tr := newTrial(t, frame(replaceOnce(emit, "REVIEW", `{\"label\":\"Plan\",\"url\":\"https://x.test/p\",\"kind\":\"document\"}`)))
	tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("e")}
	if result, _ := tr.run(); status(result) != "succeeded(completed)" {
		t.Fatal(status(result))
	}
	if diff := cmp.Diff(&wire.ReviewTarget{Label: "Plan", URL: "https://x.test/p", Kind: "document"}, tr.desk.asked[0].ReviewTarget); diff != "" {
		t.Error(diff)
	}
	tr = newTrial(t, frame(replaceOnce(emit, "REVIEW", `{\"label\":\"Plan\"}`)))
	_, got := tr.run()
	if f := only(got, "stage.failed"); len(f) != 1 || len(tr.desk.asked) != 0 {
		t.Errorf("%s", names(got))
	}
}
