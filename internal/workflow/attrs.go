package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Attrs are the attributes of a graph, a node or an edge, in the order in which
// they were first written. The zero value is empty and usable. A copy of an
// Attrs shares its entries with the original: use Clone before changing one.
type Attrs struct {
	entries []attr
	index   map[string]int // built only past smallAttrs entries
}

type attr struct {
	key   string
	value Value
	at    Position // of the value's first character (the opening quote of a string)
	whole bool     // the value is the whole text of at.Source, which an @file brought in
}

// smallAttrs is the number of entries up to which a scan beats a map.
const smallAttrs = 12

func (a *Attrs) find(key string) int {
	if a.index != nil {
		if i, ok := a.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range a.entries {
		if a.entries[i].key == key {
			return i
		}
	}
	return -1
}

// Len is the number of attributes.
func (a *Attrs) Len() int { return len(a.entries) }

// Get returns the value of an attribute.
func (a *Attrs) Get(key string) (Value, bool) {
	if i := a.find(key); i >= 0 {
		return a.entries[i].value, true
	}
	return Value{}, false
}

// Has reports whether the attribute is present, whatever its kind.
func (a *Attrs) Has(key string) bool { return a.find(key) >= 0 }

// At is the place of an attribute's value in its file.
func (a *Attrs) At(key string) Position {
	if i := a.find(key); i >= 0 {
		return a.entries[i].at
	}
	return Position{}
}

// place is where a byte of a string attribute stands in the file it comes from.
func (a *Attrs) place(key string, offset int) Position {
	i := a.find(key)
	if i < 0 || !a.entries[i].at.Known() {
		return Position{}
	}
	e := &a.entries[i]
	text := e.at.Source.Text
	if e.whole || e.at.Offset >= len(text) || text[e.at.Offset] != '"' {
		return Position{e.at.Source, e.at.Offset + offset}
	}
	raw := e.at.Offset + 1
	for decoded := 0; decoded < offset && raw < len(text) && text[raw] != '"'; decoded++ {
		if text[raw] == '\\' && raw+1 < len(text) && len(unescape(text[raw+1])) == 1 {
			raw++
		}
		raw++
	}
	return Position{e.at.Source, raw}
}

// The typed accessors below do not convert: an attribute of another kind counts
// as absent, exactly as in Fabro. `goal_gate="true"` is a string and therefore
// no goal gate; `label=5` is an integer and therefore no label.

// String returns an attribute that is a string.
func (a *Attrs) String(key string) (string, bool) {
	v, ok := a.Get(key)
	return v.Str, ok && v.Kind == KindString
}

// Int returns an attribute that is an integer.
func (a *Attrs) Int(key string) (int64, bool) {
	v, ok := a.Get(key)
	return v.Int, ok && v.Kind == KindInteger
}

// Float returns an attribute that is a floating-point number. An integer is
// none.
func (a *Attrs) Float(key string) (float64, bool) {
	v, ok := a.Get(key)
	return v.Float, ok && v.Kind == KindFloat
}

// Bool returns an attribute that is a boolean.
func (a *Attrs) Bool(key string) (value, ok bool) {
	v, ok := a.Get(key)
	return v.Bool, ok && v.Kind == KindBoolean
}

// Duration returns an attribute that is a duration.
func (a *Attrs) Duration(key string) (time.Duration, bool) {
	v, ok := a.Get(key)
	return v.Dur, ok && v.Kind == KindDuration
}

// All yields the attributes in order.
func (a *Attrs) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i := range a.entries {
			if !yield(a.entries[i].key, a.entries[i].value) {
				return
			}
		}
	}
}

// Keys are the names of the attributes in order.
func (a *Attrs) Keys() []string {
	keys := make([]string, len(a.entries))
	for i := range a.entries {
		keys[i] = a.entries[i].key
	}
	return keys
}

// Set gives an attribute a value, in its old place if it had one.
func (a *Attrs) Set(key string, value Value) {
	e := attr{key: key, value: value}
	if i := a.find(key); i >= 0 {
		e.at, e.whole = a.entries[i].at, a.entries[i].whole
	}
	a.set(e)
}

func (a *Attrs) set(e attr) {
	if i := a.find(e.key); i >= 0 {
		a.entries[i] = e
		return
	}
	a.entries = append(a.entries, e)
	switch {
	case a.index != nil:
		a.index[e.key] = len(a.entries) - 1
	case len(a.entries) > smallAttrs:
		a.reindex()
	}
}

func (a *Attrs) reindex() {
	a.index = nil
	if len(a.entries) <= smallAttrs {
		return
	}
	a.index = make(map[string]int, len(a.entries))
	for i := range a.entries {
		a.index[a.entries[i].key] = i
	}
}

// Delete removes an attribute.
func (a *Attrs) Delete(key string) {
	i := a.find(key)
	if i < 0 {
		return
	}
	a.entries = append(a.entries[:i:i], a.entries[i+1:]...)
	a.reindex()
}

// Clone returns a copy that shares nothing.
func (a *Attrs) Clone() Attrs { return a.cloneFor(0) }

// cloneFor is Clone with room for some more attributes.
func (a *Attrs) cloneFor(more int) Attrs {
	if len(a.entries)+more == 0 {
		return Attrs{}
	}
	c := Attrs{entries: append(make([]attr, 0, len(a.entries)+more), a.entries...)}
	c.reindex()
	return c
}

// merge sets every attribute of other, later ones winning.
func (a *Attrs) merge(other Attrs) {
	for _, e := range other.entries {
		a.set(e)
	}
}

// MarshalJSON writes an object from name to value, in order.
func (a Attrs) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range a.entries {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := marshalPlain(e.key)
		if err != nil {
			return nil, err
		}
		value, err := e.value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes and keeps the order of the text.
func (a *Attrs) UnmarshalJSON(data []byte) error {
	*a = Attrs{}
	return eachMember(data, func(key string, dec *json.Decoder) error {
		var v Value
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("attribute %q: %w", key, err)
		}
		a.Set(key, v)
		return nil
	})
}

// eachMember reads a JSON object member by member, in order.
func eachMember(data []byte, member func(key string, dec *json.Decoder) error) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open == nil {
		return nil
	}
	if open != json.Delim('{') {
		return fmt.Errorf("expected a JSON object, found %v", open)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		if err := member(key.(string), dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// marshalPlain is json.Marshal without the escapes meant for HTML: an edge of
// `a -> b` stays readable.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
