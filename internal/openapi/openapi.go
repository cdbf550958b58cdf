// Package openapi reads the description of the Fabro API, for the tests that hold
// client and embedded server against it. The description is other people's and
// lies outside of this project, where FABRO_REFERENCE_DATA says.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrAbsent means that FABRO_REFERENCE_DATA is not set.
var ErrAbsent = errors.New("FABRO_REFERENCE_DATA is not set: the description of the Fabro API is not at hand")

// Description is the API as an OpenAPI document. It is safe for concurrent use.
type Description struct {
	Document map[string]any

	mu       sync.Mutex // protects the fields below
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by JSON pointer
}

// documentURL is the name of the document among the compiler's resources.
const documentURL = "fabro-api.json"

// Load reads the description and makes changes to it, for what the real server
// does otherwise.
func Load(changes ...func(document map[string]any)) (*Description, error) {
	dir := os.Getenv("FABRO_REFERENCE_DATA")
	if dir == "" {
		return nil, ErrAbsent
	}
	text, err := os.ReadFile(filepath.Join(dir, "data", "fabro-api.yaml"))
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
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		return nil, err
	}
	document := value.(map[string]any)
	for _, change := range changes {
		change(document)
	}
	d := &Description{Document: document, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	return d, d.compiler.AddResource(documentURL, document)
}

// At follows a path of member names, and references on the way. It returns the
// JSON pointer of what it found, which a schema can be compiled from.
func (d *Description) At(pointer string, names ...string) (any, string) {
	var here any = d.Document
	for _, name := range strings.Split(strings.Trim(pointer, "/"), "/") {
		here = step(here, unescape(name))
	}
	for i := 0; ; i++ {
		object, ok := here.(map[string]any)
		if ref, isRef := object["$ref"].(string); ok && isRef {
			pointer = strings.TrimPrefix(ref, "#")
			here, _ = d.At(pointer)
		}
		if i == len(names) {
			return here, pointer
		}
		if here = step(here, names[i]); here == nil {
			return nil, ""
		}
		pointer += "/" + Escape(names[i])
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

// Escape makes a member name a part of a JSON pointer in a URL.
func Escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}

func unescape(name string) string {
	return strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}").Replace(name)
}

// Validate checks a JSON value against the schema at a pointer.
func (d *Description) Validate(pointer string, value any) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *Description) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if schema := d.schemas[pointer]; schema != nil {
		return schema, nil
	}
	schema, err := d.compiler.Compile(documentURL + "#" + pointer)
	if err == nil {
		d.schemas[pointer] = schema
	}
	return schema, err
}

// Operation finds the description of a request; path is without its query.
func (d *Description) Operation(method, path string) (pointer string, err error) {
	paths := d.Document["paths"].(map[string]any)
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
	return "/paths/" + Escape(best) + "/" + strings.ToLower(method), nil
}
