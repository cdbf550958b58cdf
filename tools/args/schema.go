package args

import (
	"encoding/json"
	"strconv"
)

// Schema renders the table as a closed JSON Schema object. It uses only keywords
// that mean the same in draft 7 and 2020-12, and none at the root beyond type,
// title, description, properties, required and additionalProperties, because
// hosts refuse more there.
func (f Fields) Schema(description string) json.RawMessage {
	b := append(make([]byte, 0, 4096), `{"$schema":"https://json-schema.org/draft/2020-12/schema"`...)
	if description != "" {
		b = append(b, `,"description":`...)
		b = quote(b, description)
	}
	b = f.appendObject(b)
	return append(b, '}')
}

// AppendObject appends the closed schema of a nested object, with its braces.
func (f Fields) AppendObject(b []byte, description string) []byte {
	b = append(b, `{"description":`...)
	b = quote(b, description)
	b = f.appendObject(b)
	return append(b, '}')
}

// DecodeNested is Decode for an object inside the arguments.
func (f Fields) DecodeNested(at string, object json.RawMessage) error {
	return f.decodeAt(at, object)
}

func (f Fields) appendObject(b []byte) []byte {
	b = append(b, `,"type":"object","properties":{`...)
	required := 0
	for i, field := range f {
		if i > 0 {
			b = append(b, ',')
		}
		if field.Required {
			required++
		}
		b = quote(b, field.Name)
		b = append(b, `:{"description":`...)
		b = quote(b, field.Doc)
		b = append(b, ',')
		b = field.Type.Schema(b, !field.Required)
		b = append(b, '}')
	}
	b = append(b, '}')
	if required > 0 {
		b = append(b, `,"required":[`...)
		first := true
		for _, field := range f {
			if !field.Required {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = quote(b, field.Name)
		}
		b = append(b, ']')
	}
	return append(b, `,"additionalProperties":false`...)
}

func typeKeyword(b []byte, name string, nullable bool) []byte {
	if nullable {
		b = append(b, `"type":["`...)
		b = append(b, name...)
		return append(b, `","null"]`...)
	}
	b = append(b, `"type":"`...)
	b = append(b, name...)
	return append(b, '"')
}

func enumKeyword(b []byte, choices []string, nullable bool) []byte {
	b = append(b, `,"enum":[`...)
	for i, c := range choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, c)
	}
	if nullable {
		b = append(b, `,null`...)
	}
	return append(b, ']')
}

// Kind names the JSON type of a value: object, array, string, boolean, number or
// null.
func Kind(value json.RawMessage) string { return kindOf(value) }

// Show describes a wrong value in a message.
func Show(value json.RawMessage) string { return show(value) }

// String decodes a string value.
func String(at string, value json.RawMessage) (string, error) { return decodeString(at, value) }
