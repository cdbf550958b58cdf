// Package strictjson reads one JSON text and forgives nothing: invalid UTF-8,
// duplicate member names, lone surrogates, a byte-order mark and trailing bytes
// are errors with an offset. Judging a server with encoding/json would hide all
// of these. Values keep the bytes they were written with, because ids and
// large numbers are compared as spelled.
package strictjson

import (
	"math/big"
	"strings"
)

// Kind is the JSON type of a Value.
type Kind uint8

// The six JSON types; booleans are one kind.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// Value is one JSON value.
type Value struct {
	Kind    Kind
	Raw     []byte // as written, without surrounding white space
	Text    string // a decoded string, or a number's spelling
	True    bool   // the value of a boolean
	Items   []*Value
	Members []Member
}

// Member is one name and value of an object, in the order written.
type Member struct {
	Name  string
	Value *Value
}

// Get returns the member of an object, or nil when v is nil, not an object, or
// lacks the member.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// At follows a path of member names.
func (v *Value) At(path ...string) *Value {
	for _, name := range path {
		v = v.Get(name)
	}
	return v
}

// Str returns the text of a string value, or "" for anything else.
func (v *Value) Str() string {
	if v == nil || v.Kind != String {
		return ""
	}
	return v.Text
}

// Is reports whether v is present and of the kind.
func (v *Value) Is(k Kind) bool { return v != nil && v.Kind == k }

// Int returns an integer written in plain spelling (no fraction, no exponent).
func (v *Value) Int() (*big.Int, bool) {
	if v == nil || v.Kind != Number || strings.ContainsAny(v.Text, ".eE") {
		return nil, false
	}
	return new(big.Int).SetString(v.Text, 10)
}

// maxExponent bounds what Rat expands: 1e999999999 is legal JSON and would
// otherwise cost gigabytes.
const maxExponent = 4000

// Rat returns the exact value of a number; ok is false for other kinds and for
// exponents beyond 4000, which are then only comparable by spelling.
func (v *Value) Rat() (*big.Rat, bool) {
	if v == nil || v.Kind != Number || len(v.Text) > maxExponent {
		return nil, false
	}
	if i := strings.IndexAny(v.Text, "eE"); i >= 0 {
		e, ok := new(big.Int).SetString(strings.TrimPrefix(v.Text[i+1:], "+"), 10)
		if !ok || !e.IsInt64() || e.Int64() > maxExponent || e.Int64() < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(v.Text)
}

// IsInteger reports whether a number has an integral value however it is
// spelled, as JSON Schema counts integers.
func (v *Value) IsInteger() bool {
	r, ok := v.Rat()
	return ok && r.IsInt()
}

// Equal compares two values as JSON: numbers by value, strings decoded, objects
// without regard to order.
func Equal(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Null:
		return true
	case Bool:
		return a.True == b.True
	case String:
		return a.Text == b.Text
	case Number:
		x, okx := a.Rat()
		y, oky := b.Rat()
		if okx && oky {
			return x.Cmp(y) == 0
		}
		return a.Text == b.Text
	case Array:
		if len(a.Items) != len(b.Items) {
			return false
		}
		for i := range a.Items {
			if !Equal(a.Items[i], b.Items[i]) {
				return false
			}
		}
		return true
	default:
		if len(a.Members) != len(b.Members) {
			return false
		}
		for _, m := range a.Members {
			if other := b.Get(m.Name); other == nil || !Equal(m.Value, other) {
				return false
			}
		}
		return true
	}
}

// Quote returns s as a JSON string that keeps everything readable readable.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			const hex = "0123456789abcdef"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(hex[(r>>shift)&15])
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
