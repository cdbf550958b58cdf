package fabroapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"fabro-mcp/internal/openapi"
)

// openAPI is the description of the Fabro API, which makes samples of its values.
type openAPI struct{ *openapi.Description }

var loadOpenAPI = sync.OnceValues(func() (*openapi.Description, error) { return openapi.Load() })

// needOpenAPI loads the description, or skips a test where it is not at hand.
func needOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	description, err := loadOpenAPI()
	if errors.Is(err, openapi.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &openAPI{description}
}

// response picks the first success of an operation: its status and, for JSON,
// the pointer of its schema.
func (a *openAPI) response(operation string) (status, media, schema string) {
	responses, _ := a.At(operation, "responses")
	for _, status := range slices.Sorted(maps.Keys(responses.(map[string]any))) {
		if status[0] != '2' {
			continue
		}
		content, _ := a.At(operation, "responses", status, "content")
		types, _ := content.(map[string]any)
		for media := range types {
			_, pointer := a.At(operation, "responses", status, "content", media, "schema")
			return status, media, pointer
		}
		return status, "", ""
	}
	return "", "", ""
}

// sample makes a value that fits the schema at a pointer. A full one has every
// member; one that is not full has what is required, and null where it may.
func (a *openAPI) sample(pointer string, full bool) any {
	return a.sampleOf(pointer, full, 0)
}

// deep is where a sample stops going into optional members.
const deep = 12

func (a *openAPI) sampleOf(pointer string, full bool, depth int) any {
	found, pointer := a.At(pointer)
	schema, ok := found.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	if fixed, ok := schema["const"]; ok {
		return fixed
	}
	if choices, ok := schema["enum"].([]any); ok {
		return choices[0]
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		if options, ok := schema[word].([]any); ok {
			pick := 0
			for i, option := range options {
				null := option.(map[string]any)["type"] == "null"
				if null != full {
					pick = i
					break
				}
			}
			return a.sampleOf(fmt.Sprintf("%s/%s/%d", pointer, word, pick), full, depth)
		}
	}
	if parts, ok := schema["allOf"].([]any); ok {
		whole := map[string]any{}
		for i := range parts {
			part := a.sampleOf(fmt.Sprintf("%s/allOf/%d", pointer, i), full, depth)
			members, ok := part.(map[string]any)
			if !ok {
				return part
			}
			maps.Copy(whole, members)
		}
		return whole
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		if !full && slices.Contains(kinds, any("null")) {
			return nil
		}
		for _, k := range kinds {
			if k != "null" {
				kind = k.(string)
				break
			}
		}
	}
	if kind == "" && schema["properties"] != nil {
		kind = "object"
	}
	switch kind {
	case "string":
		return sampleString(schema)
	case "integer", "number":
		for _, bound := range []string{"minimum", "default"} {
			if n, ok := schema[bound].(json.Number); ok && !full {
				return n
			}
		}
		if n, ok := schema["minimum"].(json.Number); ok && n.String() != "0" {
			return n
		}
		return json.Number("3")
	case "boolean":
		return full
	case "null":
		return nil
	case "array":
		if !full && schema["minItems"] == nil || depth > deep {
			return []any{}
		}
		items := []any{a.sampleOf(pointer+"/items", full, depth+1)}
		if n, ok := schema["minItems"].(json.Number); ok && n.String() == "2" {
			items = append(items, items[0])
		}
		return items
	case "object":
		return a.sampleObject(schema, pointer, full, depth)
	}
	return map[string]any{}
}

func (a *openAPI) sampleObject(schema map[string]any, pointer string, full bool, depth int) any {
	required, _ := schema["required"].([]any)
	object := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		if slices.Contains(required, any(name)) || full && depth <= deep {
			object[name] = a.sampleOf(pointer+"/properties/"+openapi.Escape(name), full, depth+1)
		}
	}
	if extra, ok := schema["additionalProperties"].(map[string]any); ok && full && len(extra) > 0 && depth <= deep {
		object["some-key"] = a.sampleOf(pointer+"/additionalProperties", full, depth+1)
	}
	if extra := schema["additionalProperties"]; full && (extra == nil || extra == true) {
		object["member_of_a_newer_server"] = map[string]any{"x": json.Number("1")}
	}
	return object
}

func sampleString(schema map[string]any) any {
	for _, word := range []string{"example", "default"} {
		if text, ok := schema[word].(string); ok && text != "" {
			return text
		}
	}
	switch schema["format"] {
	case "date-time":
		return "2026-08-01T10:00:00.123456Z"
	case "uuid":
		return "0198a2c4-7c3e-7000-8000-000000000001"
	case "uri":
		return "https://example.com/x"
	}
	switch pattern, _ := schema["pattern"].(string); {
	case strings.HasPrefix(pattern, "^blob://"):
		return "blob://sha256/" + strings.Repeat("a", 64)
	case pattern != "":
		return strings.Repeat("a", 64)
	}
	return "text"
}
