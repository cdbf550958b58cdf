package args

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ListType is an array of strings.
type ListType struct {
	to       *Opt[[]string]
	min, max int // max 0: no bound
	choices  []string
	unknown  string // message with %s for a value outside choices
	trim     bool
	notBlank bool
}

// List is an array of min to max strings; max 0 means no bound.
func List(to *Opt[[]string], min, max int) *ListType { return &ListType{to: to, min: min, max: max} }

// OneOf lists the only values of the items.
func (t *ListType) OneOf(choices ...string) *ListType { t.choices = choices; return t }

// Unknown sets the message for a value outside OneOf; %s stands for the value.
func (t *ListType) Unknown(message string) *ListType { t.unknown = message; return t }

// Trimmed drops white space around each item and refuses blank ones.
func (t *ListType) Trimmed() *ListType { t.trim, t.notBlank = true, true; return t }

func (t *ListType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "array", nullable)
	b = append(b, `,"items":{"type":"string"`...)
	if t.choices != nil {
		b = enumKeyword(b, t.choices, false)
	}
	if t.notBlank {
		b = append(b, `,"minLength":1,"pattern":"\\S"`...)
	}
	b = append(b, '}')
	return bounds(b, t.min, t.max)
}

func (t *ListType) Decode(at string, value json.RawMessage) error {
	items, err := decodeItems(at, value, t.min, t.max, "strings")
	if err != nil {
		return err
	}
	list := make([]string, 0, len(items))
	for i, item := range items {
		path := fmt.Sprintf("%s[%d]", at, i)
		s, err := decodeString(path, item)
		if err != nil {
			return err
		}
		if t.notBlank && strings.TrimSpace(s) == "" {
			return Errorf("%s must not be blank", path)
		}
		if t.trim {
			s = strings.TrimSpace(s)
		}
		if t.choices != nil {
			if err := oneOf(path, s, t.choices); err != nil {
				if t.unknown == "" {
					return err
				}
				return Errorf("%s. %s", strings.ReplaceAll(t.unknown, "%s", s), err)
			}
		}
		list = append(list, s)
	}
	*t.to = Opt[[]string]{list, true}
	return nil
}

func (t *ListType) Finish(string) error { return nil }

func bounds(b []byte, min, max int) []byte {
	if min > 0 {
		b = append(b, `,"minItems":`...)
		b = strconv.AppendInt(b, int64(min), 10)
	}
	if max > 0 {
		b = append(b, `,"maxItems":`...)
		b = strconv.AppendInt(b, int64(max), 10)
	}
	return b
}

func decodeItems(at string, value json.RawMessage, min, max int, of string) ([]json.RawMessage, error) {
	if kindOf(value) != "array" {
		return nil, Errorf("%s must be a list of %s, got %s", at, of, show(value))
	}
	items, err := readArray(value)
	if err != nil {
		return nil, Errorf("%s is not a valid JSON array: %v", at, err)
	}
	if len(items) < min {
		return nil, Errorf("%s must contain at least %d item(s)", at, min)
	}
	if max > 0 && len(items) > max {
		return nil, Errorf("%s must contain no more than %d item(s)", at, max)
	}
	return items, nil
}

// ItemsType is an array whose items the tool decodes itself.
type ItemsType struct {
	min, max int
	schema   func(b []byte) []byte
	decode   func(at string, item json.RawMessage) error
	of       string
}

// Items is an array of min to max values. schema appends the schema of one item,
// with its braces; decode is called for each; of names them in messages.
func Items(min, max int, of string, schema func(b []byte) []byte, decode func(at string, item json.RawMessage) error) *ItemsType {
	return &ItemsType{min: min, max: max, of: of, schema: schema, decode: decode}
}

func (t *ItemsType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "array", nullable)
	b = append(b, `,"items":`...)
	b = t.schema(b)
	return bounds(b, t.min, t.max)
}

func (t *ItemsType) Decode(at string, value json.RawMessage) error {
	items, err := decodeItems(at, value, t.min, t.max, t.of)
	if err != nil {
		return err
	}
	for i, item := range items {
		if err := t.decode(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
			return err
		}
	}
	return nil
}

func (t *ItemsType) Finish(string) error { return nil }

// MapType is an object of strings.
type MapType struct{ to *Opt[map[string]string] }

// Map is an object whose members are strings.
func Map(to *Opt[map[string]string]) *MapType { return &MapType{to} }

func (t *MapType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "object", nullable)
	return append(b, `,"additionalProperties":{"type":"string"}`...)
}

func (t *MapType) Decode(at string, value json.RawMessage) error {
	if kindOf(value) != "object" {
		return Errorf("%s must be an object of strings, got %s", at, show(value))
	}
	members, err := Members(value)
	if err != nil {
		return Errorf("%s is not a valid JSON object: %v", at, err)
	}
	m := make(map[string]string, len(members))
	for _, member := range members {
		s, err := decodeString(join(at, member.Name), member.Value)
		if err != nil {
			return err
		}
		m[member.Name] = s
	}
	*t.to = Opt[map[string]string]{m, true}
	return nil
}

func (t *MapType) Finish(string) error { return nil }

// ScalarsType is an object of strings, booleans and numbers.
type ScalarsType struct {
	to   *map[string]any
	what string
}

// Scalars is an object whose members become string, bool, int64 or float64, the
// values that TOML and JSON share. what names a member in messages ("input").
func Scalars(to *map[string]any, what string) *ScalarsType { return &ScalarsType{to, what} }

func (t *ScalarsType) Schema(b []byte, nullable bool) []byte {
	b = typeKeyword(b, "object", nullable)
	return append(b, `,"additionalProperties":{"type":["string","boolean","number"]}`...)
}

func (t *ScalarsType) Decode(at string, value json.RawMessage) error {
	if kindOf(value) != "object" {
		return Errorf("%s must be an object of strings, booleans and numbers, got %s", at, show(value))
	}
	members, err := Members(value)
	if err != nil {
		return Errorf("%s is not a valid JSON object: %v", at, err)
	}
	m := make(map[string]any, len(members))
	for _, member := range members {
		v, err := t.scalar(member.Name, member.Value)
		if err != nil {
			return err
		}
		m[member.Name] = v
	}
	*t.to = m
	return nil
}

func (t *ScalarsType) scalar(name string, value json.RawMessage) (any, error) {
	switch kind := kindOf(value); kind {
	case "null":
		return nil, Errorf("%s `%s` cannot be null; use a string, boolean, or number", t.what, name)
	case "array", "object":
		return nil, Errorf("%s `%s` does not support %s values; use a string, boolean, or number", t.what, name, kind)
	case "string":
		return decodeString(name, value)
	case "boolean":
		return string(value) == "true", nil
	}
	text := strings.TrimSpace(string(value))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, Errorf("%s `%s` contains a number outside TOML's supported range", t.what, name)
	}
	return f, nil
}

func (t *ScalarsType) Finish(string) error { return nil }
