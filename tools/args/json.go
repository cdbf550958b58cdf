package args

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Member is one name and value of an object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is an object in document order.
type Object []Member

// Members splits an object without folding the case of its names, as encoding/json
// would do for a struct.
func Members(object json.RawMessage) (Object, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var members Object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: name.(string)}
		if err := dec.Decode(&m.Value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	_, err := dec.Token()
	return members, err
}

func readArray(array json.RawMessage) ([]json.RawMessage, error) {
	var items []json.RawMessage
	err := json.Unmarshal(array, &items)
	return items, err
}

// Get finds a member by its exact name.
func (o Object) Get(name string) (json.RawMessage, bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return nil, false
}

// Names lists the names of the members.
func (o Object) Names() []string {
	names := make([]string, len(o))
	for i := range o {
		names[i] = o[i].Name
	}
	return names
}

// kindOf names the JSON type of a value by its first byte.
func kindOf(value json.RawMessage) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// shown bounds how much of a wrong value a message repeats.
const shown = 80

// show describes a wrong value: its type and, where short, its text.
func show(value json.RawMessage) string {
	kind := kindOf(value)
	switch kind {
	case "null", "nothing":
		return kind
	case "boolean":
		return string(bytes.TrimSpace(value))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return kind
	}
	text := compact.String()
	if len(text) > shown {
		cut := shown
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	article := "the "
	if kind == "array" || kind == "object" {
		article = "an "
		if len(compact.Bytes()) > shown {
			return article + kind
		}
	}
	return article + kind + " " + text
}

// quote appends s as a JSON string without escaping <, > and &. Most strings here
// need no escaping at all.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			return quoteSlow(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func quoteSlow(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.AppendQuote(b, s)
	}
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}

// Set returns the object with one member replaced or added at the end.
func Set(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	members, err := Members(object)
	if err != nil {
		return nil, err
	}
	found := false
	for i := range members {
		if members[i].Name == name {
			members[i].Value, found = value, true
		}
	}
	if !found {
		members = append(members, Member{name, value})
	}
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, m.Name)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}'), nil
}
