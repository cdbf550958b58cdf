package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonschema"
)

// checkSchema validates a JSON object against a schema of a workflow file (draft-07 semantics, references only within
// the schema). Neither is trusted: numbers that would be expanded without bound, references that would be fetched and
// references that lead in a circle are refused before the library sees them.
func checkSchema(schema, object []byte) error {
	for _, text := range [][]byte{schema, object} {
		if number := hugeExponent().Find(text); number != nil {
			return fmt.Errorf("the number %s is out of range", number)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var root any
	if !json.Valid(schema) {
		return errors.New("output_schema is not JSON")
	}
	if err := dec.Decode(&root); err != nil {
		return fmt.Errorf("output_schema is not JSON: %w", err)
	}
	if err := (&references{root: root}).check(root, nil); err != nil {
		return err
	}
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect, loader.Draft = false, gojsonschema.Draft7
	compiled, err := loader.Compile(gojsonschema.NewGoLoader(root))
	if err != nil {
		return fmt.Errorf("output_schema is not a valid JSON Schema: %w", err)
	}
	result, err := compiled.Validate(gojsonschema.NewBytesLoader(object))
	if err != nil {
		return err
	}
	var problems []string
	for i, e := range result.Errors() {
		if i == maxProblems {
			problems = append(problems, fmt.Sprintf("and %d more", len(result.Errors())-maxProblems))
			break
		}
		problems = append(problems, e.String())
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// maxProblems is how many violations a failure message names.
const maxProblems = 5

// hugeExponent finds exponents of four digits and more; float64 ends at 308.
var hugeExponent = lazily(`[0-9.][eE][+-]?[0-9]{4,}`)

// references walks a schema to see where its references lead.
type references struct {
	root  any
	steps int
}

// sameInstance are the keywords whose schemas apply to the very value that their own schema applies to. A circle through
// them alone would never end.
var sameInstance = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true}

// maxSchemaSteps bounds the walk through a schema.
const maxSchemaSteps = 100_000

// check looks at one schema and everything in it. open are the references being followed for the same value.
func (r *references) check(schema any, open []string) error {
	if r.steps++; r.steps > maxSchemaSteps {
		return errors.New("output_schema is too large")
	}
	switch schema := schema.(type) {
	case []any:
		for _, part := range schema {
			if err := r.check(part, open); err != nil {
				return err
			}
		}
	case map[string]any:
		if id, ok := schema["$id"].(string); ok && id != "" {
			delete(schema, "$id") // nothing is looked up by it, and with it references would become addresses
		}
		for key, part := range schema {
			var err error
			switch {
			case key == "$ref":
				err = r.follow(part, open)
			case sameInstance[key]:
				err = r.check(part, open)
			case key == "dependencies":
				err = r.each(part, open, r.check)
			default:
				err = r.check(part, nil)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// each looks at the members of dependencies, whose schemas apply to the same value.
func (r *references) each(part any, open []string, look func(any, []string) error) error {
	members, _ := part.(map[string]any)
	for _, member := range members {
		if err := look(member, open); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) follow(ref any, open []string) error {
	pointer, ok := ref.(string)
	if !ok {
		return nil // a property that happens to be called $ref
	}
	if pointer != "#" && !strings.HasPrefix(pointer, "#/") {
		return fmt.Errorf("output_schema refers to %q; only references of the form #/… are possible", pointer)
	}
	for _, already := range open {
		if already == pointer {
			return fmt.Errorf("output_schema refers to %q in a circle", pointer)
		}
	}
	target := r.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch t := target.(type) {
		case map[string]any:
			target = t[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(t) {
				return fmt.Errorf("output_schema refers to %q, which it does not have", pointer)
			}
			target = t[i]
		default:
			return fmt.Errorf("output_schema refers to %q, which it does not have", pointer)
		}
	}
	return r.sameValue(target, append(open[:len(open):len(open)], pointer))
}

// sameValue follows only what applies to the same value; the rest of the target is looked at where it stands.
func (r *references) sameValue(schema any, open []string) error {
	if r.steps++; r.steps > maxSchemaSteps {
		return errors.New("the references of output_schema multiply beyond measure")
	}
	switch schema := schema.(type) {
	case []any:
		for _, part := range schema {
			if err := r.sameValue(part, open); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, part := range schema {
			var err error
			switch {
			case key == "$ref":
				err = r.follow(part, open)
			case sameInstance[key]:
				err = r.sameValue(part, open)
			case key == "dependencies":
				err = r.each(part, open, r.sameValue)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
