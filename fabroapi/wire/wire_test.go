package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

func TestRunStatus(t *testing.T) {
	tests := []struct {
		status   wire.RunStatus
		json     string
		text     string
		column   string
		terminal bool
	}{
		{wire.RunStatus{Kind: "running"}, `{"kind":"running"}`, "running", "running", false},
		{wire.RunStatus{Kind: "submitted"}, `{"kind":"submitted"}`, "submitted", "pending", false},
		{wire.RunStatus{Kind: "pending", Reason: "approval_required"}, `{"kind":"pending","reason":"approval_required"}`, "pending(approval_required)", "pending", false},
		{wire.RunStatus{Kind: "starting"}, `{"kind":"starting"}`, "starting", "initializing", false},
		{wire.RunStatus{Kind: "blocked", BlockedReason: "human_input_required"}, `{"kind":"blocked","blocked_reason":"human_input_required"}`, "blocked(human_input_required)", "blocked", false},
		{wire.RunStatus{Kind: "paused"}, `{"kind":"paused","prior_block":null}`, "paused", "running", false},
		{wire.RunStatus{Kind: "paused", PriorBlock: "human_input_required"}, `{"kind":"paused","prior_block":"human_input_required"}`, "paused(human_input_required)", "running", false},
		{wire.RunStatus{Kind: "failed", Reason: "cancelled"}, `{"kind":"failed","reason":"cancelled"}`, "failed(cancelled)", "failed", true},
		{wire.RunStatus{Kind: "succeeded", Reason: "completed"}, `{"kind":"succeeded","reason":"completed"}`, "succeeded(completed)", "succeeded", true},
		{wire.RunStatus{Kind: "dead"}, `{"kind":"dead"}`, "dead", "failed", true},
		{wire.RunStatus{Kind: "of_a_newer_server", Reason: "x"}, `{"kind":"of_a_newer_server","reason":"x"}`, "of_a_newer_server", "of_a_newer_server", false},
	}
	for _, test := range tests {
		text, err := json.Marshal(test.status)
		if err != nil || string(text) != test.json {
			t.Errorf("%v: %s, %v", test.status, text, err)
		}
		var back wire.RunStatus
		if err := json.Unmarshal(text, &back); err != nil || back != test.status {
			t.Errorf("%s: %v, %v", text, back, err)
		}
		if test.status.String() != test.text || test.status.Terminal() != test.terminal || wire.Column(test.status.Kind) != test.column {
			t.Errorf("%v: %s, %v, %s", test.status, test.status, test.status.Terminal(), wire.Column(test.status.Kind))
		}
	}
}

func TestSubmitAnswer(t *testing.T) {
	tests := []struct {
		answer wire.SubmitAnswer
		json   string
	}{
		{wire.AnswerOfYes(true), `{"kind":"yes"}`},
		{wire.AnswerOfYes(false), `{"kind":"no"}`},
		{wire.AnswerOfOption("A"), `{"kind":"selected","option_key":"A"}`},
		{wire.AnswerOfOptions("A", "B"), `{"kind":"multi_selected","option_keys":["A","B"]}`},
		{wire.AnswerOfText(""), `{"kind":"text","text":""}`},
	}
	for _, test := range tests {
		text, err := json.Marshal(test.answer)
		if err != nil || string(text) != test.json {
			t.Errorf("%v: %s, %v", test.answer, text, err)
		}
		var back wire.SubmitAnswer
		if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(back, test.answer) {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	if text, err := json.Marshal(wire.AnswerOfOptions()); err != nil || string(text) != `{"kind":"multi_selected","option_keys":[]}` {
		t.Errorf("nothing selected: %s, %v", text, err)
	}
	if _, err := json.Marshal(wire.SubmitAnswer{}); err == nil {
		t.Error("an answer without a kind was written")
	}
	for text, want := range map[string]string{
		`{}`:                               "unknown answer kind",
		`{"kind":"maybe"}`:                 "unknown answer kind",
		`{"kind":"selected"}`:              "option_key",
		`{"kind":"multi_selected"}`:        "option_keys",
		`{"kind":"text"}`:                  "text",
		`{"kind":"text","text":1}`:         "cannot unmarshal",
		`{"kind":"selected","text":"yes"}`: "option_key",
	} {
		var answer wire.SubmitAnswer
		if err := json.Unmarshal([]byte(text), &answer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestEventEnvelope(t *testing.T) {
	event := wire.EventEnvelope{Seq: 1, ID: "i", TS: time.Date(2026, 8, 1, 12, 0, 0, 5000, time.FixedZone("", 0)), RunID: "r", Event: "run.created", Actor: wire.Worker("r")}
	want := `{"seq":1,"id":"i","ts":"2026-08-01T12:00:00.000005Z","run_id":"r","event":"run.created","actor":{"kind":"worker","run_id":"r"},"properties":{}}`
	if text, err := json.Marshal(event); err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	if wire.Category("stage.completed") != "stage" || wire.Category("plain") != "plain" {
		t.Error("categories")
	}
}

func TestStageID(t *testing.T) {
	tests := []struct {
		id    string
		node  string
		visit int
		fails string
	}{
		{"build@1", "build", 1, ""},
		{"a@b@12", "a@b", 12, ""},
		{"build", "", 0, "must contain '@'"},
		{"@1", "", 0, "node_id must not be empty"},
		{"build@", "", 0, "visit suffix must not be empty"},
		{"build@x", "", 0, "invalid stage id visit"},
		{"build@-1", "", 0, "invalid stage id visit"},
		{"build@0", "", 0, "greater than zero"},
		{"build@4294967296", "", 0, "invalid stage id visit"},
	}
	for _, test := range tests {
		node, visit, err := wire.ParseStageID(test.id)
		if node != test.node || visit != test.visit || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%q: %q, %d, %v", test.id, node, visit, err)
		}
		if err == nil && wire.StageID(node, visit) != test.id {
			t.Errorf("%q: back: %s", test.id, wire.StageID(node, visit))
		}
	}
}
