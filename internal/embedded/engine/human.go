package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// A choice is one answer of a human gate and where it leads.
type choice struct {
	key, label, to string
}

// gate is what a human node offers: its fixed choices and the way for free text.
type gate struct {
	choices  []choice
	freeform *workflow.Edge
}

func (s *stage) humanGate() gate {
	var g gate
	for _, e := range s.w.graph.Out(s.node.ID) {
		if e.Freeform() {
			if g.freeform == nil {
				g.freeform = e
			}
			continue
		}
		label := e.Label()
		if strings.TrimSpace(label) == "" {
			label = e.To
		}
		g.choices = append(g.choices, choice{accelerator(label), label, e.To})
	}
	return g
}

var (
	bracketKey = lazily(`^\[([^\]]+)\]`)
	prefixKey  = lazily(`^([A-Za-z0-9]{1,3})(?:\)| - )`)
)

// accelerator is the key of a choice: "[Y] Yes", "Y) Yes" and "Y - Yes" say it, else it is the label's first character.
// Two choices may come to the same key; the first of them wins then.
func accelerator(label string) string {
	label = strings.TrimSpace(label)
	for _, form := range []*regexp.Regexp{bracketKey(), prefixKey()} {
		if m := form.FindStringSubmatch(label); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	_, size := utf8.DecodeRuneInString(label)
	return label[:size]
}

// question builds what the person is asked.
func (s *stage) question(ctx context.Context, g gate) (wire.Question, *Outcome) {
	q := wire.Question{
		ID: s.r.spec.NewID(), Text: s.node.Label(), Stage: s.node.ID, Type: wire.QuestionMultipleChoice,
		Options: []wire.QuestionOption{}, AllowFreeform: g.freeform != nil,
	}
	for _, c := range g.choices {
		q.Options = append(q.Options, wire.QuestionOption{Key: c.key, Label: c.label})
	}
	if len(g.choices) == 0 {
		q.Type = wire.QuestionFreeform
	}
	if kind, ok := s.node.Attrs.String("question_type"); ok && slices.Contains(questionTypes, kind) {
		q.Type = kind
	}
	if timeout, ok := s.node.Attrs.Duration("timeout"); ok {
		q.TimeoutSeconds = wire.Ptr(timeout.Seconds())
	}
	if last := s.ctx.text("last_stage"); last != "" {
		value, _ := s.ctx.Get("response." + last)
		value, err := s.r.blobs.resolve(ctx, value)
		if text, ok := value.(string); ok && err == nil && strings.TrimSpace(text) != "" {
			q.ContextDisplay = wire.Ptr(strings.TrimSpace(text))
		}
	}
	if review, _ := s.node.Attrs.Bool("review_target"); review {
		target, problem := s.reviewTarget()
		if problem != "" {
			return q, failedWith(Deterministic, problem)
		}
		q.ReviewTarget = target
	}
	return q, nil
}

var questionTypes = []string{
	wire.QuestionYesNo, wire.QuestionConfirmation, wire.QuestionMultipleChoice, wire.QuestionMultiSelect, wire.QuestionFreeform,
}

func (s *stage) reviewTarget() (*wire.ReviewTarget, string) {
	value, _ := s.ctx.Get("review_target")
	object, ok := value.(map[string]any)
	if !ok {
		return nil, "review_target needs an object in the context key review_target"
	}
	var t wire.ReviewTarget
	for _, member := range []struct {
		name string
		into *string
	}{{"label", &t.Label}, {"url", &t.URL}, {"kind", &t.Kind}} {
		text, ok := object[member.name].(string)
		if !ok || strings.TrimSpace(text) == "" {
			return nil, fmt.Sprintf("review_target in the context has no %s", member.name)
		}
		*member.into = text
	}
	return &t, ""
}

// human puts the node's question to a person and takes the way the answer says.
func (s *stage) human(ctx context.Context) (*Outcome, error) {
	g := s.humanGate()
	if len(g.choices) == 0 && g.freeform == nil {
		return failedWith(Deterministic, "No outgoing edges for human gate"), nil
	}
	q, refused := s.question(ctx, g)
	if refused != nil {
		return refused, nil
	}
	submit, late, err := s.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if late {
		return s.unanswered(q), nil
	}
	return g.resolve(s.node.ID, q, submit), nil
}

// unanswered is the outcome of a gate whose deadline passed.
func (s *stage) unanswered(q wire.Question) *Outcome {
	id, ok := s.node.Attrs.String("human.default_choice")
	if !ok || id == "" {
		o := failed(failureFromText("human gate timeout, no default"))
		o.retryRequested = true
		return o
	}
	o := gateOutcome(s.node.ID, q.Text, id, id, "timeout")
	o.PreferredLabel, o.SuggestedNext = id, []string{id}
	return o
}

// interview is what all events about a question say.
type interview struct {
	QuestionID string `json:"question_id"`
	Question   string `json:"question"`
	Stage      string `json:"stage,omitempty"`
	Answer     string `json:"answer,omitempty"`
	DurationMS int64  `json:"duration_ms"`
}

type interviewStarted struct {
	QuestionID     string                `json:"question_id"`
	Question       string                `json:"question"`
	Stage          string                `json:"stage"`
	Type           string                `json:"question_type"`
	Options        []wire.QuestionOption `json:"options,omitempty"`
	AllowFreeform  bool                  `json:"allow_freeform"`
	TimeoutSeconds *float64              `json:"timeout_seconds,omitempty"`
	ContextDisplay *string               `json:"context_display,omitempty"`
	ReviewTarget   *wire.ReviewTarget    `json:"review_target,omitempty"`
}

// ask puts a question on record, waits for its answer and records that. late says that the deadline passed first.
func (s *stage) ask(ctx context.Context, q wire.Question) (submit wire.SubmitAnswer, late bool, err error) {
	release := holdDeadlines(ctx)
	defer release()
	asked := s.r.clock.Now()
	about := AskInfo{StageID: s.id, NodeID: s.node.ID, ParallelBranchID: s.branch}
	bounded, stop := ctx, func() {}
	if timeout, ok := s.node.Attrs.Duration("timeout"); ok {
		about.Deadline = asked.Add(timeout)
		bounded, stop = s.r.withTimeout(ctx, timeout)
	}
	defer stop()
	started := s.event("interview.started", interviewStarted{
		q.ID, q.Text, q.Stage, q.Type, q.Options, q.AllowFreeform, q.TimeoutSeconds, q.ContextDisplay, q.ReviewTarget,
	})
	started.NodeLabel = s.node.ID
	if err := s.r.opened(ctx, started); err != nil {
		return submit, false, err
	}
	answer, err := s.answer(bounded, q, about)
	props := interview{QuestionID: q.ID, Question: q.Text, DurationMS: millis(s.r.clock.Now().Sub(asked))}
	switch {
	case err == nil:
		props.Answer = answerText(answer.Submit)
		completed := s.event("interview.completed", props)
		completed.NodeLabel, completed.Actor = s.node.ID, answer.Actor
		err = s.r.closed(ctx, completed)
		if answer.Done != nil {
			answer.Done(err)
		}
		return answer.Submit, false, err
	case ctx.Err() != nil:
		// As in Fabro, a cancelled run says nothing more about its question.
		return submit, false, errors.Join(errAborted, s.r.closed(ctx))
	case errors.Is(context.Cause(bounded), errTimeout):
		props.Stage = q.Stage
		timeout := s.event("interview.timeout", props)
		timeout.NodeLabel, timeout.Actor = s.node.ID, wire.System(wire.SystemTimeout)
		return submit, true, s.r.closed(ctx, timeout)
	}
	interrupted := s.event("interview.interrupted", struct {
		interview
		Reason string `json:"reason"`
	}{interview{QuestionID: q.ID, Question: q.Text, Stage: q.Stage, DurationMS: props.DurationMS}, err.Error()})
	interrupted.NodeLabel = s.node.ID
	failure := Failure{Message: "Human gate interrupted: " + err.Error(), Category: Deterministic}
	return submit, false, errors.Join(&stageError{failure: failure, final: true}, s.r.closed(ctx, interrupted))
}

// answer asks at the desk, or answers by itself when the run approves everything.
func (s *stage) answer(ctx context.Context, q wire.Question, about AskInfo) (Answer, error) {
	if !s.r.spec.AutoApprove {
		return s.r.desk.Ask(ctx, q, about)
	}
	switch {
	case q.Type == wire.QuestionYesNo || q.Type == wire.QuestionConfirmation:
		return Answer{Submit: wire.AnswerOfYes(true)}, nil
	case q.Type == wire.QuestionFreeform || len(q.Options) == 0:
		return Answer{Submit: wire.AnswerOfText("auto-approved")}, nil
	case q.Type == wire.QuestionMultiSelect:
		return Answer{Submit: wire.AnswerOfOptions(q.Options[0].Key)}, nil
	}
	return Answer{Submit: wire.AnswerOfOption(q.Options[0].Key)}, nil
}

// opened puts a new question on record; with the first open one the run is blocked.
func (r *runner) opened(ctx context.Context, started Event) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	events := []Event{started}
	if r.open == 0 {
		events = append(events, Event{Name: "run.blocked", Properties: map[string]any{"blocked_reason": wire.BlockedHumanInput}})
	}
	r.open++
	return r.append(ctx, events...)
}

