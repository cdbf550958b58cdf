package runs_test

import (
	"strings"
	"testing"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/runs"

	"github.com/google/go-cmp/cmp"
)

func TestAnswer(t *testing.T) {
	options := []wire.QuestionOption{{Key: "P", Label: "Publish"}, {Key: "H", Label: "Hold back"}}
	choice := wire.Question{Type: wire.QuestionMultipleChoice, Options: options}
	prefixed := wire.Question{Type: wire.QuestionMultipleChoice, Options: []wire.QuestionOption{{Key: "Y", Label: "[Y] Publish"}, {Key: "N", Label: "[N] Not yet"}}}
	several := wire.Question{Type: wire.QuestionMultiSelect, Options: options}
	yes := wire.Question{Type: wire.QuestionYesNo}
	free := wire.Question{Type: wire.QuestionFreeform}
	both := wire.Question{Type: wire.QuestionMultipleChoice, Options: options, AllowFreeform: true}
	tests := []struct {
		name  string
		q     wire.Question
		typed string
		want  wire.SubmitAnswer
		err   string
	}{
		{"key", choice, "P", wire.AnswerOfOption("P"), ""},
		{"key in the other case", choice, "h", wire.AnswerOfOption("H"), ""},
		{"label", choice, "hold BACK", wire.AnswerOfOption("H"), ""},
		{"label without the key before it", prefixed, "publish", wire.AnswerOfOption("Y"), ""},
		{"no option", choice, "later", wire.SubmitAnswer{}, "P (Publish), H (Hold back)"},
		{"several", several, "P, hold back", wire.AnswerOfOptions("P", "H"), ""},
		{"one of several is wrong", several, "P,x", wire.SubmitAnswer{}, "separated by commas"},
		{"yes", yes, "Y", wire.AnswerOfYes(true), ""},
		{"no", yes, "no", wire.AnswerOfYes(false), ""},
		{"neither", yes, "perhaps", wire.SubmitAnswer{}, "yes or no"},
		{"text", free, " go on ", wire.AnswerOfText("go on"), ""},
		{"no text", free, " ", wire.SubmitAnswer{}, "a text"},
		{"text where options are offered too", both, "later", wire.AnswerOfText("later"), ""},
		{"option before text", both, "publish", wire.AnswerOfOption("P"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runs.Answer(tt.q, tt.typed)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v; want one with %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPick(t *testing.T) {
	a, b := wire.Question{ID: "a", Text: "A?"}, wire.Question{ID: "b", Text: "B?"}
	tests := []struct {
		name string
		open []wire.Question
		id   string
		want string
		err  string
	}{
		{"the only one", []wire.Question{a}, "", "a", ""},
		{"by id", []wire.Question{a, b}, "b", "b", ""},
		{"none", nil, "", "", "asks nothing"},
		{"which", []wire.Question{a, b}, "", "", "--question"},
		{"unknown id", []wire.Question{a, b}, "c", "", `"c"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runs.Pick(tt.open, tt.id)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v; want one with %q", err, tt.err)
			}
			if got.ID != tt.want {
				t.Errorf("picked %q, want %q", got.ID, tt.want)
			}
		})
	}
}
