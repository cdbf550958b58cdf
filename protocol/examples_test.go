package protocol_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

// object is a JSON object; its numbers are kept as they are spelled.
type object = map[string]any

// exampleCheck takes one official example through the engine and compares what comes
// out with what went in.
type exampleCheck func(t *testing.T, example object)

// notExchanged are definitions that a server over stdio neither sends nor reads.
var notExchanged = map[string]string{
	"HeaderMismatchError": "it is about HTTP headers that differ from the body; there are none on stdio",
}

// passedRaw are definitions that the engine has no type for: what a handler asks, or
// gets as InputResponse.Raw, is JSON text and goes through as it is.
var passedRaw = map[string]string{
	"CreateMessageRequest":       "InputRequest.Sampling is the text of the params",
	"CreateMessageRequestParams": "InputRequest.Sampling",
	"ModelPreferences":           "a part of InputRequest.Sampling",
	"SamplingMessage":            "a part of InputRequest.Sampling",
	"ToolUseContent":             "a part of InputRequest.Sampling",
	"ToolResultContent":          "a part of InputRequest.Sampling",
	"CreateMessageResult":        "InputResponse.Raw",
	"ListRootsResult":            "InputResponse.Raw",
	"Root":                       "a part of InputResponse.Raw",

	"BooleanSchema": "a property in ElicitForm.Schema", "NumberSchema": "a property in ElicitForm.Schema", "StringSchema": "a property in ElicitForm.Schema",
	"TitledSingleSelectEnumSchema": "a property in ElicitForm.Schema", "UntitledSingleSelectEnumSchema": "a property in ElicitForm.Schema",
	"TitledMultiSelectEnumSchema": "a property in ElicitForm.Schema", "UntitledMultiSelectEnumSchema": "a property in ElicitForm.Schema",
}

// TestExamplesThroughTheEngine: every official example of 2026-07-28 goes through the
// engine's own values. What a server sends is decoded into them and served; what a
// client sends is served to handlers, which write down what they saw.
func TestExamplesThroughTheEngine(t *testing.T) {
	if referenceData() == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the official examples are not there")
	}
	root := filepath.Join(referenceData(), "data/mcp-schema/2026-07-28/examples")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	checks := maps.Clone(examplesSent)
	maps.Copy(checks, examplesAsked)
	maps.Copy(checks, examplesRead)
	known := make(map[string]bool)
	for _, entry := range entries {
		definition := entry.Name()
		known[definition] = true
		check, reason := checks[definition], notExchanged[definition]
		if (check == nil) == (reason == "") {
			t.Errorf("%s must have either a check or a reason why it has none", definition)
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, definition, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no examples (%v)", definition, err)
		}
		if check == nil {
			continue
		}
		for _, file := range files {
			t.Run(definition+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				check(t, toObject(t, raw))
			})
		}
	}
	for definition := range passedRaw {
		if checks[definition] == nil {
			t.Errorf("%s is said to be passed on as it is, but no check shows it", definition)
		}
	}
	listed := slices.Collect(maps.Keys(checks))
	listed = slices.AppendSeq(listed, maps.Keys(notExchanged))
	for _, definition := range listed {
		if !known[definition] {
			t.Errorf("%s is listed, but has no examples", definition)
		}
	}
}

func toObject(t *testing.T, raw []byte) (o object) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&o); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return o
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// typed decodes a part of an example into a public value of the engine, whose fields
// have the names of the members but for case. A member that the value has no field for
// fails the test; without names those that the caller accounts for.
func typed[T any](t *testing.T, part any, without ...string) (v T) {
	t.Helper()
	if o, ok := part.(object); ok {
		o = maps.Clone(o)
		for _, name := range without {
			delete(o, name)
		}
		part = o
	}
	dec := json.NewDecoder(strings.NewReader(toJSON(t, part)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("the engine cannot express this as a %T: %v", v, err)
	}
	return v
}

// same compares JSON values. want may come from Go values of any kind.
func same(t *testing.T, want, got any) {
	t.Helper()
	plain := func(v any) any { return toObject(t, []byte(toJSON(t, object{"": v})))[""] }
	if diff := cmp.Diff(plain(want), plain(got)); diff != "" {
		t.Errorf("(-example +engine):\n%s", diff)
	}
}

// spelledOut takes out of an example members that say what their absence says as well,
// and which the engine leaves out.
func spelledOut(t *testing.T, example object, defaults object) object {
	t.Helper()
	example = maps.Clone(example)
	for name, value := range defaults {
		if reflect.DeepEqual(example[name], value) {
			delete(example, name)
		}
	}
	return example
}

// exampleInfo is who serves in these tests.
var exampleInfo = protocol.Implementation{Name: "ExampleServer", Version: "1.0.0"}

const keyServerInfo = "io.modelcontextprotocol/serverInfo"

// sameResult compares a result with its example. What the engine adds to every result
// by itself, the server's identity and those members of also that the example lacks,
// must be there.
func sameResult(t *testing.T, example, result object, also object) {
	t.Helper()
	example = maps.Clone(example)
	for name, value := range also {
		if _, has := example[name]; !has {
			example[name] = value
		}
	}
	meta, _ := example["_meta"].(object)
	if meta = maps.Clone(meta); meta == nil {
		meta = object{}
	}
	if meta[keyServerInfo] == nil {
		meta[keyServerInfo] = object{"name": exampleInfo.Name, "version": exampleInfo.Version}
	}
	example["_meta"] = meta
	same(t, example, result)
}

// asResponse makes the check of a result that of a response around it.
func asResponse(check func(t *testing.T, id string, result object)) exampleCheck {
	return func(t *testing.T, example object) {
		result, _ := example["result"].(object)
		same(t, object{"jsonrpc": "2.0", "id": example["id"], "result": result}, example)
		check(t, toJSON(t, example["id"]), result)
	}
}

// asPart makes it that of the result alone.
func asPart(check func(t *testing.T, id string, result object)) exampleCheck {
	return func(t *testing.T, example object) { check(t, "1", example) }
}

// allCapabilities is a client that can be asked anything.
const allCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}`

// askFor serves one request of a client that can be asked anything, and returns the
// result.
func askFor(t *testing.T, s *protocol.Server, id, method, params string) object {
	t.Helper()
	return resultOf(t, connect(t, s).call(modernWith(id, method, params, allCapabilities, "")))
}

// fixedSealer gives the same text for everything it is to seal, so that what is opaque
// in an example can be compared too. Whatever comes back is the start of a list.
type fixedSealer struct {
	text   string
	opened *string
}

func (f fixedSealer) Seal(string, []byte, time.Duration) (string, error) { return f.text, nil }

func (f fixedSealer) Open(_, sealed string) ([]byte, error) {
	if f.opened != nil {
		*f.opened = sealed
	}
	return []byte{0}, nil
}
