package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// serversKey is the member that holds a host's servers by name.
const serversKey = "mcpServers"

// Edit returns src with `mcpServers.<name>` set to the entry. Everything else
// keeps its bytes: other members, their order, comments, indentation, a
// byte-order mark, CRLF. An entry that is already so gives src back unchanged.
//
// What the user added to an entry of the same program stays, as Entry.over says.
// Members of the entry other than command and args (a user's env, disabled …)
// stay, but for those that make it a server over HTTP. Comments in src are an error unless comments says that the host takes
// them. Errors name line and column and mean that nothing should be written.
func Edit(src []byte, name string, entry Entry, comments bool) ([]byte, error) {
	body, bom := bytes.CutPrefix(src, []byte("\xef\xbb\xbf"))
	doc, err := hujson.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if !comments && !doc.IsStandard() {
		return nil, errors.New("not valid JSON: it has comments or trailing commas, which this host does not read")
	}
	if dup := duplicate(doc, ""); dup != "" {
		return nil, fmt.Errorf("member %s occurs twice; remove one of them", dup)
	}
	root, ok := doc.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it must contain a JSON object")
	}

	style := styleOf(body)
	servers, err := objectMember(root, serversKey, style, 1)
	if err != nil {
		return nil, err
	}
	own, err := objectMember(servers, name, style, 2)
	if err != nil {
		return nil, err
	}
	if old, err := plain(body); err == nil {
		entry = entry.over(entryIn(old, name))
	}
	command, err := json.Marshal(entry.Command)
	if err != nil {
		return nil, err
	}
	setMember(own, "command", command, style, 3)
	setMember(own, "args", style.list(entry.Args, 3), style, 3)
	own.Members = slices.DeleteFunc(own.Members, otherTransport)

	out := doc.Pack()
	if bom {
		out = append([]byte("\xef\xbb\xbf"), out...)
	}
	return out, verify(out, src, name, entry)
}

// verify reads the edited file again: the entry must be there, and nothing else
// may have changed.
func verify(out, src []byte, name string, entry Entry) error {
	after, err := plain(out)
	if err != nil {
		return fmt.Errorf("editing would have broken the file: %w", err)
	}
	before, err := plain(src)
	if err != nil {
		return err
	}
	servers, _ := after[serversKey].(map[string]any)
	own, _ := servers[name].(map[string]any)
	args := make([]any, len(entry.Args))
	for i, a := range entry.Args {
		args[i] = a
	}
	if own["command"] != entry.Command || !equal(own["args"], args) {
		return errors.New("editing did not produce the wanted entry")
	}
	old, _ := before[serversKey].(map[string]any)
	if old == nil {
		old = map[string]any{}
		before[serversKey] = old
	}
	old[name] = own
	if !equal(before, after) {
		return errors.New("editing would have changed more than the entry")
	}
	return nil
}

func plain(src []byte) (map[string]any, error) {
	std, err := hujson.Standardize(bytes.TrimPrefix(bytes.Clone(src), []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, err
	}
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(std))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// duplicate names a member that an object has twice, or is empty. Which of the
// two a host would read is its own affair, so neither is edited.
func duplicate(v hujson.Value, at string) string {
	switch v := v.Value.(type) {
	case *hujson.Object:
		seen := map[string]bool{}
		for _, m := range v.Members {
			key := m.Name.Value.(hujson.Literal).String()
			path := strings.TrimPrefix(at+"."+key, ".")
			if seen[key] {
				return path
			}
			seen[key] = true
			if dup := duplicate(m.Value, path); dup != "" {
				return dup
			}
		}
	case *hujson.Array:
		for i, e := range v.Elements {
			if dup := duplicate(e, fmt.Sprintf("%s[%d]", at, i)); dup != "" {
				return dup
			}
		}
	}
	return ""
}

func find(obj *hujson.Object, key string) *hujson.ObjectMember {
	for i := range obj.Members {
		if obj.Members[i].Name.Value.(hujson.Literal).String() == key {
			return &obj.Members[i]
		}
	}
	return nil
}

// objectMember returns the object under key, adding an empty one where there is
// none. depth is the nesting of the member: 1 for those of the document.
func objectMember(obj *hujson.Object, key string, style style, depth int) (*hujson.Object, error) {
	if m := find(obj, key); m != nil {
		inner, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("member %s must contain a JSON object, not %s", key, m.Value.Pack())
		}
		return inner, nil
	}
	inner := &hujson.Object{AfterExtra: style.indent(depth)}
	appendMember(obj, key, hujson.Value{Value: inner}, style, depth)
	return inner, nil
}

// otherTransport tells the members that make an entry one of a server over HTTP: a
// host that finds them beside a command would not run the command.
func otherTransport(m hujson.ObjectMember) bool {
	switch m.Name.Value.(hujson.Literal).String() {
	case "url", "serverUrl", "httpUrl", "headers":
		return true
	case "type", "transport":
		value, ok := m.Value.Value.(hujson.Literal)
		return !ok || value.String() != "stdio"
	}
	return false
}

func setMember(obj *hujson.Object, key string, text []byte, style style, depth int) {
	value, err := hujson.Parse(text)
	if err != nil {
		panic(err) // text comes from json.Marshal or style.list
	}
	m := find(obj, key)
	if m == nil {
		appendMember(obj, key, value, style, depth)
		return
	}
	old, _ := hujson.Standardize(m.Value.Pack())
	if !equal(json.RawMessage(old), json.RawMessage(text)) {
		m.Value.Value = value.Value
	}
}

// appendMember adds a member at the end, on a line of its own in the style of
// the file. What stood between the last member and the brace (a comment, say)
// stays before the new one.
func appendMember(obj *hujson.Object, key string, value hujson.Value, style style, depth int) {
	name, _ := json.Marshal(key)
	value.BeforeExtra = style.colon
	tail := obj.AfterExtra
	before := style.indent(depth)
	if i := bytes.LastIndexAny(tail, "\n"); len(bytes.TrimSpace(tail)) > 0 && i >= 0 {
		before = append(bytes.TrimRight(tail, " \t\r\n"), style.indent(depth)...)
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: before, Value: hujson.Literal(name)},
		Value: value,
	})
	obj.AfterExtra = style.indent(depth - 1)
}
