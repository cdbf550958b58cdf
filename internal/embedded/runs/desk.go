package runs

import (
	"context"
	"slices"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/engine"
)

// mailbox carries the one answer to a question from the request that gives it to the engine that waits for it. Either side may come first.
type mailbox struct {
	answer chan engine.Answer // one place, so that giving never waits
	closed bool               // an answer was taken or the question withdrawn; guarded by run.mu
}

func (r *run) mailboxLocked(id string) *mailbox {
	mb := r.mailboxes[id]
	if mb == nil {
		mb = &mailbox{answer: make(chan engine.Answer, 1)}
		r.mailboxes[id] = mb
	}
	return mb
}

// desk hands the questions of a run to whoever answers them over the API.
type desk struct{ r *run }

func (d desk) Ask(ctx context.Context, q wire.Question, about engine.AskInfo) (engine.Answer, error) {
	d.r.mu.Lock()
	mb := d.r.mailboxLocked(q.ID)
	d.r.mu.Unlock()
	select {
	case a := <-mb.answer:
		return a, nil
	case <-ctx.Done():
	}
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	if mb.closed {
		return <-mb.answer, nil
	}
	mb.closed = true
	return engine.Answer{}, ctx.Err()
}

// Answer gives an answer to an open question and returns when it is on record. Of two answers to one question only the first is taken.
func (m *Manager) Answer(ctx context.Context, id, questionID string, answer wire.SubmitAnswer, actor *wire.Actor) error {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer m.release(r)
	r.mu.Lock()
	if err := r.refuseArchivedLocked(); err != nil {
		r.mu.Unlock()
		return err
	}
	q, open := r.state.Interview(questionID)
	mb := r.mailboxLocked(questionID)
	if !open || mb.closed || r.exec == nil {
		if !open {
			delete(r.mailboxes, questionID)
		}
		r.mu.Unlock()
		return errAnswered
	}
	if err := checkAnswer(&q.Question, answer); err != nil {
		r.mu.Unlock()
		return err
	}
	recorded := make(chan error, 1)
	mb.closed = true
	mb.answer <- engine.Answer{Submit: answer, Actor: actor, Done: func(err error) { recorded <- err }}
	gone := r.exec.done
	r.mu.Unlock()
	select {
	case err = <-recorded:
	case <-gone:
		select {
		case err = <-recorded:
		default:
			err = errNoDelivery
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return errNoDelivery
	}
	return nil
}

// checkAnswer says whether an answer fits its question (fabro facts 3.6). An unknown key is reported before a kind that does not fit.
func checkAnswer(q *wire.Question, a wire.SubmitAnswer) error {
	known := func(key string) bool {
		return slices.ContainsFunc(q.Options, func(o wire.QuestionOption) bool { return o.Key == key })
	}
	switch a.Kind {
	case wire.AnswerSelected:
		if !known(a.OptionKey) {
			return badRequest("Invalid option key.")
		}
		if q.Type == wire.QuestionMultipleChoice {
			return nil
		}
	case wire.AnswerMultiSelected:
		for _, key := range a.OptionKeys {
			if !known(key) {
				return badRequest("Invalid option key.")
			}
		}
		if q.Type == wire.QuestionMultiSelect {
			return nil
		}
	case wire.AnswerYes, wire.AnswerNo:
		if q.Type == wire.QuestionYesNo || q.Type == wire.QuestionConfirmation {
			return nil
		}
	case wire.AnswerText:
		if (q.Type == wire.QuestionFreeform || q.AllowFreeform) && strings.TrimSpace(a.Text) != "" {
			return nil
		}
	}
	return badRequest("Answer does not match question type.")
}

// Questions returns the open questions of a run, oldest first.
func (m *Manager) Questions(ctx context.Context, id string) ([]wire.Question, error) {
	r, err := m.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer m.release(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]wire.Question, 0, len(r.state.Interviews))
	for _, q := range r.state.Interviews {
		list = append(list, q.Question)
	}
	return list, nil
}
