// Package revdiff compares two revisions' schema files and writes what a
// maintainer has to do as a Markdown checklist. It reads the official files and
// ours alike: definitions under "$defs" or "definitions", unions of requests
// and notifications, methods as constants.
package revdiff

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Schema is what the comparison reads of a schema file.
type Schema struct {
	defs map[string]*node
}

// node is one (sub)schema, only the keywords that matter here.
type node struct {
	Ref         string           `json:"$ref"`
	Type        any              `json:"type"`
	Const       any              `json:"const"`
	Enum        []any            `json:"enum"`
	Default     any              `json:"default"`
	Format      string           `json:"format"`
	Properties  map[string]*node `json:"properties"`
	Required    []string         `json:"required"`
	Items       any              `json:"items"`
	AnyOf       []*node          `json:"anyOf"`
	OneOf       []*node          `json:"oneOf"`
	AllOf       []*node          `json:"allOf"`
	Additional  any              `json:"additionalProperties"`
	Minimum     any              `json:"minimum"`
	Maximum     any              `json:"maximum"`
	Description string           `json:"description"`
}

// UnmarshalJSON accepts boolean schemas too.
func (n *node) UnmarshalJSON(data []byte) error {
	if s := string(data); s == "true" || s == "false" {
		n.Const = "schema " + s
		return nil
	}
	type plain node
	return json.Unmarshal(data, (*plain)(n))
}

