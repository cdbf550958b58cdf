package transcript

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDifferences holds what a person reads where a value does not fit: each place by
// itself, as JSON or in words.
func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           []Difference
	}{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, nil},
		{`{"a": {"b": [1, "x"]}}`, `{"a": {"b": [2, "y"]}}`, []Difference{{"result.a.b[0]", "1", "2"}, {"result.a.b[1]", `"x"`, `"y"`}}},
		{`{"a": {"b": 1}, "c": <string>}`, `{"a": null}`, []Difference{{"result.a", `{"b": 1}`, "null"}, {"result.c", "a string", "nothing"}}},
		{`{"a": <absent>}`, `{"a": {"b": [1]}}`, []Difference{{"result.a", "nothing", `{"b": [1]}`}}},
		{`{"odd key": 1}`, `{"odd key": 2}`, []Difference{{`result["odd key"]`, "1", "2"}}},
		{`"x"`, `5`, []Difference{{"result", `"x"`, "5"}}},
		{`{"n": "${name}"}`, `{"n": "you"}`, []Difference{{"result.n", `"me"`, `"you"`}}},
		{`{"n": ${name}}`, `{"n": "you"}`, []Difference{{"result.n", `"me"`, `"you"`}}},
		{`[1]`, `[1, 2]`, []Difference{{"result[1]", "nothing", "2"}}},
		{`[1, {"a": <int>}]`, `[1]`, []Difference{{"result[1]", `{"a": an integer}`, "nothing"}}},
		{`[]`, `[1, 2]`, []Difference{{"result", "[]", "[1, 2]"}}},
		{`<only {"a": 1}>`, `{"a": 2, "b": 3}`, []Difference{{"result.a", "1", "2"}, {"result.b", "nothing", "3"}}},
		{`<only {}>`, `[]`, []Difference{{"result", "{} and no other member", "[]"}}},
		{`<each {"type": <"text" | "image">} & len 1..>`, `[{"type": "text"}, {"type": "odd"}]`, []Difference{{"result[1].type", `"text" or "image"`, `"odd"`}}},
		{`<each {"type": <"text" | "image">} & len 1..>`, `[]`, []Difference{{"result", "a length of 1 or more", "a length of 0: []"}}},
		{`<each string>`, `{"a": "x", "b": 1}`, []Difference{{"result.b", "a string", "1"}}},
		{`<each string>`, `"x"`, []Difference{{"result", "only elements that are a string", `"x"`}}},
		{`<keys /^[a-z]+$/>`, `{"A": 1, "b": 2}`, []Difference{{"result.A", "a name that is a string with a match for /^[a-z]+$/", `the name "A"`}}},
		{`<contains [{"n": 2}]>`, `[{"n": 1}, 3]`, []Difference{{"result", `an element that is {"n": 2}`, "2 others"}}},
		{`<contains [1, 1]>`, `[1, 2]`, []Difference{{"result", "an array that holds, among others, [1, 1]", "[1, 2]"}}},
		{`<set [1, 2]>`, `[2, 3]`, []Difference{{"result", "an element that is 1", "2 others"}, {"result[1]", "nothing", "3"}}},
		{`<len 2>`, `"abc"`, []Difference{{"result", "a length of 2", `a length of 3: "abc"`}}},
		{`<0..9 & !5>`, `5`, []Difference{{"result", "anything but 5", "5"}}},
		{`<0..9>`, `10`, []Difference{{"result", "a number from 0 to 9", "10"}}},
		{`<..-1>`, `0`, []Difference{{"result", "a number of -1 or less", "0"}}},
		{`<raw "1.0">`, `1`, []Difference{{"result", "written exactly as 1.0", "1"}}},
		{`<uuid | date-time | null>`, `""`, []Difference{{"result", "a UUID or a date and time as in RFC 3339 or null", `""`}}},
	} {
		t.Run(c.pattern+" "+c.value, func(t *testing.T) {
			p, value := patternAndValue(t, c.pattern, c.value)
			if diff := cmp.Diff(c.want, p.Differences("result", value, vars{"name": `"me"`})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryWordIsExplained holds the table of words against the matchers there are.
func TestEveryWordIsExplained(t *testing.T) {
	for _, word := range plainWords {
		if inWords[word] == "" {
			t.Errorf("<%s> has no words", word)
		}
	}
	arguments := map[string]string{"only": "{}", "contains": "[]", "set": "[]", "each": "any", "keys": "any", "len": "1", "raw": `"x"`}
	for _, word := range argumentWords {
		p, _ := patternAndValue(t, "<"+word+" "+arguments[word]+">", "0")
		if said := p.Words(vars{}); said == "" || strings.HasPrefix(said, "<") {
			t.Errorf("<%s> is told as %q", word, said)
		}
	}
}
