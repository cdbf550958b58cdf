package projection

import (
	"errors"
	"testing"

	"fabro-mcp/fabroapi/wire"
)

// Every pair of statuses: legal ones as the table of Fabro's statuses has them, all others refused.
func TestTransitions(t *testing.T) {
	st := func(kind, reason string) wire.RunStatus {
		s := wire.RunStatus{Kind: kind}
		switch kind {
		case wire.StatusBlocked:
			s.BlockedReason = reason
		case wire.StatusPaused:
			s.PriorBlock = reason
		default:
			s.Reason = reason
		}
		return s
	}
	submitted, pending, runnable := st("submitted", ""), st("pending", "approval_required"), st("runnable", "")
	starting, running, blocked := st("starting", ""), st("running", ""), st("blocked", "human_input_required")
	paused, pausedBlocked, removing := st("paused", ""), st("paused", "human_input_required"), st("removing", "")
	succeeded, partial, dead := st("succeeded", "completed"), st("succeeded", "partial_success"), st("dead", "")
	cancelled, denied, failed := st("failed", "cancelled"), st("failed", "approval_denied"), st("failed", "workflow_error")
	all := []wire.RunStatus{submitted, pending, runnable, starting, running, blocked, paused, pausedBlocked, removing, succeeded, partial, dead, cancelled, denied, failed}
	anyFailure := []wire.RunStatus{cancelled, denied, failed}
	legal := map[wire.RunStatus][]wire.RunStatus{
		submitted:     {pending, runnable, cancelled},
		pending:       {runnable, submitted, cancelled, denied},
		runnable:      {starting, submitted, cancelled},
		starting:      append([]wire.RunStatus{running, submitted}, anyFailure...),
		running:       append([]wire.RunStatus{succeeded, partial, blocked, paused, pausedBlocked, submitted}, anyFailure...),
		blocked:       append([]wire.RunStatus{running, paused, pausedBlocked, submitted}, anyFailure...),
		paused:        append([]wire.RunStatus{running, pausedBlocked, blocked, submitted}, anyFailure...),
		pausedBlocked: append([]wire.RunStatus{running, paused, blocked, submitted}, anyFailure...),
		removing:      append([]wire.RunStatus{submitted}, anyFailure...),
		cancelled:     {submitted},
		denied:        {submitted},
		failed:        {submitted},
	}
	n := 0
	for _, from := range all {
		for _, to := range all {
			want := from == to || to == dead || to == removing
			for _, l := range legal[from] {
				want = want || l == to
			}
			err := Transition(from, to)
			if want != (err == nil) {
				t.Errorf("%s → %s: %v, legal is %t", from, to, err, want)
			}
			var te *TransitionError
			if err != nil && (!errors.As(err, &te) || err.Error() != "invalid status transition: "+from.String()+" -> "+to.String()) {
				t.Errorf("%s → %s: %q", from, to, err)
			}
			n++
		}
	}
	if n != 225 {
		t.Errorf("%d pairs", n)
	}
}

// An event that is refused leaves the state as it was.
func TestRefusedEventChangesNothing(t *testing.T) {
	s := State{LastSeq: 4}
	s.Run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusRunnable}
	before := s
	for _, e := range []wire.EventEnvelope{
		{Seq: 5, Event: "run.running", Properties: []byte("{}")},
		{Seq: 5, Event: "run.failed", Properties: []byte(`{"failure":{"reason":"workflow_error","detail":{"message":"x","category":"deterministic"}}}`)},
		{Seq: 6, Event: "run.starting", Properties: []byte("{}")},
		{Seq: 5, Event: "run.created", Properties: []byte("{}")},
		{Seq: 5, Event: "run.archived", Properties: []byte("{}")},
	} {
		if _, err := s.Apply(&e); err == nil {
			t.Errorf("%s was taken", e.Event)
		}
		if s.Run.Lifecycle != before.Run.Lifecycle || s.LastSeq != 4 || s.Run.Timestamps != before.Run.Timestamps {
			t.Errorf("%s changed the state", e.Event)
		}
	}
}
