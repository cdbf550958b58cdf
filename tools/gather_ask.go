package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/plain"
)

// openQuestion is a question together with its run.
type openQuestion struct {
	w *followed
	q wire.Question
}

// questionsOf collects the open questions of all runs, each key once.
func questionsOf(runs []*followed) []openQuestion {
	var out []openQuestion
	seen := map[string]bool{}
	for _, w := range runs {
		if w.gone || w.run == nil {
			continue
		}
		for _, q := range w.open() {
			if !seen[q.ID] {
				seen[q.ID] = true
				out = append(out, openQuestion{w, q})
			}
		}
	}
	return out
}

// takeAnswers passes on the answers of the round before. A question that is no
// longer open was answered elsewhere, which is no error.
func (g *gathering) takeAnswers(ctx context.Context) error {
	if len(g.state.Asked) == 0 {
		return nil
	}
	asked := maps.Clone(g.state.Asked)
	var open []openQuestion
	for _, o := range questionsOf(g.f.runs) {
		if asked[o.q.ID] == o.w.id {
			open = append(open, o)
			delete(asked, o.q.ID)
		}
	}
	for _, question := range slices.Sorted(maps.Keys(asked)) {
		run := asked[question]
		gone := slices.ContainsFunc(g.f.runs, func(w *followed) bool { return w.id == run && w.gone })
		g.notes = append(g.notes, lateNote(question, run, gone))
	}
	if len(open) == 0 {
		g.state.Asked = nil
		return nil
	}
	return g.put(ctx, open)
}

// askOpen puts the open questions to the person, where the host can. It reports
// whether it did; endedBy is set when that brought no answer.
func (g *gathering) askOpen(ctx context.Context) (bool, error) {
	if g.r.cfg.ReadOnly || !g.r.canAsk() {
		return false, nil
	}
	var open []openQuestion
	for _, o := range questionsOf(g.f.runs) {
		if !g.skip[o.q.ID] {
			open = append(open, o)
		}
	}
	if len(open) == 0 {
		return false, nil
	}
	if !g.r.call.AsksTogether() {
		open = open[:1]
	}
	return true, g.put(ctx, open)
}

// put shows questions as forms and passes the answers on.
func (g *gathering) put(ctx context.Context, open []openQuestion) error {
	forms := make([]protocol.InputRequest, 0, len(open))
	asked := map[string]string{}
	for _, o := range open {
		form, err := questionForm(o.w.run, &o.q, g.r.call.FormsHoldLists())
		if err != nil {
			g.notes = append(g.notes, err.Error())
			g.skip[o.q.ID] = true
			continue
		}
		asked[o.q.ID] = o.w.id
		forms = append(forms, protocol.InputRequest{Key: o.q.ID, Form: &form})
	}
	if len(forms) == 0 {
		return nil
	}
	began := g.r.now()
	kept := *g.state
	kept.Asked, kept.Used = asked, g.used()
	g.r.state.Gather = &kept
	answers, err := g.r.ask(ctx, forms...)
	g.paused += g.r.now().Sub(began)
	g.r.state.Gather, g.state.Asked = g.state, nil
	switch {
	case errors.Is(err, errCannotAsk):
		for _, o := range open { // the result carries the questions instead
			g.notes = append(g.notes, fmt.Sprintf("the host could not show question %s", o.q.ID))
		}
		g.endedBy = endedAskFailed
		return nil
	case errors.Is(err, errUnanswered):
		g.notes = append(g.notes, err.Error())
		g.endedBy = endedDeclined
		return nil
	case errors.Is(err, errAskFailed):
		g.notes = append(g.notes, err.Error())
		g.endedBy = endedAskFailed
		return nil
	case errors.Is(err, errCapped):
		g.endedBy, g.capped = endedDeadline, true
		return nil
	case errors.Is(err, protocol.ErrInputClosed):
		g.endedBy = endedInputClosed
		return nil
	case err != nil:
		return err
	}
	for _, o := range open {
		answer := answers[o.q.ID].Elicit
		if answer == nil || answer.Action != protocol.ActionAccept {
			g.notes = append(g.notes, notAnswered(o.q.ID, o.w.id, answer))
			g.endedBy = endedDeclined
			continue
		}
		if err := g.submit(ctx, o, answer.Content); err != nil {
			return err
		}
	}
	return nil
}

// notAnswered says how a person did not answer.
func notAnswered(question, run string, answer *protocol.ElicitAnswer) string {
	how := "dismissed"
	if answer != nil && answer.Action == protocol.ActionDecline {
		how = "declined to answer"
	}
	return fmt.Sprintf("the person %s question %s of %s; it is still open", how, question, run)
}

// submit passes one answer on.
func (g *gathering) submit(ctx context.Context, o openQuestion, content map[string]any) error {
	answer, err := formAnswerOf(&o.q, content)
	if err != nil {
		// It fits the form, so it is the person who left the question open.
		g.notes = append(g.notes, err.Error())
		g.endedBy = endedDeclined
		return nil
	}
	err = g.r.submitAnswer(ctx, g.f.client, o.w.id, o.q.ID, answer)
	if err != nil && !isConflict(err) && !isGone(err) {
		return fmt.Errorf("%w by question %s of %s: %w", errAnswerRefused, o.q.ID, o.w.id, err)
	}
	g.noteAnswer(o.w, &o.q, answer, err)
	return nil
}

// noteAnswer keeps for the result what became of an answer.
func (g *gathering) noteAnswer(w *followed, q *wire.Question, answer wire.SubmitAnswer, err error) {
	w.answer(q.ID)
	g.state.Answered = append(g.state.Answered, q.ID)
	g.notes = append(g.notes, answerNote(w, q, answer, err))
}

// answerNote says what became of an answer that was passed on: it was taken, or the
// API refused it because of what happened while the person answered.
func answerNote(w *followed, q *wire.Question, answer wire.SubmitAnswer, err error) string {
	if err == nil {
		return fmt.Sprintf("the person answered question %s of %s: %s", q.ID, w.id, answerText(q, answer))
	}
	return lateNote(q.ID, w.id, isGone(err))
}

// lateNote says that an answer came too late, and whether that is so because the
// run is gone.
func lateNote(question, run string, gone bool) string {
	why := "was answered elsewhere meanwhile, or its time ran out"
	if gone {
		why = "is gone with its run"
	}
	return fmt.Sprintf("question %s of %s %s; the answer given here was not used", question, run, why)
}

// answerText shows an answer in a line.
func answerText(q *wire.Question, a wire.SubmitAnswer) string {
	label := func(key string) string {
		for _, o := range q.Options {
			if o.Key == key && o.Label != key {
				return key + " (" + plain.Line(bareLabel(key, o.Label), 60) + ")"
			}
		}
		return key
	}
	switch a.Kind {
	case wire.AnswerSelected:
		return label(a.OptionKey)
	case wire.AnswerMultiSelected:
		if len(a.OptionKeys) == 0 {
			return "nothing selected"
		}
		labels := make([]string, len(a.OptionKeys))
		for i, key := range a.OptionKeys {
			labels[i] = label(key)
		}
		return strings.Join(labels, ", ")
	case wire.AnswerText:
		return fmt.Sprintf("%q", plain.Line(a.Text, 120))
	}
	return a.Kind
}

// errAnswerRefused: the API did not take an answer that fits the question.
var errAnswerRefused = errors.New("the answer was not accepted")
