package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/plain"
)

// Properties of the form of a question.
const (
	formAnswer = "answer"
	formText   = "text"
	// formOption, with a number from 1, is one option of several-of-many for hosts
	// whose forms know no lists.
	formOption = "option_"
)

// formProperty is one field of a form, in the shape of 2025-11-25.
type formProperty struct {
	Type        string       `json:"type"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MinLength   int          `json:"minLength,omitempty"`
	OneOf       []formChoice `json:"oneOf,omitempty"`
	Items       *formItems   `json:"items,omitempty"`
}

type formItems struct {
	AnyOf []formChoice `json:"anyOf"`
}

type formChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// formSchema has no title of its own: hosts refuse one.
type formSchema struct {
	Type       string                  `json:"type"`
	Properties map[string]formProperty `json:"properties"`
	Required   []string                `json:"required,omitempty"`
}

func (s formSchema) raw() (json.RawMessage, error) { return json.Marshal(s) }

// questionForm shows a question of a run as a form. lists tells whether the host's
// forms may hold a list of choices; without, each option is a yes or no of its own.
func questionForm(run *wire.Run, q *wire.Question, lists bool) (protocol.ElicitForm, error) {
	schema := formSchema{Type: "object", Properties: map[string]formProperty{}, Required: []string{formAnswer}}
	choices := options(q)
	if q.Type == wire.QuestionMultipleChoice && len(choices) == 0 {
		return protocol.ElicitForm{}, fmt.Errorf("question %s offers no options", q.ID)
	}
	answer := formProperty{Title: "Answer"}
	switch q.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		answer.Type = "boolean"
		answer.Title = "Yes"
		answer.Description = "Checked or true: yes. Unchecked or false: no."
	case wire.QuestionMultipleChoice:
		answer.Type = "string"
		answer.OneOf = formChoices(choices)
	case wire.QuestionMultiSelect:
		if !lists {
			schema.Required = nil
			for i, o := range choices {
				property := formProperty{Type: "boolean", Title: plain.Line(o.Label, maxOptionText)}
				if o.Description != nil {
					property.Description = plain.Line(*o.Description, maxOptionText)
				}
				schema.Properties[formOption+strconv.Itoa(i+1)] = property
			}
			break
		}
		answer.Type = "array"
		answer.Items = &formItems{AnyOf: formChoices(choices)}
	default:
		answer.Type = "string"
		answer.MinLength = 1
	}
	if answer.Type != "" {
		schema.Properties[formAnswer] = answer
	}
	if q.AllowFreeform && q.Type != wire.QuestionFreeform {
		schema.Required = nil
		schema.Properties[formText] = formProperty{Type: "string", Title: "Or in your own words", Description: "If filled in, this is sent instead of the choice."}
	}
	raw, err := schema.raw()
	return protocol.ElicitForm{Message: formMessage(run, q, choices), Schema: raw}, err
}

func formChoices(choices []wire.QuestionOption) []formChoice {
	out := make([]formChoice, len(choices))
	for i, o := range choices {
		out[i] = formChoice{Const: o.Key, Title: plain.Line(o.Label, maxOptionText)}
	}
	return out
}

// formMessage is what the person reads above the form.
func formMessage(run *wire.Run, q *wire.Question, choices []wire.QuestionOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The run %s of %s asks at stage %q:\n\n%s", run.ID, workflowLabel(run), plain.Line(q.Stage, 80),
		plain.Clip(strings.TrimSpace(plain.Clean(q.Text)), maxQuestionText))
	if q.ContextDisplay != nil && strings.TrimSpace(*q.ContextDisplay) != "" {
		fmt.Fprintf(&b, "\n\nContext given by the run:\n%s", plain.Clip(strings.TrimSpace(plain.Clean(*q.ContextDisplay)), maxQuestionContext))
	}
	for _, o := range choices {
		for _, detail := range []*string{o.Description, o.Preview} {
			if detail != nil && strings.TrimSpace(*detail) != "" {
				fmt.Fprintf(&b, "\n- %s: %s", plain.Line(o.Label, 80), plain.Line(*detail, maxOptionText))
			}
		}
	}
	if t := q.ReviewTarget; t != nil {
		fmt.Fprintf(&b, "\n\nTo review: %s, %s", plain.Line(t.Label, 200), plain.Line(t.URL, 2048))
	}
	if q.TimeoutSeconds != nil {
		fmt.Fprintf(&b, "\n\nThe run waits %s seconds for the answer.", strconv.FormatFloat(*q.TimeoutSeconds, 'f', -1, 64))
	}
	return b.String()
}

// formAnswerOf turns what a person filled in into an answer of the API. The error
// says what is wrong with it.
func formAnswerOf(q *wire.Question, content map[string]any) (wire.SubmitAnswer, error) {
	var none wire.SubmitAnswer
	if text, ok := content[formText].(string); ok && q.AllowFreeform && strings.TrimSpace(text) != "" {
		return wire.AnswerOfText(text), nil
	}
	value, given := content[formAnswer]
	choices := options(q)
	known := func(key string) bool {
		return slices.ContainsFunc(choices, func(o wire.QuestionOption) bool { return o.Key == key })
	}
	switch q.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		if yes, ok := value.(bool); ok {
			return wire.AnswerOfYes(yes), nil
		}
	case wire.QuestionMultipleChoice:
		if key, ok := value.(string); ok && known(key) {
			return wire.AnswerOfOption(key), nil
		}
	case wire.QuestionMultiSelect:
		keys, ok := chosenKeys(content, value, given, choices)
		if ok && !slices.ContainsFunc(keys, func(k string) bool { return !known(k) }) {
			return wire.AnswerOfOptions(keys...), nil
		}
	default:
		if text, ok := value.(string); ok && strings.TrimSpace(text) != "" {
			return wire.AnswerOfText(text), nil
		}
	}
	if !given {
		return none, fmt.Errorf("the form came back without an answer to question %s", q.ID)
	}
	return none, fmt.Errorf("%s is no answer to question %s (%s)", plain.Clip(compact(value), 200), q.ID, q.Type)
}

// chosenKeys reads several-of-many from a list, or from one boolean an option.
func chosenKeys(content map[string]any, value any, given bool, choices []wire.QuestionOption) ([]string, bool) {
	keys := []string{}
	if given {
		list, ok := value.([]any)
		if !ok {
			if strs, isStrings := value.([]string); isStrings {
				return strs, true
			}
			return nil, false
		}
		for _, item := range list {
			key, ok := item.(string)
			if !ok {
				return nil, false
			}
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		return keys, true
	}
	for i, o := range choices {
		if on, ok := content[formOption+strconv.Itoa(i+1)].(bool); ok && on {
			keys = append(keys, o.Key)
		}
	}
	return keys, true
}