// Parse reads a schema file.
func Parse(data []byte) (*Schema, error) {
	var file struct {
		Defs        map[string]*node `json:"$defs"`
		Definitions map[string]*node `json:"definitions"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	s := &Schema{defs: file.Defs}
	if s.defs == nil {
		s.defs = file.Definitions
	}
	if len(s.defs) == 0 {
		return nil, fmt.Errorf("the file has neither $defs nor definitions")
	}
	return s, nil
}

// methods maps each method constant of a kind of message to its definition.
func (s *Schema) methods(suffix string) map[string]string {
	out := map[string]string{}
	for name, d := range s.defs {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if m := s.constOf(d, "method", 0); m != "" {
			out[m] = name
		}
	}
	return out
}

const maxDepth = 8

func (s *Schema) constOf(d *node, property string, depth int) string {
	if d == nil || depth > maxDepth {
		return ""
	}
	if p := d.Properties[property]; p != nil {
		if c, ok := p.Const.(string); ok {
			return c
		}
	}
	for _, part := range d.AllOf {
		if c := s.constOf(part, property, depth+1); c != "" {
			return c
		}
	}
	if d.Ref != "" {
		return s.constOf(s.defs[refName(d.Ref)], property, depth+1)
	}
	return ""
}

func refName(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// codes lists the error codes that definitions fix.
func (s *Schema) codes() map[string]string {
	out := map[string]string{}
	for name, d := range s.defs {
		s.findCodes(d, name, out, 0)
	}
	return out
}

func (s *Schema) findCodes(d *node, name string, out map[string]string, depth int) {
	if d == nil || depth > maxDepth {
		return
	}
	if c := d.Properties["code"]; c != nil && c.Const != nil {
		out[fmt.Sprint(c.Const)] = name
	}
	for _, p := range d.Properties {
		s.findCodes(p, name, out, depth+1)
	}
	for _, p := range d.AllOf {
		s.findCodes(p, name, out, depth+1)
	}
}

// Change is one item of the checklist.
type Change struct {
	Section string
	Text    string
}

// Sections in the order in which they are printed.
var sections = []string{"Methods", "Notifications", "Error codes", "New types", "Removed types", "Fields", "Required", "Enums and constants", "Types of fields"}

// Compare lists what came, went or changed.
func Compare(old, new *Schema) []Change {
	var out []Change
	add := func(section, format string, args ...any) {
		out = append(out, Change{section, fmt.Sprintf(format, args...)})
	}
	compareMaps(old.methods("Request"), new.methods("Request"), func(m, def string) { add("Methods", "new method `%s` (%s)", m, def) },
		func(m, def string) { add("Methods", "method `%s` (%s) is gone", m, def) })
	compareMaps(old.methods("Notification"), new.methods("Notification"), func(m, def string) { add("Notifications", "new notification `%s` (%s)", m, def) },
		func(m, def string) { add("Notifications", "notification `%s` (%s) is gone", m, def) })
	compareMaps(old.codes(), new.codes(), func(c, def string) { add("Error codes", "new code %s (%s)", c, def) },
		func(c, def string) { add("Error codes", "code %s (%s) is gone", c, def) })
	for _, name := range sortedUnion(old.defs, new.defs) {
		a, b := old.defs[name], new.defs[name]
		switch {
		case a == nil:
			add("New types", "`%s`%s", name, fieldList(b))
		case b == nil:
			add("Removed types", "`%s`", name)
		default:
			compareNodes(name, a, b, add, 0)
		}
	}
	return out
}

func fieldList(d *node) string {
	if len(d.Properties) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(d.Properties))
	for i, n := range names {
		if slices.Contains(d.Required, n) {
			names[i] = "**" + n + "**"
		}
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func compareMaps(a, b map[string]string, came, went func(key, value string)) {
	for _, k := range sortedUnion(a, b) {
		_, inA := a[k]
		_, inB := b[k]
		switch {
		case !inA:
			came(k, b[k])
		case !inB:
			went(k, a[k])
		}
	}
}

func sortedUnion[V any](a, b map[string]V) []string {
	var out []string
	for k := range a {
		out = append(out, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
}

// compareNodes walks two schemas of the same place side by side.
func compareNodes(path string, a, b *node, add func(section, format string, args ...any), depth int) {
	if depth > maxDepth || a == nil || b == nil {
		return
	}
	for _, name := range sortedUnion(a.Properties, b.Properties) {
		x, y := a.Properties[name], b.Properties[name]
		at := path + "." + name
		switch {
		case x == nil:
			add("Fields", "`%s` is new%s: %s", at, isRequired(b, name), describe(y))
		case y == nil:
			add("Fields", "`%s` is gone%s", at, wasRequired(a, name))
		default:
			if was, is := slices.Contains(a.Required, name), slices.Contains(b.Required, name); was != is {
				add("Required", "`%s` %s", at, map[bool]string{true: "became required", false: "became optional"}[is])
			}
			compareNodes(at, x, y, add, depth+1)
		}
	}
	compareEnums(path, a, b, add)
	if shapeA, shapeB := describe(a), describe(b); shapeA != shapeB && len(a.Properties) == 0 && len(b.Properties) == 0 {
		add("Types of fields", "`%s`: %s → %s", path, shapeA, shapeB)
	}
}

func compareEnums(path string, a, b *node, add func(section, format string, args ...any)) {
	texts := func(values []any) []string {
		var out []string
		for _, v := range values {
			out = append(out, fmt.Sprint(v))
		}
		return out
	}
	x, y := texts(a.Enum), texts(b.Enum)
	for _, v := range y {
		if !slices.Contains(x, v) && len(x) > 0 {
			add("Enums and constants", "`%s` may now be `%s`", path, v)
		}
	}
	for _, v := range x {
		if !slices.Contains(y, v) && len(y) > 0 {
			add("Enums and constants", "`%s` may no longer be `%s`", path, v)
		}
	}
	if fmt.Sprint(a.Const) != fmt.Sprint(b.Const) {
		add("Enums and constants", "the constant `%s`: `%v` → `%v`", path, a.Const, b.Const)
	}
}

func isRequired(d *node, name string) string {
	if slices.Contains(d.Required, name) {
		return " and required"
	}
	return ""
}

func wasRequired(d *node, name string) string {
	if slices.Contains(d.Required, name) {
		return " (it was required)"
	}
	return ""
}

// describe names a schema's kind in a few words.
func describe(d *node) string {
	switch {
	case d == nil:
		return "nothing"
	case d.Ref != "":
		return refName(d.Ref)
	case len(d.Enum) > 0:
		return "enum"
	case d.Const != nil:
		return fmt.Sprintf("constant %v", d.Const)
	case len(d.AnyOf)+len(d.OneOf) > 0:
		var parts []string
		for _, p := range append(slices.Clone(d.AnyOf), d.OneOf...) {
			parts = append(parts, describe(p))
		}
		sort.Strings(parts)
		return strings.Join(slices.Compact(parts), " or ")
	case len(d.AllOf) > 0:
		var parts []string
		for _, p := range d.AllOf {
			parts = append(parts, describe(p))
		}
		return strings.Join(parts, " and ")
	}
	text := ""
	switch t := d.Type.(type) {
	case string:
		text = t
	case []any:
		var parts []string
		for _, one := range t {
			parts = append(parts, fmt.Sprint(one))
		}
		sort.Strings(parts)
		text = strings.Join(parts, " or ")
	default:
		text = "any"
	}
	if text == "array" {
		if raw, err := json.Marshal(d.Items); err == nil {
			item := &node{}
			if item.UnmarshalJSON(raw) == nil {
				text = "array of " + describe(item)
			}
		}
	}
	if d.Format != "" {
		text += " (" + d.Format + ")"
	}
	return text
}

// WriteMarkdown writes the checklist.
func WriteMarkdown(w io.Writer, oldName, newName string, changes []Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# From %s to %s\n\n", oldName, newName)
	if len(changes) == 0 {
		b.WriteString("Nothing changed in what the schemas say.\n")
	}
	for _, section := range sections {
		first := true
		for _, c := range changes {
			if c.Section != section {
				continue
			}
			if first {
				fmt.Fprintf(&b, "## %s\n\n", section)
				first = false
			}
			fmt.Fprintf(&b, "- [ ] %s\n", c.Text)
		}
		if !first {
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