// closed puts the end of a question on record; with the last open one the run goes on.
func (r *runner) closed(ctx context.Context, events ...Event) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	r.open--
	if r.open == 0 {
		events = append(events, Event{Name: "run.unblocked", Properties: none{}})
	}
	if len(events) == 0 {
		return nil
	}
	return r.append(ctx, events...)
}

// answerText is the answer as the record shows it.
func answerText(a wire.SubmitAnswer) string {
	switch a.Kind {
	case wire.AnswerSelected:
		return a.OptionKey
	case wire.AnswerMultiSelected:
		return strings.Join(a.OptionKeys, ", ")
	case wire.AnswerText:
		return a.Text
	}
	return a.Kind
}

// resolve finds the way that an answer takes.
func (g gate) resolve(node string, q wire.Question, a wire.SubmitAnswer) *Outcome {
	text := answerText(a)
	var picked []choice
	switch a.Kind {
	case wire.AnswerSelected, wire.AnswerMultiSelected:
		keys := a.OptionKeys
		if a.Kind == wire.AnswerSelected {
			keys = []string{a.OptionKey}
		}
		for _, key := range keys {
			if i := slices.IndexFunc(g.choices, func(c choice) bool { return c.key == key }); i >= 0 {
				picked = append(picked, g.choices[i])
			}
		}
	default:
		words := map[string][]string{wire.AnswerYes: {"y", "yes"}, wire.AnswerNo: {"n", "no"}}[a.Kind]
		if words == nil {
			words = []string{strings.ToLower(strings.TrimSpace(a.Text))}
		}
		for _, c := range g.choices {
			if slices.Contains(words, strings.ToLower(c.key)) || slices.Contains(words, strings.ToLower(c.label)) || slices.Contains(words, normalLabel(c.label)) {
				picked = append(picked, c)
				break
			}
		}
	}
	if len(picked) > 0 {
		return gateChosen(node, q.Text, picked, text)
	}
	if g.freeform != nil {
		o := gateOutcome(node, q.Text, "freeform", text, text)
		o.set("human.gate.text", text)
		o.SuggestedNext = []string{g.freeform.To}
		return o
	}
	switch {
	case a.Kind == wire.AnswerMultiSelected: // nothing chosen: the way of the first, and no choice on record
		o := gateOutcome(node, q.Text, "", "", text)
		o.SuggestedNext = []string{g.choices[0].to}
		return o
	case a.Kind == wire.AnswerNo && len(g.choices) > 1:
		return gateChosen(node, q.Text, g.choices[1:2], text)
	case a.Kind == wire.AnswerNo:
		return failedWith(Deterministic, `The answer "no" leads nowhere: the gate has one way out`)
	}
	return gateChosen(node, q.Text, g.choices[:1], text)
}

