package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

type interactResult struct {
	RunID  string         `json:"run_id"`
	Action string         `json:"action"`
	Result map[string]any `json:"result"`
}

const interactSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"action":{"type":"string"},` +
	`"result":{"type":"object","description":"summary for what changes a run, with projection for get; questions for get_questions; question_id and submitted for answer; message and interrupt for message; interrupted for interrupt",` +
	`"properties":{"summary":` + summarySchema + `,"projection":{"type":"object"},"questions":{"type":"array","items":` + questionSchema + `},` +
	`"question_id":{"type":"string"},"submitted":{"type":"boolean"},"message":{"type":"string"},"interrupt":{"type":"boolean"},"interrupted":{"type":"boolean"}}}},` +
	`"required":["run_id","action","result"]}`

// actionDone says what an action did, for the text.
var actionDone = map[string]string{
	actStart: "Start requested.", actApprove: "Approved.", actDeny: "Denied.", actCancel: "Cancel requested.",
	actArchive: "Archived.", actUnarchive: "Brought back from the archive.", actLinkParent: "Parent set.", actUnlinkParent: "Parent removed.",
}

func (p *interactParams) run(ctx context.Context, r *request) (*reply, error) {
	if err := p.missing(); err != nil && !r.canAsk() {
		return nil, p.explainMissing(ctx, r, err)
	}
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	switch p.Action {
	case actGet:
		return p.get(ctx, r, client, run)
	case actQuestions:
		return p.questions(ctx, r, client, run)
	case actAnswer:
		return p.answer(ctx, r, client, run)
	case actMessage:
		if err := client.SteerRun(ctx, run.ID, p.Message, p.Interrupt.Value); err != nil {
			return nil, err
		}
		text := "Message sent to the agent of " + run.ID + "."
		if p.Interrupt.Value {
			text = "The agent's round was cancelled and the message sent to " + run.ID + "."
		}
		return p.reply(run, text, map[string]any{"message": p.Message, "interrupt": p.Interrupt.Value}), nil
	case actInterrupt:
		if err := client.InterruptRun(ctx, run.ID); err != nil {
			return nil, err
		}
		return p.reply(run, "The agent of "+run.ID+" was interrupted and waits for a message or a cancel.", map[string]any{"interrupted": true}), nil
	}
	changed, err := p.change(ctx, client, run)
	if err != nil {
		return nil, err
	}
	return p.reply(changed, actionDone[p.Action]+" "+r.runLine(changed), map[string]any{"summary": summarize(changed)}), nil
}

// change does the actions that answer with the run.
func (p *interactParams) change(ctx context.Context, client *fabroapi.Client, run *wire.Run) (*wire.Run, error) {
	switch p.Action {
	case actStart:
		return client.StartRun(ctx, run.ID, false)
	case actApprove:
		return client.ApproveRun(ctx, run.ID)
	case actDeny:
		return client.DenyRun(ctx, run.ID, p.Reason)
	case actCancel:
		return client.CancelRun(ctx, run.ID)
	case actArchive:
		return client.ArchiveRun(ctx, run.ID)
	case actUnarchive:
		return client.UnarchiveRun(ctx, run.ID)
	case actUnlinkParent:
		return client.UnlinkParent(ctx, run.ID)
	}
	parent, err := client.ResolveRun(ctx, p.ParentID)
	if err != nil {
		return nil, fmt.Errorf("parent run %q: %w", p.ParentID, err)
	}
	return client.LinkParent(ctx, run.ID, parent.ID)
}

func (p *interactParams) reply(run *wire.Run, text string, result map[string]any) *reply {
	return &reply{text: text, structured: interactResult{RunID: run.ID, Action: p.Action, Result: result}, links: linksTo(run, "")}
}

func (p *interactParams) get(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run) (*reply, error) {
	state, err := client.RunStateRaw(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return p.reply(run, r.getText(run, state, nil), map[string]any{"summary": summarize(run), "projection": json.RawMessage(state)}), nil
}

func (p *interactParams) questions(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run) (*reply, error) {
	questions, err := client.Questions(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	if questions == nil {
		questions = []wire.Question{}
	}
	page := &plain.Page{Rest: "All questions: " + runURI(run.ID, "questions")}
	page.Line("%s has %s, status %s.", run.ID, plural.Count(len(questions), "open question"), run.Lifecycle.Status)
	for i := range questions {
		w := r.waiting(run.ID, &questions[i])
		r.pageQuestion(page, &w)
	}
	return p.reply(run, page.String(), map[string]any{"questions": questions}), nil
}

// answer passes an answer on. What is missing, the person is asked for.
func (p *interactParams) answer(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run) (*reply, error) {
	answer := p.Answer.Value
	if p.missing() != nil {
		question, err := p.chooseQuestion(ctx, r, client, run)
		if err != nil {
			return nil, err
		}
		p.QuestionID = question.ID
		if !p.Answer.Set {
			if answer, err = r.askAnswer(ctx, run, question); err != nil {
				return nil, err
			}
		}
	}
	if err := client.Answer(ctx, run.ID, p.QuestionID, answer); err != nil {
		return nil, p.explainRefusal(ctx, r, client, run, err)
	}
	text := fmt.Sprintf("Answered question %s of %s: %s.", p.QuestionID, run.ID, answerText(&wire.Question{}, answer))
	if r.offers(nameGather) {
		text += fmt.Sprintf(` Wait for the run: %s {"run_ids":["%s"],"until":"attention"}`, nameGather, run.ID)
	}
	return p.reply(run, text, map[string]any{"question_id": p.QuestionID, "submitted": true}), nil
}

// explainMissing is the error of an answer without a question or an answer, where
// nobody can be asked for it: with the questions of the run, where it can be read.
func (p *interactParams) explainMissing(ctx context.Context, r *request, rule error) error {
	rule = fmt.Errorf("%w.%s", rule, r.schemaHint())
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return rule
	}
	return p.withQuestions(ctx, r, client, run, rule)
}

// explainRefusal adds the question as it is to an answer that does not fit it.
func (p *interactParams) explainRefusal(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run, err error) error {
	if !isRefusal(err) {
		return err
	}
	return p.withQuestions(ctx, r, client, run, err)
}

// withQuestions adds the open questions of a run to an error.
func (p *interactParams) withQuestions(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run, err error) error {
	questions, listErr := client.Questions(ctx, run.ID)
	if listErr != nil {
		return err
	}
	page := &plain.Page{}
	for i := range questions {
		w := r.waiting(run.ID, &questions[i])
		r.pageQuestion(page, &w)
	}
	if len(questions) == 0 {
		page.Line("%s has no open question; its status is %s.", run.ID, run.Lifecycle.Status)
	}
	return fmt.Errorf("%w\n%s", err, page.String())
}

// chooseQuestion finds the question that is meant: the one named, the only one, or
// the one that the person picks.
func (p *interactParams) chooseQuestion(ctx context.Context, r *request, client *fabroapi.Client, run *wire.Run) (*wire.Question, error) {
	questions, err := client.Questions(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s has no open question; its status is %s. %s", run.ID, run.Lifecycle.Status, r.nextStep(run))
	}
	id := p.QuestionID
	if id == "" && len(questions) == 1 {
		return &questions[0], nil
	}
	if id == "" {
		var candidates []formChoice
		for _, q := range questions[:min(len(questions), maxCandidates)] {
			candidates = append(candidates, formChoice{Const: q.ID, Title: plain.Line(q.Text, 200)})
		}
		id, err = r.chooseFor(ctx, "argument:question_id", "question", fmt.Sprintf("%s has %d open questions. Which one is answered?", run.ID, len(questions)), candidates)
		if errors.Is(err, errNoCandidates) {
			return nil, p.missing()
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range questions {
		if questions[i].ID == id {
			return &questions[i], nil
		}
	}
	ids := make([]string, len(questions))
	for i, q := range questions {
		ids[i] = q.ID
	}
	near := ""
	if n := args.Nearest(id, ids); n != "" {
		near = fmt.Sprintf(" Did you mean %q?", n)
	}
	return nil, fmt.Errorf("%s has no open question %q; open are: %s.%s", run.ID, id, strings.Join(ids, ", "), near)
}

// askAnswer shows one question to the person.
func (r *request) askAnswer(ctx context.Context, run *wire.Run, q *wire.Question) (wire.SubmitAnswer, error) {
	var none wire.SubmitAnswer
	form, err := questionForm(run, q, r.call.FormsHoldLists())
	if err != nil {
		return none, err
	}
	answers, err := r.ask(ctx, protocol.InputRequest{Key: q.ID, Form: &form})
	switch {
	case errors.Is(err, errCannotAsk):
		return none, args.Errorf("answer is required for action answer")
	case errors.Is(err, errUnanswered), errors.Is(err, errCapped), errors.Is(err, errAskFailed):
		return none, fmt.Errorf("%w; nothing was answered, the run still waits", err)
	case err != nil:
		return none, err
	}
	answer := answers[q.ID].Elicit
	if answer == nil || answer.Action != protocol.ActionAccept {
		return none, fmt.Errorf("the person did not answer question %s; nothing was answered, the run still waits", q.ID)
	}
	return formAnswerOf(q, answer.Content)
}

// submitAnswer passes on an answer that a person gave during a gather, and records
// it.
func (r *request) submitAnswer(ctx context.Context, client *fabroapi.Client, runID, questionID string, answer wire.SubmitAnswer) error {
	began := r.now()
	err := client.Answer(ctx, runID, questionID, answer)
	body, encodeErr := json.Marshal(answer)
	if encodeErr != nil {
		body = []byte("null")
	}
	arguments := fmt.Appendf(nil, `{"action":"answer","run_id":%q,"question_id":%q,"answer":%s}`, runID, questionID, body)
	r.audit.record(r, arguments, began, &reply{}, err)
	return err
}
