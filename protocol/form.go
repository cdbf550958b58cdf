package protocol

import (
	"encoding/json"
	"errors"
	"strings"
)

// formSchema renders a form's schema for a revision. The one revision that has
// forms without defaults and titled choices gets what comes nearest: choices as
// enum and enumNames, a choice of several as text with commas.
func formSchema(text json.RawMessage, rev *revision) ([]byte, error) {
	raw, err := compact(text)
	if err != nil {
		return nil, err
	}
	if rev.has(featRichForms) {
		return raw, nil
	}
	if !isObject(raw) {
		return nil, errors.New("the schema of a form must be an object")
	}
	b := []byte{'{'}
	members(raw, func(name, value []byte) bool {
		b = append(quote(separate(b), name), ':')
		if string(name) != "properties" {
			b = append(b, value...)
			return true
		}
		b = append(b, '{')
		members(value, func(name, property []byte) bool {
			b = append(quote(separate(b), name), ':')
			b = appendPlainProperty(b, property)
			return true
		})
		b = append(b, '}')
		return true
	})
	return append(b, '}'), nil
}

func separate(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

func appendPlainProperty(b, property []byte) []byte {
	values, names := choices(property)
	several := isSeveral(property)
	b = append(b, '{')
	members(property, func(name, value []byte) bool {
		switch string(name) {
		case "oneOf", "anyOf", "enum", "items", "enumNames", "minItems", "maxItems", "uniqueItems":
			return true
		case "default":
			if !isBool(value) {
				return true
			}
		case "type":
			if several {
				value = []byte(`"string"`)
			}
		case "description":
			if several {
				return true
			}
		}
		b = append(quote(separate(b), name), ':')
		b = append(b, value...)
		return true
	})
	if several {
		text, _ := stringValue(field(property, "description"))
		b = keyString(b, "description", strings.TrimSpace(text+" Several, with commas between them, of: "+strings.Join(values, ", ")))
		return append(b, '}')
	}
	b = keyStrings(b, "enum", values)
	if names != nil {
		b = keyStrings(b, "enumNames", names)
	}
	return append(b, '}')
}

func isSeveral(property []byte) bool {
	t, _ := stringValue(field(property, "type"))
	return t == "array"
}

// choices finds the values of an enum property, and their titles where they have any.
func choices(property []byte) (values, names []string) {
	from := property
	if items := field(property, "items"); isObject(items) {
		from = items
	}
	titled := field(from, "oneOf")
	if titled == nil {
		titled = field(from, "anyOf")
	}
	if titled == nil {
		return readStrings(field(from, "enum")), readStrings(field(property, "enumNames"))
	}
	elements(titled, func(e []byte) bool {
		value, ok := stringValue(field(e, "const"))
		if ok {
			title, _ := stringValue(field(e, "title"))
			values, names = append(values, value), append(names, title)
		}
		return true
	})
	return values, names
}

// unformed turns a response to a form as formSchema rendered it back into the
// shape that the form's own schema asks for.
func unformed(text json.RawMessage, response json.RawMessage, rev *revision) json.RawMessage {
	content := field(response, "content")
	if rev.has(featRichForms) || !isObject(content) {
		return response
	}
	properties := field(trimSpace(text), "properties")
	b := keyRaw([]byte{'{'}, "action", field(response, "action"))
	b = append(key(b, "content"), '{')
	members(content, func(name, value []byte) bool {
		b = append(quote(separate(b), name), ':')
		line, ok := stringValue(value)
		if !ok || !isSeveral(field(properties, string(name))) {
			b = append(b, value...)
			return true
		}
		b = append(b, '[')
		for _, part := range strings.Split(line, ",") {
			if part = strings.TrimSpace(part); part != "" {
				b = quote(comma(b), part)
			}
		}
		b = append(b, ']')
		return true
	})
	return append(b, "}}"...)
}
