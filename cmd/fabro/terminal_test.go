package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"fabro-mcp/internal/mcpclient"

	"github.com/google/go-cmp/cmp"
)

func TestTerminalAnswer(t *testing.T) {
	const options = `{"type":"object","properties":{"answer":{"type":"string","oneOf":[{"const":"P","title":"Publish"},{"const":"H","title":"Hold back"}]}},"required":["answer"]}`
	tests := []struct {
		name, schema, typed string
		want                mcpclient.Answer
	}{
		{"by number", options, "2\n", mcpclient.Answer{Action: "accept", Content: map[string]any{"answer": "H"}}},
		{"by title, after a mistake", options, "x\nhold back\n", mcpclient.Answer{Action: "accept", Content: map[string]any{"answer": "H"}}},
		{"an empty line declines", options, "\n", mcpclient.Answer{Action: "decline"}},
		{"the end of input declines", options, "", mcpclient.Answer{Action: "decline"}},
		{"older enum with names", `{"properties":{"a":{"type":"string","enum":["p","h"],"enumNames":["Publish","Hold"]}},"required":["a"]}`, "Publish\n",
			mcpclient.Answer{Action: "accept", Content: map[string]any{"a": "p"}}},
		{"several", `{"properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"}]}}},"required":["a"]}`, "1 y\n",
			mcpclient.Answer{Action: "accept", Content: map[string]any{"a": []string{"x", "y"}}}},
		{"yes", `{"properties":{"a":{"type":"boolean"}},"required":["a"]}`, "maybe\ny\n", mcpclient.Answer{Action: "accept", Content: map[string]any{"a": true}}},
		{"number", `{"properties":{"a":{"type":"integer"}},"required":["a"]}`, "7\n", mcpclient.Answer{Action: "accept", Content: map[string]any{"a": 7.0}}},
		{"an optional field may stay empty", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`, "text\n\n",
			mcpclient.Answer{Action: "accept", Content: map[string]any{"a": "text"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := terminal{in: strings.NewReader(tt.typed), out: io.Discard}.answer(t.Context(), mcpclient.Question{Schema: json.RawMessage(tt.schema)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
