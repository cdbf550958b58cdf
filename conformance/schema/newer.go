package schema

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Newer lists the members of a value, as paths from its root, that the named definition
// does not have in this revision but has in a later one: fields that leak to a peer which
// agreed on the older revision. Members that no revision knows are not listed: they are
// allowed everywhere.
func (s *Set) Newer(definition string, value []byte) []string {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return nil
	}
	var later []*Set
	for _, name := range Revisions() {
		if name > s.revision {
			if set, err := For(name); err == nil {
				later = append(later, set)
			}
		}
	}
	found := map[string]bool{}
	s.newer(definition, json.RawMessage(`{"$ref":"#/definitions/`+definition+`"}`), decoded, "", later, found)
	paths := make([]string, 0, len(found))
	for p := range found {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	return paths
}

// shape is what Newer reads of a schema.
type shape struct {
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Extra      json.RawMessage            `json:"additionalProperties"`
	AllOf      []json.RawMessage          `json:"allOf"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	If         *tagTest                   `json:"if"`
	Then       json.RawMessage            `json:"then"`
	Else       json.RawMessage            `json:"else"`
}

// tagTest is the only kind of condition our files use: a member equals a constant, or the
// value is an array.
type tagTest struct {
	Type       string `json:"type"`
	Properties map[string]struct{ Const string }
}

func (c *tagTest) holds(value any) bool {
	if c.Type == "array" {
		_, ok := value.([]any)
		return ok
	}
	object, _ := value.(map[string]any)
	for name, p := range c.Properties {
		if object[name] != p.Const {
			return false
		}
	}
	return true
}

func (s *Set) newer(definition string, schema json.RawMessage, value any, path string, later []*Set, found map[string]bool) {
	var sh shape
	if len(schema) == 0 || json.Unmarshal(schema, &sh) != nil {
		return
	}
	into := func(sub json.RawMessage) { s.newer(definition, sub, value, path, later, found) }
	if name := sh.Ref[strings.LastIndex(sh.Ref, "/")+1:]; name != "" {
		s.newer(name, s.index.definitions[name], value, path, later, found)
		return
	}
	for _, part := range sh.AllOf {
		into(part)
	}
	for _, part := range sh.AnyOf {
		into(part)
	}
	if sh.If != nil {
		if sh.If.holds(value) {
			into(sh.Then)
		} else {
			into(sh.Else)
		}
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			s.newer(definition, sh.Items, item, fmt.Sprintf("%s/%d", path, i), later, found)
		}
	case map[string]any:
		for name, member := range v {
			switch {
			case sh.Properties[name] != nil:
				s.newer(definition, sh.Properties[name], member, path+"/"+name, later, found)
			case sh.Extra != nil:
				s.newer(definition, sh.Extra, member, path+"/"+name, later, found)
			case sh.Properties != nil && knows(later, definition, name):
				found[strings.TrimPrefix(path+"/"+name, "/")] = true
			}
		}
	}
}

// knows says whether a later revision's definition of that name has the member.
func knows(later []*Set, definition, member string) bool {
	for _, set := range later {
		var sh shape
		if json.Unmarshal(set.index.definitions[definition], &sh) == nil && sh.Properties[member] != nil {
			return true
		}
	}
	return false
}
