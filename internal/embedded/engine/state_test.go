package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chain is a graph of n commands in a row.
func chain(n int) string {
	var b strings.Builder
	way := "start"
	for i := range n {
		fmt.Fprintf(&b, "n%d [script=\"true\", class=\"c%d\"]\n", i, i)
		way += fmt.Sprintf(" -> n%d", i)
	}
	return frame(b.String() + way + " -> exit")
}

// What is stored grows with the run and not with its square, and folding from any base gives what folding from the
// start gives.
func TestStateIsStoredAsChanges(t *testing.T) {
	bytesOf := func(n int) (int, *memory) {
		tr := newTrial(t, chain(n))
		tr.spec.DryRun = true
		if result, err := Run(t.Context(), tr.spec, tr.journal, tr.desk); err != nil || status(result) != "succeeded(completed)" {
			t.Fatal(status(result), err)
		}
		total := 0
		for _, raw := range tr.journal.stored {
			total += len(raw)
		}
		return total, tr.journal
	}
	small, _ := bytesOf(30)
	large, journal := bytesOf(300)
	if large > 25*small {
		t.Errorf("30 stages take %d bytes, 300 take %d", small, large)
	}

	var fold Fold
	var rendered []json.RawMessage
	bases := []int{}
	for i, e := range journal.events {
		whole, err := fold.Render(e.Name, journal.stored[i])
		if err != nil || !json.Valid(whole) {
			t.Fatal(err, len(whole))
		}
		rendered = append(rendered, whole)
		if IsBase(e.Name, journal.stored[i]) {
			bases = append(bases, i)
		}
	}
	if len(bases) < 2 {
		t.Fatalf("%d bases", len(bases))
	}
	for _, base := range bases {
		var fresh Fold
		for i := base; i < min(base+20, len(rendered)); i++ {
			again, err := fresh.Render(journal.events[i].Name, journal.stored[i])
			if err != nil || !bytes.Equal(again, rendered[i]) {
				t.Fatalf("event %d rendered from base %d differs: %v", i, base, err)
			}
		}
	}
	cp := fold.Checkpoint()
	if cp.CurrentNode != "n299" || cp.NextNode != "exit" || len(cp.CompletedNodes) != 301 || len(cp.NodeOutcomes) != 301 {
		t.Errorf("the last checkpoint is at %s with %d nodes", cp.CurrentNode, len(cp.CompletedNodes))
	}
}

// The latest checkpoint does not know what came after it.
func TestCheckpointIsOfItsTime(t *testing.T) {
	var fold Fold
	for _, e := range []struct{ name, properties string }{
		{eventStageCompleted, `{"state":{"base":true,"set":{"a":1},"visits":{"n":1}}}`},
		{eventCheckpointCompleted, `{"status":"succeeded","current_node":"n","next_node_id":"m","state":{"set":{"b":2},"completed":["n"]}}`},
		{eventStageCompleted, `{"state":{"set":{"a":3},"visits":{"m":1}}}`},
		{eventStageCompleted, `{"state":{"scope":"m@1","base":true,"set":{"z":1}}}`},
		{"edge.selected", `{"state":{"set":{"x":1}}}`},
	} {
		if err := fold.Observe(e.name, json.RawMessage(e.properties)); err != nil {
			t.Fatal(err)
		}
	}
	want := &Checkpoint{CurrentNode: "n", NextNode: "m", State: State{
		ContextValues:  map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")},
		CompletedNodes: []string{"n"}, NodeVisits: map[string]int{"n": 1},
	}}
	if diff := cmp.Diff(want, fold.Checkpoint()); diff != "" {
		t.Error(diff)
	}
}

