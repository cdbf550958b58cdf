package wire

import (
	"encoding/json"
	"fmt"
)

// MarshalJSON writes the members of the kind and no others.
func (a SubmitAnswer) MarshalJSON() ([]byte, error) {
	switch a.Kind {
	case AnswerSelected:
		return json.Marshal(struct {
			Kind      string `json:"kind"`
			OptionKey string `json:"option_key"`
		}{a.Kind, a.OptionKey})
	case AnswerMultiSelected:
		keys := a.OptionKeys
		if keys == nil {
			keys = []string{}
		}
		return json.Marshal(struct {
			Kind       string   `json:"kind"`
			OptionKeys []string `json:"option_keys"`
		}{a.Kind, keys})
	case AnswerText:
		return json.Marshal(struct {
			Kind string `json:"kind"`
			Text string `json:"text"`
		}{a.Kind, a.Text})
	case AnswerYes, AnswerNo:
		return json.Marshal(struct {
			Kind string `json:"kind"`
		}{a.Kind})
	}
	return nil, fmt.Errorf("unknown answer kind %q", a.Kind)
}

// UnmarshalJSON reads an answer and insists on a known kind and the member that
// the kind needs, because a server must refuse anything else.
func (a *SubmitAnswer) UnmarshalJSON(data []byte) error {
	var in struct {
		Kind       string    `json:"kind"`
		OptionKey  *string   `json:"option_key"`
		OptionKeys *[]string `json:"option_keys"`
		Text       *string   `json:"text"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	out := SubmitAnswer{Kind: in.Kind}
	switch in.Kind {
	case AnswerYes, AnswerNo:
	case AnswerSelected:
		if in.OptionKey == nil {
			return fmt.Errorf("missing field `option_key`")
		}
		out.OptionKey = *in.OptionKey
	case AnswerMultiSelected:
		if in.OptionKeys == nil {
			return fmt.Errorf("missing field `option_keys`")
		}
		out.OptionKeys = *in.OptionKeys
	case AnswerText:
		if in.Text == nil {
			return fmt.Errorf("missing field `text`")
		}
		out.Text = *in.Text
	default:
		return fmt.Errorf("unknown answer kind %q, expected yes, no, selected, multi_selected or text", in.Kind)
	}
	*a = out
	return nil
}
