// Package runs shows the runs of a Fabro server to a person at a terminal, and
// takes the person's answers. It is the inside of `fabro run`.
package runs

import (
	"fmt"
	"strings"

	"fabro-mcp/fabroapi/wire"
)

// Answer turns what a person typed into the answer that the question takes:
// yes or no, the key or label of an option, several of them separated by commas,
// or text. The error names what could have been typed.
func Answer(q wire.Question, typed string) (wire.SubmitAnswer, error) {
	typed = strings.TrimSpace(typed)
	switch q.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		switch strings.ToLower(typed) {
		case "y", "yes", "true":
			return wire.AnswerOfYes(true), nil
		case "n", "no", "false":
			return wire.AnswerOfYes(false), nil
		}
	case wire.QuestionMultipleChoice:
		if key, ok := option(q, typed); ok {
			return wire.AnswerOfOption(key), nil
		}
	case wire.QuestionMultiSelect:
		var keys []string
		for _, word := range strings.Split(typed, ",") {
			key, ok := option(q, strings.TrimSpace(word))
			if !ok {
				keys = nil
				break
			}
			keys = append(keys, key)
		}
		if keys != nil {
			return wire.AnswerOfOptions(keys...), nil
		}
	}
	if (q.Type == wire.QuestionFreeform || q.AllowFreeform) && typed != "" {
		return wire.AnswerOfText(typed), nil
	}
	return wire.SubmitAnswer{}, fmt.Errorf("%q does not answer %q: %s", Plain(typed), Plain(q.Text), Expected(q))
}

// option finds an option by key or label, ignoring case. An exact key wins.
func option(q wire.Question, typed string) (string, bool) {
	for _, o := range q.Options {
		if o.Key == typed {
			return o.Key, true
		}
	}
	for _, o := range q.Options {
		if strings.EqualFold(o.Key, typed) || strings.EqualFold(o.Label, typed) || strings.EqualFold(shownLabel(o), typed) {
			return o.Key, true
		}
	}
	return "", false
}

// shownLabel is an option's label without the key that a graph writes before it.
func shownLabel(o wire.QuestionOption) string {
	if label, ok := strings.CutPrefix(o.Label, "["+o.Key+"]"); ok {
		return strings.TrimSpace(label)
	}
	return o.Label
}

// Expected says in words what a question takes.
func Expected(q wire.Question) string {
	var options []string
	for _, o := range q.Options {
		options = append(options, Plain(o.Key+" ("+shownLabel(o)+")"))
	}
	switch q.Type {
	case wire.QuestionYesNo, wire.QuestionConfirmation:
		return "answer yes or no"
	case wire.QuestionMultipleChoice:
		return "answer with one of " + strings.Join(options, ", ")
	case wire.QuestionMultiSelect:
		return "answer with some of " + strings.Join(options, ", ") + ", separated by commas"
	}
	return "answer with a text"
}

// Pick finds the question to answer: the one of that id, or the only open one.
func Pick(open []wire.Question, id string) (wire.Question, error) {
	for _, q := range open {
		if q.ID == id {
			return q, nil
		}
	}
	switch {
	case len(open) == 0:
		return wire.Question{}, fmt.Errorf("the run asks nothing at the moment")
	case id == "" && len(open) == 1:
		return open[0], nil
	}
	var list []string
	for _, q := range open {
		list = append(list, fmt.Sprintf("  %s  %s", q.ID, Plain(q.Text)))
	}
	if id != "" {
		return wire.Question{}, fmt.Errorf("no open question has the id %q; open are\n%s", id, strings.Join(list, "\n"))
	}
	return wire.Question{}, fmt.Errorf("the run asks %d questions; name one with --question\n%s", len(open), strings.Join(list, "\n"))
}
