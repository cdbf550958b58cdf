package embedded

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// A run from the first call on a cold machine to its end, by way of a question.
func TestWholeRun(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	id := s.start(p, oneGate)
	q := p.question(id)
	if q.Text != "Go on?" || q.Stage != "ask" || q.Type != wire.QuestionMultipleChoice || len(q.Options) != 2 {
		t.Fatalf("question %+v", q)
	}
	run := p.run(id)
	if run.Lifecycle.Status.Kind != wire.StatusBlocked || run.CurrentQuestion == nil || run.CurrentQuestion.Text != "Go on?" {
		t.Fatalf("run %+v", run.Lifecycle)
	}
	p.answer(id, q.ID, wire.AnswerOfOption("N"))
	p.follow(id, 1, func(e wire.EventEnvelope) bool { return e.Event == wire.EventInterviewStarted && e.StageID == "ask@2" })
	var list wire.List[wire.Question]
	for len(list.Data) == 0 {
		p.call(http.StatusOK, "GET", "/runs/"+id+"/questions", nil, &list)
	}
	p.answer(id, list.Data[0].ID, wire.AnswerOfOption("Y"))
	if run := p.ended(id); run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusSucceeded, Reason: wire.SucceededCompleted}) {
		t.Fatalf("ended as %s: %+v", run.Lifecycle.Status, run.Lifecycle.Error)
	}
	log := p.log(id)
	var order []string
	for _, e := range log {
		if e.Event == wire.EventStageStarted {
			order = append(order, e.StageID)
		}
	}
	if diff := cmp.Diff([]string{"start@1", "work@1", "ask@1", "work@2", "ask@2", "exit@1"}, order); diff != "" {
		t.Fatal(diff)
	}
	if got := names(log)[:4]; !slices.Equal(got, []string{"run.created", "run.submitted", "run.start_requested", "run.runnable"}) {
		t.Fatalf("first events %v", got)
	}
	var state wire.RunProjection
	p.call(http.StatusOK, "GET", "/runs/"+id+"/state", nil, &state)
	if state.Conclusion == nil || state.Conclusion.Status != wire.OutcomeSucceeded || len(state.Stages) != 6 || len(state.Checkpoints) != 5 {
		t.Fatalf("state: conclusion %+v, %d stages, %d checkpoints", state.Conclusion, len(state.Stages), len(state.Checkpoints))
	}
	var log1 wire.CommandLog
	p.call(http.StatusOK, "GET", "/runs/"+id+"/stages/work@1/logs/output", nil, &log1)
	if string(log1.Bytes) != "work\n" || !log1.EOF || log1.CASRef == nil {
		t.Fatalf("log %+v", log1)
	}
}