func TestFoldRefusesGarbage(t *testing.T) {
	for _, text := range []string{"", "[]", `{"state":7}`, `{"state":{"set":[]}}`} {
		var fold Fold
		if _, err := fold.Render(eventStageCompleted, json.RawMessage(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
		if IsBase(eventStageCompleted, json.RawMessage(text)) {
			t.Errorf("%q is a base", text)
		}
	}
}

// Large context values are kept as blobs and read back where they are used.
func TestLargeContextValues(t *testing.T) {
	tr := newTrial(t, frame(`emit [output_schema=routing, script="printf '{\"context_updates\":{\"big\":\"'; head -c 200000 /dev/zero | tr '\\0' x; printf '\"}}'"]
  count [stdin_source=big, script="wc -c"] yes [script="true"]
  start -> emit -> count
  count -> yes [condition="context.command.output contains 200000 && context.big contains xxxx"]
  count -> exit
  yes -> exit`))
	result, got := tr.run()
	if order(got) != "start emit count yes exit" || status(result) != "succeeded(completed)" {
		t.Errorf("%s: %s", order(got), status(result))
	}
	value := only(got, "checkpoint.completed")[1].Props["context_values"].(map[string]any)["big"]
	if text, _ := value.(string); !strings.HasPrefix(text, blobScheme) {
		t.Errorf("%.40v…", value)
	}
}

// The blob of a text is its JSON string as Fabro writes it, so that the hashes agree.
func TestQuoteText(t *testing.T) {
	for text, want := range map[string]string{
		"":                       `""`,
		"a\"b\\c/":               `"a\"b\\c/"`,
		"\b\f\n\r\t\x00\x1f\x7f": "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"",
		"<&>\u2028 ü 𝄞 \uFFFD":   "\"<&>\u2028 ü 𝄞 \uFFFD\"",
	} {
		got := quoteText(text)
		var back string
		if err := json.Unmarshal(got, &back); string(got) != want || err != nil || back != text || cap(got) != len(got) && len(got) > 64 {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestStructuredSearch(t *testing.T) {
	cases := []struct {
		text string
		keys []string
		want string
	}{
		{`no`, nil, ``},
		{`{"a":1} then {"b":2}`, nil, `{"b":2}`},
		{`{"outcome":"x"} then {"b":2}`, routingKeys, `{"outcome":"x"}`},
		{`{"context_updates":{"outcome":"inner"}}`, routingKeys, `{"context_updates":{"outcome":"inner"}}`},
		{`{ broken {"a":1} "`, nil, `{"a":1}`},
		{`{"a": "}{"} {`, nil, `{"a": "}{"}`},
		{`[{"a":1}]`, nil, `{"a":1}`},
		{"```json\n{\"a\":\n1}\n```", nil, "{\"a\":\n1}"},
	}
	for _, c := range cases {
		if got := string(lastObject(c.text, c.keys)); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// Text made to be expensive to search costs no more than its budget.
func TestStructuredSearchIsBounded(t *testing.T) {
	for _, unit := range []string{"{", `{"a":`, `{"a":[`, `{"`, `{}`} {
		text := strings.Repeat(unit, structuredWindow*3/2/len(unit)) + "\n" + `{"outcome":"failed"}`
		found := lastObject(text, routingKeys)
		if string(found) != `{"outcome":"failed"}` && unit != `{"` {
			t.Errorf("behind many %s the last object is not found", unit)
		}
	}
}

func TestSchemas(t *testing.T) {
	cases := []struct{ schema, object, problem string }{
		{`{"type":"object","required":["a"]}`, `{"a":1}`, ""},
		{`{"type":"object","required":["a"]}`, `{}`, "(root): a is required"},
		{`{"properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`, `{"a":"x"}`, "a: Invalid type. Expected: integer, given: string"},
		{`{"$id":"http://example.test/s","properties":{"a":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`, `{"a":1}`, ""},
		{`{"$ref":"http://example.test/s"}`, `{}`, `output_schema refers to "http://example.test/s"; only references of the form #/… are possible`},
		{`{"$ref":"file:///etc/passwd"}`, `{}`, `output_schema refers to "file:///etc/passwd"; only references of the form #/… are possible`},
		{`{"$ref":"#"}`, `{}`, `output_schema refers to "#" in a circle`},
		{`{"allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"anyOf":[{"$ref":"#/definitions/b"}]},"b":{"not":{"$ref":"#/definitions/a"}}}}`, `{}`, "in a circle"},
		{`{"dependencies":{"c":{"$ref":"#"}}}`, `{"c":1}`, "in a circle"},
		{`{"$ref":"#/definitions/d","definitions":{"d":{"dependencies":{"a":["b"],"c":{"$ref":"#/definitions/d"}}}}}`, `{"c":1}`, "in a circle"},
		{`{"properties":{"child":{"$ref":"#"}}}`, `{"child":{"child":{}}}`, ""},
		{`{"$ref":"#/nowhere/x"}`, `{}`, "which it does not have"},
		{`{"maximum":1e999999999}`, `{}`, "the number 1e999999999 is out of range"},
		{`{}`, `{"a":1e999999999}`, "the number 1e999999999 is out of range"},
		{`{"type":5}`, `{}`, "output_schema is not a valid JSON Schema"},
		{`{`, `{}`, "output_schema is not JSON"},
	}
	for _, c := range cases {
		err := checkSchema([]byte(c.schema), []byte(c.object))
		switch {
		case err == nil && c.problem != "":
			t.Errorf("%s takes %s", c.schema, c.object)
		case err != nil && (c.problem == "" || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: %v, want %q", c.schema, err, c.problem)
		}
	}
}
