package wire

// Kinds of Question.Type.
const (
	QuestionYesNo          = "yes_no"
	QuestionMultipleChoice = "multiple_choice"
	QuestionMultiSelect    = "multi_select"
	QuestionFreeform       = "freeform"
	QuestionConfirmation   = "confirmation"
)

// Question is a question that a run puts to a person (ApiQuestion).
type Question struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Stage is the node id.
	Stage   string           `json:"stage"`
	Type    string           `json:"question_type"`
	Options []QuestionOption `json:"options"`
	// AllowFreeform means that a text answer is accepted besides the type's own.
	AllowFreeform  bool     `json:"allow_freeform"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	// ContextDisplay is text the person should see before answering.
	ContextDisplay *string       `json:"context_display,omitempty"`
	ReviewTarget   *ReviewTarget `json:"review_target,omitempty"`
}

// QuestionOption is one choice (InterviewOption).
type QuestionOption struct {
	Key         string  `json:"key"`
	Label       string  `json:"label"`
	Description *string `json:"description,omitempty"`
	Preview     *string `json:"preview,omitempty"`
}

// ReviewTarget is something to look at before answering. Kind is "document".
type ReviewTarget struct {
	Label string `json:"label"`
	URL   string `json:"url"`
	Kind  string `json:"kind"`
}

// Kinds of SubmitAnswer.Kind.
const (
	AnswerYes           = "yes"
	AnswerNo            = "no"
	AnswerSelected      = "selected"
	AnswerMultiSelected = "multi_selected"
	AnswerText          = "text"
)

// SubmitAnswer is the body of POST /runs/{id}/questions/{qid}/answer. Use the
// constructors below: each sets exactly the members of its kind.
type SubmitAnswer struct {
	Kind      string
	OptionKey string
	// OptionKeys may be empty: nothing selected is an answer too.
	OptionKeys []string
	Text       string
}

// AnswerOfYes answers yes_no and confirmation questions; yes=false is no.
func AnswerOfYes(yes bool) SubmitAnswer {
	if yes {
		return SubmitAnswer{Kind: AnswerYes}
	}
	return SubmitAnswer{Kind: AnswerNo}
}

// AnswerOfOption picks one option by key.
func AnswerOfOption(key string) SubmitAnswer {
	return SubmitAnswer{Kind: AnswerSelected, OptionKey: key}
}

// AnswerOfOptions picks any number of options by key.
func AnswerOfOptions(keys ...string) SubmitAnswer {
	return SubmitAnswer{Kind: AnswerMultiSelected, OptionKeys: keys}
}

// AnswerOfText is a free text answer.
func AnswerOfText(text string) SubmitAnswer { return SubmitAnswer{Kind: AnswerText, Text: text} }
