package workflow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConditions(t *testing.T) {
	values := map[string]any{
		"outcome": "succeeded", "preferred_label": "Ship it", "mode": "fast", "context.x": "literal", "x": "short",
		"n": 3.0, "zero": 0, "yes": true, "no": false, "null": nil, "empty": "", "list": []any{"a", 2.0},
		"object": map[string]any{"a": 1.0, "lt": "<"}, "raw": json.RawMessage(`["q",{"z":1}]`), "big": json.Number("12345678901234567890"),
		"contains": "word", "output": "line\nPASS 12\n",
	}
	cases := []struct {
		text string
		want bool
	}{
		{"", true},
		{"   ", true},
		{"outcome=succeeded", true},
		{"outcome = succeeded", true},
		{"outcome=failed", false},
		{"outcome!=failed", true},
		{`preferred_label="Ship it"`, true},
		{"outcome=succeeded && context.mode=fast", true},
		{"outcome=failed && mode=fast || yes", true},
		{"outcome=failed || mode=slow", false},
		{"!no", true},
		{"!!yes", true},
		{"!!!yes", false},
		{"! outcome = failed && mode = fast", true},
		{"context.x=literal", true},
		{"context.mode", true},
		{"context.missing", false},
		{"zero", false},
		{"no", false},
		{"null", false},
		{"missing=", true},
		{"empty= && yes", true},
		{"mode!=", true},
		{"n > 2", true},
		{"n>=3 && n<=3", true},
		{"n < 3", false},
		{"mode > 1", false},
		{"mode < 1", false},
		{"n=3", true},
		{"list contains a", true},
		{"list contains 2", true},
		{"list contains b", false},
		{"raw contains q", true},
		{"output contains PASS", true},
		{`output matches "PASS \d+"`, true},
		{`output matches ^PASS`, false},
		{`output matches (?m)^PASS`, true},
		{`object="{\"a\":1,\"lt\":\"<\"}"`, true},
		{"big=12345678901234567890", true},
		{"contains", true},
		{"contains contains or", true},
		{"matches", false},
		{"mode=contains", false},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			condition, err := ParseCondition(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := condition.Eval(func(key string) (any, bool) { v, ok := values[key]; return v, ok }); got != c.want {
				t.Errorf("%q is %v", c.text, got)
			}
		})
	}
}

func TestConditionErrors(t *testing.T) {
	cases := []struct{ text, want string }{
		{"&& a", "expected a key such as outcome or context.name, found `&&` (at character 1 of the condition)"},
		{"a &&", "expected a key such as outcome or context.name, found the end (at character 5 of the condition)"},
		{"a & b", "a single `&` is no operator; write it twice (at character 3 of the condition)"},
		{"a == b", "equality is written with a single = (at character 4 of the condition)"},
		{"a >", "expected a value after `>`, found the end (at character 4 of the condition)"},
		{"a contains", "expected a value after `contains`, found the end (at character 11 of the condition)"},
		{"a b", "expected && or ||, found `b` (at character 3 of the condition)"},
		{"a=b c", "expected && or ||, found `c`; a value with spaces needs quotes (at character 5 of the condition)"},
		{`a="b`, "a quote is never closed (at character 3 of the condition)"},
		{"(a || b)", "conditions have no parentheses; && binds tighter than || (at character 1 of the condition)"},
		{"a matches [", "bad regular expression \"[\": missing closing ]: `[` (at character 11 of the condition)"},
		{"ä !", "expected && or ||, found `!` (at character 3 of the condition)"},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			_, err := ParseCondition(c.text)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A condition costs what its length costs, however it is nested.
func TestDeepConditions(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("!", 1_000_000/scale) + "a",
		strings.Repeat("a && ", 200_000/scale) + "a",
		strings.Repeat("a=b || ", 200_000/scale) + "a",
		`a matches "` + strings.Repeat("(a?){9}", 500) + `"`,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatalf("%.20s…: %v", text, err)
		}
		c.Eval(func(string) (any, bool) { return strings.Repeat("a", 1000), true })
	}
	for _, pattern := range []string{"((((x{1000}){1000}){1000}){1000})", "(a?b?c?){1000}(d?e?f?){1000}(.{1000}|x){20}" + strings.Repeat("y{1000}", 30)} {
		if _, err := ParseCondition(`a matches "` + pattern + `"`); err == nil {
			t.Errorf("%.40s is accepted, which expands without bound", pattern)
		}
	}
	c, err := ParseCondition(`a matches "(x?){900}x{900}$"`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Eval(func(string) (any, bool) { return strings.Repeat("x", 8<<20), true }) {
		t.Error("a match beyond the limit was carried out")
	}
}
