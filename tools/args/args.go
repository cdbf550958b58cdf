// Package args decodes the arguments of a tool and publishes their JSON Schema,
// both from one table.
//
// A tool lists its fields once, each bound to a variable:
//
//	func (p *getParams) fields() args.Fields {
//		return args.Fields{
//			{Name: "run_id", Doc: "…", Required: true, Type: args.Text(&p.RunID).Trimmed()},
//		}
//	}
//
// Fields.Schema renders that table, Fields.Decode fills the variables in one pass
// over the text. There is no reflection and nothing is prepared at program start.
//
// The rules that hold everywhere: objects are closed and an unknown field is
// refused with the nearest known one; null in an optional field means absent;
// names match exactly; every message names the field and the value.
//
// The package imports nothing of this module.
package args

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Field is one row of a tool's table.
type Field struct {
	Name string
	Doc  string // for the schema; the rules that a schema cannot express belong here
	Type Type

	// Required fields may be neither absent nor null.
	Required bool
	// Missing replaces the message "<name> is required".
	Missing string
}

// Fields is the table of one object, in the order in which the schema shows the
// fields and errors are looked for.
type Fields []Field

// Type is how the value of one field looks and where it goes.
type Type interface {
	// Schema appends the keywords of the type to b, without the braces. A nullable
	// value may also be null.
	Schema(b []byte, nullable bool) []byte
	// Decode stores a value that is not null. at is the path of the field in
	// messages.
	Decode(at string, value json.RawMessage) error
	// Finish is called for a field that is absent or null.
	Finish(at string) error
}

// Error is a rule that arguments break. Its text is for the model that wrote them.
type Error struct {
	Text string
	// Missing is the path of a required field that is absent or null, else "".
	Missing string
}

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(format string, a ...any) *Error { return &Error{Text: fmt.Sprintf(format, a...)} }

// Decode reads one JSON object into the variables of the table. The first rule
// broken is the error: unknown fields first, then field by field in the order of
// the table.
func (f Fields) Decode(object json.RawMessage) error { return f.decodeAt("", object) }

func (f Fields) decodeAt(at string, object json.RawMessage) error {
	if kindOf(object) != "object" {
		name := at
		if name == "" {
			name = "arguments"
		}
		return Errorf("%s must be an object, got %s", name, show(object))
	}
	members, err := Members(object)
	if err != nil {
		return Errorf("arguments are not valid JSON: %v", err)
	}
	for _, m := range members {
		if f.index(m.Name) < 0 {
			return f.unknown(at, m.Name)
		}
	}
	for _, field := range f {
		path := join(at, field.Name)
		value, found := members.Get(field.Name)
		switch {
		case found && kindOf(value) != "null":
			err = field.Type.Decode(path, value)
		case field.Required && field.Missing != "":
			err = &Error{Text: field.Missing, Missing: path}
		case field.Required:
			err = &Error{Text: path + " is required", Missing: path}
		default:
			err = field.Type.Finish(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f Fields) index(name string) int {
	for i := range f {
		if f[i].Name == name {
			return i
		}
	}
	return -1
}

// Names lists the fields in the order of the table.
func (f Fields) Names() []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].Name
	}
	return names
}

func (f Fields) unknown(at, name string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown field %s", strconv.Quote(join(at, name)))
	if len(f) == 0 {
		b.WriteString("; no fields are taken here")
		return &Error{Text: b.String()}
	}
	if near := Nearest(name, f.Names()); near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", near)
	} else {
		b.WriteByte('.')
	}
	fmt.Fprintf(&b, " Known fields: %s", strings.Join(f.Names(), ", "))
	return &Error{Text: b.String()}
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// Opt is a value that may be absent.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Pointer gives nil for an absent value.
func (o Opt[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}
