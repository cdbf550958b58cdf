package fabroapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPI is the description of the Fabro API, as far as the contract tests ask.
type openAPI struct {
	document map[string]any
	compiler *jsonschema.Compiler
	schemas  sync.Map // reference → *jsonschema.Schema
}

const documentURL = "fabro-api.json"

var loadOpenAPI = sync.OnceValues(func() (*openAPI, error) {
	text, err := os.ReadFile(filepath.Join(os.Getenv("FABRO_REFERENCE_DATA"), "data", "fabro-api.yaml"))
	if err != nil {
		return nil, err
	}
	var raw any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		return nil, err
	}
	api := &openAPI{document: document.(map[string]any), compiler: jsonschema.NewCompiler()}
	api.compiler.DefaultDraft(jsonschema.Draft2020)
	return api, api.compiler.AddResource(documentURL, document)
})

// needOpenAPI loads the description, or skips a test where it is not at hand.
func needOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	if os.Getenv("FABRO_REFERENCE_DATA") == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the description of the Fabro API is not at hand")
	}
	api, err := loadOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// at follows a path of member names, and references on the way. It returns the
// JSON pointer of what it found, which a schema can be compiled from.
func (a *openAPI) at(pointer string, names ...string) (any, string) {
	var here any = a.document
	for _, name := range strings.Split(strings.Trim(pointer, "/"), "/") {
		here = step(here, unescape(name))
	}
	for i := 0; ; i++ {
		object, ok := here.(map[string]any)
		if ref, isRef := object["$ref"].(string); ok && isRef {
			pointer = strings.TrimPrefix(ref, "#")
			here, _ = a.at(pointer)
		}
		if i == len(names) {
			return here, pointer
		}
		if here = step(here, names[i]); here == nil {
			return nil, ""
		}
		pointer += "/" + escape(names[i])
	}
}

// step goes one member or element down.
func step(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if n, err := strconv.Atoi(name); err == nil && n < len(value) {
			return value[n]
		}
	}
	return nil
}

func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}

func unescape(name string) string {
	return strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}").Replace(name)
}

var compiling sync.Mutex

// validate checks a JSON value against the schema at a pointer.
func (a *openAPI) validate(pointer string, value any) error {
	compiled, ok := a.schemas.Load(pointer)
	if !ok {
		compiling.Lock()
		schema, err := a.compiler.Compile(documentURL + "#" + pointer)
		compiling.Unlock()
		if err != nil {
			return err
		}
		compiled, _ = a.schemas.LoadOrStore(pointer, schema)
	}
	return compiled.(*jsonschema.Schema).Validate(value)
}

// operation finds the description of a request; path is without its query.
func (a *openAPI) operation(method, path string) (pointer string, err error) {
	paths := a.document["paths"].(map[string]any)
	parts := strings.Split(path, "/")
	best, bestLiteral := "", -1
	for _, template := range slices.Sorted(maps.Keys(paths)) {
		names := strings.Split(template, "/")
		if len(names) != len(parts) || paths[template].(map[string]any)[strings.ToLower(method)] == nil {
			continue
		}
		literal := 0
		for i, name := range names {
			if strings.HasPrefix(name, "{") && parts[i] != "" {
				continue
			}
			if name != parts[i] {
				literal = -1
				break
			}
			literal++
		}
		if literal > bestLiteral {
			best, bestLiteral = template, literal
		}
	}
	if best == "" {
		return "", fmt.Errorf("the API has no %s %s", method, path)
	}
	return "/paths/" + escape(best) + "/" + strings.ToLower(method), nil
}

// response picks the first success of an operation: its status and, for JSON,
// the pointer of its schema.
func (a *openAPI) response(operation string) (status, media, schema string) {
	responses, _ := a.at(operation, "responses")
	for _, status := range slices.Sorted(maps.Keys(responses.(map[string]any))) {
		if status[0] != '2' {
			continue
		}
		content, _ := a.at(operation, "responses", status, "content")
		types, _ := content.(map[string]any)
		for media := range types {
			_, pointer := a.at(operation, "responses", status, "content", media, "schema")
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
	found, pointer := a.at(pointer)
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
			object[name] = a.sampleOf(pointer+"/properties/"+escape(name), full, depth+1)
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
