// Package schema states what a message of the Model Context Protocol may look like: one
// JSON Schema for each protocol revision and one for the tasks extension, in this
// project's own words, and the code that checks a frame against them.
//
// A file names each message twice: by a definition ("CallToolRequest", "CallToolResult")
// and in one of four unions that say who sends it (ClientRequest, ServerRequest,
// ClientNotification, ServerNotification). The method is the const in the request's
// definition and a result carries its request's name, so that nothing about a revision is
// written in Go: adding a revision is adding a file.
//
// The schemas keep to draft-07, because the validator ignores newer keywords in silence; a
// test holds them to the keywords it knows. They are open, as the specification's are:
// members they do not name are allowed. Newer reports those that only a later revision has.
package schema

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/xeipuuv/gojsonschema"
)

//go:embed *.json
var files embed.FS

// Side is one end of the connection.
type Side string

// The two sides; a message is always named by the one that sends it.
const (
	Client Side = "client"
	Server Side = "server"
)

// revisions lists the files by revision; a revision may have extensions beside it.
var revisions = []struct {
	name  string
	files []string
}{
	{"2024-11-05", []string{"2024-11-05"}},
	{"2025-03-26", []string{"2025-03-26"}},
	{"2025-06-18", []string{"2025-06-18"}},
	{"2025-11-25", []string{"2025-11-25"}},
	{"2026-07-28", []string{"2026-07-28", "tasks"}},
}

// Revisions returns the revisions that have a schema, oldest first.
func Revisions() []string {
	var names []string
	for _, r := range revisions {
		names = append(names, r.name)
	}
	return names
}

// ErrUnknownMessage says that a revision has no such request or notification from that side.
var ErrUnknownMessage = errors.New("no such message in this revision")

// Violation lists where a message breaks its schema.
type Violation struct {
	Revision   string
	Definition string   // the definition in the revision's file that was broken
	Problems   []string // "place: what is wrong", the place as a path from the frame's root
}

func (v *Violation) Error() string {
	return fmt.Sprintf("not a %s of %s: %s", v.Definition, v.Revision, strings.Join(v.Problems, "; "))
}

// Set is everything a revision says about messages, its extensions included. It is safe
// for concurrent use.
type Set struct {
	revision string
	index    index

	mu       sync.Mutex // protects the fields below
	loader   *gojsonschema.SchemaLoader
	compiled map[string]*gojsonschema.Schema // by definition
}

// index is what the unions of a revision's files say.
type index struct {
	files         map[string]string            // definition → the file it stands in
	definitions   map[string]json.RawMessage   // definition → its schema
	requests      map[Side]map[string]string   // method → stem: "CallTool"
	notifications map[Side]map[string]string   // method → definition
	results       map[string]map[string]string // method → result type ("" when there is none) → definition
}

var sets = func() map[string]func() (*Set, error) {
	m := map[string]func() (*Set, error){}
	for _, r := range revisions {
		m[r.name] = sync.OnceValues(func() (*Set, error) { return load(r.name, r.files) })
	}
	return m
}()

// For returns the schemas of a revision. They are read on first use and shared.
func For(revision string) (*Set, error) {
	get, ok := sets[revision]
	if !ok {
		return nil, fmt.Errorf("no schema for revision %q; there is one for %s", revision, strings.Join(Revisions(), ", "))
	}
	return get()
}

func load(revision string, names []string) (*Set, error) {
	s := &Set{revision: revision, compiled: map[string]*gojsonschema.Schema{}, loader: gojsonschema.NewSchemaLoader()}
	s.loader.Draft, s.loader.AutoDetect = gojsonschema.Draft7, false
	var parsed []map[string]json.RawMessage
	for _, name := range names {
		text, err := files.ReadFile(name + ".json")
		if err != nil {
			return nil, err
		}
		var file struct{ Definitions map[string]json.RawMessage }
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		if err := s.loader.AddSchema(address(name), gojsonschema.NewBytesLoader(text)); err != nil {
			return nil, fmt.Errorf("%s.json: %w", name, err)
		}
		parsed = append(parsed, file.Definitions)
	}
	ix, err := newIndex(names, parsed)
	if err != nil {
		return nil, fmt.Errorf("revision %s: %w", revision, err)
	}
	s.index = ix
	return s, nil
}

