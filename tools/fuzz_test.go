package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzArguments gives any JSON to every tool's decoder: it never panics, and every
// refusal is a sentence.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"runs":["x",{"workflow":"y","inputs":{"a":1}}]}`, `{"run_id":"x","action":"answer","question_id":"q","answer":{"options":["a"]}}`,
		`{"run_ids":["a"],"timeout_seconds":1e2,"until":"attention"}`, `{"first":-0.0,"created_after":"2026-02-30","labels":{"\u0000":""}}`, `[1]`, `"\ud800"`, `{"a":{"a":{"a":[[[]]]}}}`} {
		f.Add([]byte(seed))
	}
	tools := catalogue(false)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		if !json.Valid(arguments) {
			t.Skip("the protocol refuses what is not JSON")
		}
		for _, tool := range tools {
			op := tool.make()
			err := op.fields().Decode(arguments)
			if err == nil {
				err = op.check()
			}
			if err != nil && (len(err.Error()) < 8 || !utf8.ValidString(err.Error())) {
				t.Errorf("%s refuses %q with %q", tool.name, arguments, err)
			}
		}
	})
}

// FuzzParseURI: what is read as an address leads to one place only.
func FuzzParseURI(f *testing.F) {
	for _, seed := range []string{"fabro://server", "fabro://runs/x/logs/a@1", "fabro://runs/%2e%2e/state", "fabro://workflows/%2F", "fabro://runs//state"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		a, ok := parseURI(uri)
		if !ok {
			return
		}
		for _, part := range []string{a.id, a.sub} {
			if strings.ContainsAny(part, "/\\\x00") || part == "." || part == ".." {
				t.Errorf("%q leads to %+v", uri, a)
			}
		}
	})
}
