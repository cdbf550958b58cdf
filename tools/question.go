package tools

import (
	"encoding/json"
	"fmt"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/plain"
)

// waitingFor is an open question in a result.
type waitingFor struct {
	RunID         string          `json:"run_id"`
	QuestionID    string          `json:"question_id"`
	Question      string          `json:"question"`
	Type          string          `json:"question_type"`
	Stage         string          `json:"stage"`
	Options       []waitingOption `json:"options"`
	AllowFreeform bool            `json:"allow_freeform"`
	Context       *string         `json:"context"`
	NextCall      *suggestedCall  `json:"next_call"`
}

type waitingOption struct {
	Key         string  `json:"key"`
	Label       string  `json:"label"`
	Description *string `json:"description"`
}

// suggestedCall is a tool call that a model can make as it stands; where the
// arguments hold a choice it is an example.
type suggestedCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

const waitingSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"question_id":{"type":"string"},"question":{"type":"string"},` +
	`"question_type":{"type":"string","description":"yes_no, confirmation, multiple_choice, multi_select or freeform"},"stage":{"type":"string"},` +
	`"options":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"label":{"type":"string"},"description":` + nullableString + `},"required":["key","label"]}},` +
	`"allow_freeform":{"type":"boolean"},"context":` + nullableString + `,` +
	`"next_call":{"type":["object","null"],"description":"The call that answers it, with an example answer","properties":{"tool":{"type":"string"},"arguments":{"type":"object"}},"required":["tool","arguments"]}},` +
	`"required":["run_id","question_id","question","question_type","stage","options","allow_freeform","context","next_call"]}`

// Bounds on what a question shows, in bytes.
const (
	maxQuestionText    = 2_000
	maxQuestionContext = 4_000
	maxOptionText      = 300
)

// options are the choices of a question, each key once: a server accepts a key,
// so a second option of the same key cannot be chosen.
func options(q *wire.Question) []wire.QuestionOption {
	seen := make(map[string]bool, len(q.Options))
	out := make([]wire.QuestionOption, 0, len(q.Options))
	for _, o := range q.Options {
		if seen[o.Key] {
			continue
		}
		seen[o.Key] = true
		if strings.TrimSpace(o.Label) == "" {
			o.Label = o.Key
		}
		out = append(out, o)
	}
	return out
}

func (h *host) waiting(runID string, q *wire.Question) waitingFor {
	w := waitingFor{
		RunID: runID, QuestionID: q.ID, Question: plain.Clip(plain.Clean(q.Text), maxQuestionText), Type: q.Type, Stage: q.Stage,
		Options: []waitingOption{}, AllowFreeform: q.AllowFreeform,
	}
	for _, o := range options(q) {
		option := waitingOption{Key: o.Key, Label: plain.Line(o.Label, maxOptionText)}
		if o.Description != nil {
			text := plain.Line(*o.Description, maxOptionText)
			option.Description = &text
		}
		w.Options = append(w.Options, option)
	}
	if q.ContextDisplay != nil {
		text := plain.Clip(plain.Clean(*q.ContextDisplay), maxQuestionContext)
		w.Context = &text
	}
	if h.offers(nameInteract) {
		w.NextCall = &suggestedCall{Tool: nameInteract, Arguments: map[string]any{
			"action": actAnswer, "run_id": runID, "question_id": q.ID, "answer": exampleAnswer(q),
		}}
	}
	return w
}

// bareLabel is a label without a key in front that is shown beside it anyway:
// "[P] Publish", "P) Publish" and "P - Publish" are all "Publish". Forms show labels
// as they are.
func bareLabel(key, label string) string {
	for _, prefix := range []string{"[" + key + "]", key + ")", key + " - "} {
		if len(label) > len(prefix) && strings.EqualFold(label[:len(prefix)], prefix) {
			if bare := strings.TrimSpace(label[len(prefix):]); bare != "" {
				return bare
			}
		}
	}
	return label
}

// exampleAnswer has the shape that the question takes.
func exampleAnswer(q *wire.Question) any {
	choices := options(q)
	switch q.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		return true
	case wire.QuestionMultipleChoice:
		if len(choices) > 0 {
			return map[string]any{"option": choices[0].Key}
		}
	case wire.QuestionMultiSelect:
		keys := []string{}
		for _, o := range choices[:min(2, len(choices))] {
			keys = append(keys, o.Key)
		}
		return map[string]any{"options": keys}
	}
	return map[string]any{"text": "…"}
}

// pageQuestion writes a question and how to answer it.
func (h *host) pageQuestion(p *plain.Page, w *waitingFor) {
	p.Line("%s waits for a person at stage %q, question %s (%s):", w.RunID, plain.Line(w.Stage, 80), w.QuestionID, w.Type)
	var b strings.Builder
	b.WriteString(w.Question)
	for _, o := range w.Options {
		fmt.Fprintf(&b, "\n- %s: %s", plain.Line(o.Key, 80), bareLabel(o.Key, o.Label))
		if o.Description != nil && *o.Description != "" {
			fmt.Fprintf(&b, " (%s)", *o.Description)
		}
	}
	if w.AllowFreeform {
		b.WriteString("\n- or free text")
	}
	p.Quote("Question", b.String())
	if w.Context != nil {
		p.Quote("Its context", *w.Context)
	}
	if w.NextCall != nil {
		p.Line("Ask the person, then answer with: %s %s", w.NextCall.Tool, compact(w.NextCall.Arguments))
		p.Line("%s", answerShapes(w))
	}
}

// answerShapes says what may stand in the place of the example answer.
func answerShapes(w *waitingFor) string {
	var s string
	switch w.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		s = "The answer is true or false"
	case wire.QuestionMultipleChoice:
		s = `The answer is {"option": one of the keys}`
	case wire.QuestionMultiSelect:
		s = `The answer is {"options": [any of the keys]}`
	default:
		return `The answer is {"text": "what the person says"}.`
	}
	if w.AllowFreeform {
		s += `, or {"text": "what the person says"}`
	}
	return s + "."
}

// compact renders v as JSON for a text. encoding/json sorts the members of a map;
// the values here always encode.
func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}