// address is the name under which a file is known to the validator. Nothing is fetched from it.
func address(file string) string { return "https://schema.invalid/" + file + ".json" }

// Revision is the revision's name.
func (s *Set) Revision() string { return s.revision }

// Requests returns the methods that a side may request, sorted.
func (s *Set) Requests(from Side) []string { return sorted(s.index.requests[from]) }

// Notifications returns the methods of the notifications that a side may send, sorted.
func (s *Set) Notifications(from Side) []string { return sorted(s.index.notifications[from]) }

// Request checks a whole request frame, envelope included. A method that the side cannot
// request in this revision gives an error that wraps ErrUnknownMessage.
func (s *Set) Request(from Side, frame []byte) error {
	method, err := methodOf(frame)
	if err != nil {
		return err
	}
	stem, ok := s.index.requests[from][method]
	if !ok {
		return fmt.Errorf("request %s from the %s in %s: %w", method, from, s.revision, ErrUnknownMessage)
	}
	return s.all(frame, "JSONRPCRequest", stem+"Request")
}

// Notification checks a whole notification frame, envelope included.
func (s *Set) Notification(from Side, frame []byte) error {
	method, err := methodOf(frame)
	if err != nil {
		return err
	}
	definition, ok := s.index.notifications[from][method]
	if !ok {
		return fmt.Errorf("notification %s from the %s in %s: %w", method, from, s.revision, ErrUnknownMessage)
	}
	return s.all(frame, "JSONRPCNotification", definition)
}

// Response checks a whole frame that answers a request of the named method with a result.
// A method that is unknown in this revision is held to what every result must be.
func (s *Set) Response(method string, frame []byte) error {
	if err := s.Check("JSONRPCResultResponse", frame); err != nil {
		return err
	}
	var reply struct{ Result json.RawMessage }
	if err := json.Unmarshal(frame, &reply); err != nil {
		return err
	}
	return within(s.Check(s.ResultDefinition(method, reply.Result), reply.Result), "result")
}

// ResultDefinition names the definition that a result of a method has to satisfy. Where a
// method has several kinds of result (an input_required result, a task handle) the result
// itself says which it is.
func (s *Set) ResultDefinition(method string, result []byte) string {
	kinds := s.index.results[method]
	if kinds == nil {
		return "Result"
	}
	var kind struct {
		ResultType json.RawMessage
		Task       json.RawMessage
	}
	if json.Unmarshal(result, &kind) == nil {
		var name string
		if json.Unmarshal(kind.ResultType, &name) == nil && kinds[name] != "" {
			return kinds[name]
		}
		if kind.Task != nil && kinds[taskHandle] != "" {
			return kinds[taskHandle]
		}
	}
	return kinds[""]
}

// ErrorResponse checks a whole frame that answers with an error, and the error's data
// where its code has a definition in this revision. An id that is null or absent passes in
// every revision: JSON-RPC wants null where the id could not be read, the newer schemas
// want it absent, the older ones do not foresee the case.
func (s *Set) ErrorResponse(frame []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(frame, &members); err != nil {
		return fmt.Errorf("error response: %w", err)
	}
	checked := frame
	if id, ok := members["id"]; !ok || string(id) == "null" {
		members["id"] = json.RawMessage("0")
		checked, _ = json.Marshal(members) // raw messages that were just decoded
	}
	if err := s.Check("JSONRPCErrorResponse", checked); err != nil {
		return err
	}
	var body struct{ Error struct{ Code json.Number } }
	if err := json.Unmarshal(checked, &body); err != nil {
		return err
	}
	if definition := s.errorDefinition(body.Error.Code.String()); definition != "" {
		return s.Check(definition, checked)
	}
	return nil
}

