package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

// What a command or an agent prints is searched for JSON: whatever it is, what is found is an object of it.
func FuzzLastObject(f *testing.F) {
	for _, seed := range []string{`{"outcome":"x"}`, "text {\"a\": [1, {}]} {", `{{{"a":"\\"}`, `{"context_updates":{"n":1e400}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, keys := range [][]string{nil, routingKeys} {
			object := lastObject(text, keys)
			if object == nil {
				continue
			}
			if !strings.Contains(text, string(object)) || !json.Valid(object) || object[0] != '{' {
				t.Errorf("%q found in %q", object, text)
			}
			_ = applyRouting(succeeded(""), object) // an error is as good as any
		}
	})
}

// Neither a schema nor an object can bring the process down.
func FuzzCheckSchema(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"enum":[1,null]}}}`,
		`{"$ref":"#/allOf/0","allOf":[{"not":{}}]}`, `{"items":[{"pattern":"("}],"format":"uri","if":{},"then":{"$ref":"#"}}`,
		`{"$id":"#x","dependencies":{"a":["b"],"c":{"$ref":"#/properties/c"}},"patternProperties":{"^a":true}}`,
	} {
		f.Add(seed, `{"a":{"b":[1]},"c":"x"}`)
	}
	f.Fuzz(func(t *testing.T, schema, object string) {
		if !json.Valid([]byte(object)) {
			return
		}
		_ = checkSchema([]byte(schema), []byte(object)) // an error is as good as any
	})
}