// gateChosen is the outcome of one or several choices. The first of them says where the run goes.
func gateChosen(node, question string, picked []choice, answer string) *Outcome {
	keys, labels := make([]string, len(picked)), make([]string, len(picked))
	for i, c := range picked {
		keys[i], labels[i] = c.key, c.label
	}
	o := gateOutcome(node, question, strings.Join(keys, ","), strings.Join(labels, ", "), answer)
	o.PreferredLabel, o.SuggestedNext = picked[0].label, []string{picked[0].to}
	return o
}

func gateOutcome(node, question, selected, label, answer string) *Outcome {
	o := succeeded("")
	o.set("human.gate.selected", selected)
	o.set("human.gate.label", label)
	o.set("human.gate."+node+".question", question)
	o.set("human.gate."+node+".answer", answer)
	o.set("human.gate."+node+".label", label)
	return o
}

// simulateHuman takes the first fixed choice, or else the way for free text, and asks nobody.
func (s *stage) simulateHuman(context.Context) (*Outcome, error) {
	g := s.humanGate()
	o := succeeded("[Simulated] " + s.node.ID)
	switch {
	case len(g.choices) > 0:
		first := g.choices[0]
		o.PreferredLabel, o.SuggestedNext = first.label, []string{first.to}
		o.set("human.gate.selected", first.key)
		o.set("human.gate.label", first.label)
	case g.freeform != nil:
		o.SuggestedNext = []string{g.freeform.To}
		o.set("human.gate.selected", "freeform")
		o.set("human.gate.label", "[Simulated] auto-selected")
	default:
		return failedWith(Deterministic, "No outgoing edges for human gate"), nil
	}
	return o, nil
}