// errorDefinition finds the definition of an error code that has one of its own.
func (s *Set) errorDefinition(code string) string {
	for name, text := range s.index.definitions {
		if !strings.HasSuffix(name, "Error") || name == "Error" {
			continue
		}
		var d struct {
			Properties struct {
				Error struct {
					Properties struct{ Code struct{ Const json.Number } }
				}
			}
		}
		if json.Unmarshal(text, &d) == nil && d.Properties.Error.Properties.Code.Const.String() == code {
			return name
		}
	}
	return ""
}

// Has says whether the revision has a definition of that name.
func (s *Set) Has(definition string) bool { return s.index.files[definition] != "" }

// Definitions returns the names of all definitions, sorted.
func (s *Set) Definitions() []string { return sorted(s.index.files) }

// Check holds a JSON value to one definition by name.
func (s *Set) Check(definition string, value []byte) error {
	if err := boundNumbers(value); err != nil {
		return &Violation{s.revision, definition, []string{err.Error()}}
	}
	schema, err := s.compile(definition)
	if err != nil {
		return err
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(value))
	if err != nil {
		return &Violation{s.revision, definition, []string{"not JSON: " + err.Error()}}
	}
	if result.Valid() {
		return nil
	}
	return &Violation{s.revision, definition, problems(result.Errors())}
}

func (s *Set) all(frame []byte, definitions ...string) error {
	for _, d := range definitions {
		if err := s.Check(d, frame); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) compile(definition string) (*gojsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.compiled[definition]; c != nil {
		return c, nil
	}
	file, ok := s.index.files[definition]
	if !ok {
		return nil, fmt.Errorf("revision %s has no definition %s", s.revision, definition)
	}
	c, err := s.loader.Compile(gojsonschema.NewReferenceLoader(address(file) + "#/definitions/" + definition))
	if err != nil {
		return nil, fmt.Errorf("definition %s of %s: %w", definition, s.revision, err)
	}
	s.compiled[definition] = c
	return c, nil
}

// problems turns the validator's findings into lines, without those that only repeat that
// a branch inside failed.
func problems(found []gojsonschema.ResultError) []string {
	var lines []string
	for _, e := range found {
		switch e.Type() {
		case "condition_then", "condition_else", "number_all_of":
			continue
		}
		place := strings.TrimPrefix(strings.TrimPrefix(e.Context().String("/"), "(root)"), "/")
		if place == "" {
			place = "the frame"
		}
		line := place + ": " + e.Description()
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if lines == nil {
		lines = []string{"does not match"}
	}
	return lines
}

// within puts a prefix before the places of a violation.
func within(err error, prefix string) error {
	var v *Violation
	if !errors.As(err, &v) {
		return err
	}
	for i, p := range v.Problems {
		v.Problems[i] = prefix + "/" + strings.TrimPrefix(p, "the frame: ")
		if strings.HasPrefix(p, "the frame: ") {
			v.Problems[i] = prefix + ": " + strings.TrimPrefix(p, "the frame: ")
		}
	}
	return v
}

func methodOf(frame []byte) (string, error) {
	var m struct{ Method *string }
	if err := json.Unmarshal(frame, &m); err != nil {
		return "", fmt.Errorf("frame: %w", err)
	}
	if m.Method == nil {
		return "", errors.New("frame: no method")
	}
	return *m.Method, nil
}

// maxExponent bounds the numbers that are handed to the validator, which turns each into
// an exact fraction: 1e999999999 would take gigabytes.
const maxExponent = 400

// boundNumbers refuses JSON numbers with an exponent beyond maxExponent.
func boundNumbers(value []byte) error {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return nil // the validator reports what is no JSON
		}
		n, ok := token.(json.Number)
		if !ok {
			continue
		}
		_, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e")
		if !ok {
			continue
		}
		digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
		if len(digits) > 3 || len(digits) == 3 && digits > fmt.Sprint(maxExponent) {
			return fmt.Errorf("the number %.40s has an exponent beyond %d", n, maxExponent)
		}
	}
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
