package tools

import (
	"encoding/json"
	"slices"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/args"
)

// Actions of fabro_run_interact.
const (
	actGet          = "get"
	actStart        = "start"
	actApprove      = "approve"
	actDeny         = "deny"
	actMessage      = "message"
	actInterrupt    = "interrupt"
	actCancel       = "cancel"
	actArchive      = "archive"
	actUnarchive    = "unarchive"
	actLinkParent   = "link_parent"
	actUnlinkParent = "unlink_parent"
	actQuestions    = "get_questions"
	actAnswer       = "answer"
)

// interactActions are all of them, in Fabro's order.
var interactActions = []string{actGet, actStart, actApprove, actDeny, actMessage, actInterrupt, actCancel, actArchive, actUnarchive,
	actLinkParent, actUnlinkParent, actQuestions, actAnswer}

// interactParams are the arguments of fabro_run_interact.
type interactParams struct {
	Action     string
	RunID      string
	ParentID   string
	Reason     string
	Message    string
	Interrupt  args.Opt[bool]
	QuestionID string
	Answer     args.Opt[wire.SubmitAnswer]
}

func (p *interactParams) fields() args.Fields {
	return args.Fields{
		{Name: "action", Required: true, Type: args.Text(&p.Action).OneOf(interactActions...),
			Doc: "What to do with the run. interrupt cancels the current round of the active agent and parks it until a message or a cancel; to redirect an agent prefer message, if need be with interrupt true."},
		{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc},
		{Name: "parent_id", Type: args.Text(&p.ParentID).Trimmed(), Doc: "The new parent run; required for link_parent."},
		{Name: "reason", Type: args.Text(&p.Reason).Trimmed(), Doc: "Why the run is denied; only for deny."},
		{Name: "message", Type: args.Text(&p.Message).Trimmed().Max(wire.MaxSteerLength), Doc: "Text for the running agent; required for message."},
		{Name: "interrupt", Type: args.Flag(&p.Interrupt).Default(false), Doc: "With message: also cancel the agent's current round."},
		{Name: "question_id", Type: args.Text(&p.QuestionID).Trimmed(), Doc: "The question; for answer. Without it, where the host can show forms, the person chooses."},
		{Name: "answer", Type: answerType{&p.Answer}, Doc: "For answer: true or false for yes/no, {\"option\":key} for one choice, {\"options\":[key,…]} for several, a string or {\"text\":…} for free text. Without it the person is asked, where the host can show forms."},
	}
}

// check holds the rules across fields. What answer needs beyond them depends on
// whether the host can ask its user, see interactParams.missing.
func (p *interactParams) check() error {
	switch {
	case p.Reason != "" && p.Action != actDeny:
		return args.Errorf("reason is only valid for action deny")
	case p.Action == actMessage && p.Message == "":
		return args.Errorf("message is required for action message")
	case p.Action == actLinkParent && p.ParentID == "":
		return args.Errorf("parent_id is required for action link_parent")
	}
	return nil
}

// missing is the error of an answer that lacks something a person could give.
func (p *interactParams) missing() error {
	switch {
	case p.Action != actAnswer:
		return nil
	case p.QuestionID == "":
		return args.Errorf("question_id is required for action answer")
	case !p.Answer.Set:
		return args.Errorf("answer is required for action answer")
	}
	return nil
}

// mutates reports whether the action changes something.
func (p *interactParams) mutates() bool { return p.Action != actGet && p.Action != actQuestions }

// answerType is a boolean, a string, or an object with exactly one of option,
// options and text.
type answerType struct{ to *args.Opt[wire.SubmitAnswer] }

func (t answerType) Schema(b []byte, nullable bool) []byte {
	b = append(b, `"anyOf":[{"type":"boolean"},{"type":"string"},`+
		`{"type":"object","properties":{"option":{"type":"string"}},"required":["option"],"additionalProperties":false},`+
		`{"type":"object","properties":{"options":{"type":"array","items":{"type":"string"}}},"required":["options"],"additionalProperties":false},`+
		`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`...)
	if nullable {
		b = append(b, `,{"type":"null"}`...)
	}
	return append(b, ']')
}

func (t answerType) Decode(at string, value json.RawMessage) error {
	answer, err := decodeAnswer(at, value)
	if err != nil {
		return err
	}
	*t.to = args.Opt[wire.SubmitAnswer]{Value: answer, Set: true}
	return nil
}

func (t answerType) Finish(string) error { return nil }

func decodeAnswer(at string, value json.RawMessage) (wire.SubmitAnswer, error) {
	var none wire.SubmitAnswer
	switch args.Kind(value) {
	case "boolean":
		var yes bool
		if err := json.Unmarshal(value, &yes); err != nil {
			return none, args.Errorf("%s must be true or false, got %s", at, args.Show(value))
		}
		return wire.AnswerOfYes(yes), nil
	case "string":
		text, err := args.String(at, value)
		return wire.AnswerOfText(text), err
	case "object":
	default:
		return none, args.Errorf("unsupported answer value: %s; expected boolean, string, or object", args.Show(value))
	}
	members, err := args.Members(value)
	if err != nil {
		return none, args.Errorf("answer is not a valid JSON object: %v", err)
	}
	known := []string{"option", "options", "text"}
	for _, name := range members.Names() {
		if !slices.Contains(known, name) {
			return none, args.Errorf("unknown field %q; answer object must contain one of: option, options, text", at+"."+name)
		}
	}
	if len(members) == 0 {
		return none, args.Errorf("answer object must contain one of: option, options, text")
	}
	if len(members) > 1 {
		return none, args.Errorf("answer object must contain only one of: option, options, text")
	}
	switch given := members[0].Value; members[0].Name {
	case "option":
		key, err := args.String("answer option", given)
		return wire.AnswerOfOption(key), err
	case "text":
		text, err := args.String("answer text", given)
		return wire.AnswerOfText(text), err
	default:
		var list args.Opt[[]string]
		if args.Kind(given) != "array" {
			return none, args.Errorf("answer options must be strings, got %s", args.Show(given))
		}
		if err := args.List(&list, 0, 0).Decode("answer options", given); err != nil {
			return none, err
		}
		return wire.AnswerOfOptions(list.Value...), nil
	}
}
