package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The official examples are the specification's own messages: ours must accept each.
func TestOfficialExamples(t *testing.T) {
	root := filepath.Join(referenceData(t), "data", "mcp-schema")
	s := mustSet(t, "2026-07-28")
	paths, err := filepath.Glob(filepath.Join(root, "2026-07-28", "examples", "*", "*.json"))
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d example files (%v), want many", len(paths), err)
	}
	bare := map[string]bool{"ParseError": true, "InvalidRequestError": true, "MethodNotFoundError": true, "InvalidParamsError": true, "InternalError": true}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path))
		switch {
		case bare[name]:
			err = s.Check("Error", text)
		case strings.HasSuffix(name, "ResultResponse"):
			err = s.Response(methodOfDefinition(s, strings.TrimSuffix(name, "ResultResponse")), text)
		case strings.HasSuffix(name, "Request") && !s.embedded(name):
			err = s.Request(Client, text)
		case strings.HasSuffix(name, "Notification"):
			err = s.Notification(Server, text)
		case strings.HasSuffix(name, "Error"):
			err = s.ErrorResponse(text)
		default:
			err = s.Check(name, text)
		}
		if name == "ReadResourceResultResponse" && err != nil && strings.Contains(err.Error(), "ttlMs is required") {
			continue // the one example without the cache hints that its own schema demands
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Join(name, filepath.Base(path)), err)
		}
	}
}

// embedded says whether a request is one that travels only inside a result.
func (s *Set) embedded(definition string) bool {
	return strings.Contains(string(s.index.definitions["InputRequest"]), `"`+"#/definitions/"+definition+`"`)
}

func methodOfDefinition(s *Set, stem string) string {
	for _, from := range []Side{Client, Server} {
		for method, other := range s.index.requests[from] {
			if other == stem {
				return method
			}
		}
	}
	return ""
}

// official is the other people's schema of one revision.
type official struct {
	definitions map[string]any
	compiled    map[string]*jsonschema.Schema
	compiler    *jsonschema.Compiler
	prefix      string
}

func loadOfficial(t *testing.T, path string) *official {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &official{compiled: map[string]*jsonschema.Schema{}, compiler: jsonschema.NewCompiler()}
	root := doc.(map[string]any)
	delete(root, "$id")
	for _, key := range []string{"definitions", "$defs"} {
		if d, ok := root[key].(map[string]any); ok {
			o.definitions, o.prefix = d, "official.json#/"+key+"/"
		}
	}
	if err := o.compiler.AddResource("official.json", doc); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *official) accepts(t *testing.T, definition string, value any) bool {
	t.Helper()
	c := o.compiled[definition]
	if c == nil {
		var err error
		if c, err = o.compiler.Compile(o.prefix + definition); err != nil {
			t.Fatal(err)
		}
		o.compiled[definition] = c
	}
	return c.Validate(value) == nil
}

// sample builds a value that a schema of theirs describes, with every member it names. At
// each choice the alternative is picked by choice.
func (o *official) sample(s any, choice, depth int) any {
	schema, ok := s.(map[string]any)
	if !ok || depth > 7 {
		return map[string]any{}
	}
	if ref, ok := schema["$ref"].(string); ok {
		return o.sample(o.definitions[ref[strings.LastIndex(ref, "/")+1:]], choice, depth+1)
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if v, ok := schema["enum"].([]any); ok {
		return v[choice%len(v)]
	}
	if all, ok := schema["allOf"].([]any); ok {
		merged := map[string]any{}
		for _, part := range all {
			if m, ok := o.sample(part, choice, depth+1).(map[string]any); ok {
				for k, v := range m {
					merged[k] = v
				}
			}
		}
		return merged
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := schema[key].([]any); ok {
			return o.sample(alternatives[choice%len(alternatives)], choice, depth+1)
		}
	}
	kind := schema["type"]
	if kinds, ok := kind.([]any); ok {
		kind = kinds[choice%len(kinds)]
	}
	switch kind {
	case "string":
		switch schema["format"] {
		case "byte":
			return "QUJD"
		case "uri", "uri-template":
			return "https://example.test/x"
		}
		return "text"
	case "integer":
		return json.Number("1")
	case "number":
		return json.Number("0.5")
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		return []any{o.sample(schema["items"], choice, depth+1)}
	}
	value := map[string]any{}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, p := range properties {
			value[name] = o.sample(p, choice, depth+1)
			if name == "resultType" && value[name] == "text" {
				value[name] = "complete"
			}
		}
	}
	if extra, ok := schema["additionalProperties"].(map[string]any); ok && len(value) == 0 && len(extra) > 0 {
		value["key"] = o.sample(extra, choice, depth+1)
	}
	return value
}

// renamed maps official definitions to ours where the name differs.
var renamed = map[string]string{
	"JSONRPCError": "JSONRPCErrorResponse",
	"ParseError":   "Error", "InternalError": "Error", "InvalidParamsError": "Error", "InvalidRequestError": "Error", "MethodNotFoundError": "Error",
}

// unpaired are official definitions without a counterpart: bases that others inherit from,
// unions that our index replaces, and free-form JSON.
var unpaired = strings.Fields(`Annotated BaseMetadata Icons Request Notification PaginatedRequest PaginatedResult CacheableResult ResourceContents ResourceRequestParams
 InputResponseRequestParams TaskAugmentedRequestParams ClientResult ServerResult JSONRPCMessage JSONRPCResponse JSONRPCBatchRequest JSONRPCBatchResponse
 JSONObject JSONArray JSONValue MetaObject RequestMetaObject ResultMetaObject NotificationMetaObject SubscriptionsListenResultMetaObject ResultType EnumSchema SingleSelectEnumSchema MultiSelectEnumSchema
 ClientRequest ServerRequest ClientNotification ServerNotification
 WorkingTask InputRequiredTask CompletedTask FailedTask CancelledTask TasksExtensionCapability TaskSubscriptionNotifications TaskSubscriptionAcknowledgedNotifications`)

// exemptions are the places where ours decides otherwise on purpose.
var exemptions = []struct {
	reason  string
	applies func(revision, definition, path, mutation string) bool
}{
	{"ours refuses an input_required result that asks nothing and has no state: the text demands one of the two",
		func(_, d, _, _ string) bool { return d == "InputRequiredResult" }},
	{"ours knows which result types a method's results may have; theirs takes any string",
		func(_, _, path, _ string) bool { return strings.HasSuffix(path, "/resultType") }},
	{"a form's number field is answered by a number; theirs took the integers only (erratum)",
		func(_, d, path, m string) bool {
			return d == "ElicitResult" && strings.Contains(path, "/content/") && m == "1.5"
		}},
	{"free-form objects hold any JSON value; their JSONValue forgets null and fractions",
		func(_, _, path, m string) bool {
			return (m == "null" || m == "1.5") && (strings.Contains(path, "apabilities") || strings.Contains(path, "/metadata/") || strings.Contains(path, "/key"))
		}},
	{"an enum with a broken list of values is no string schema either; theirs falls back to the plain string schema",
		func(_, d, path, _ string) bool { return strings.Contains(path, "/enum") }},
	{"every request of 2026-07-28 carries its _meta; their base type leaves it to each method",
		func(revision, d, _, _ string) bool { return d == "JSONRPCRequest" && revision == "2026-07-28" }},
	{"ours has one definition for the standard errors, whose code says which it is",
		func(_, d, path, _ string) bool { return renamed[d] == "Error" && path == "/code" }},
	{"the message of an input request names its method; theirs takes an answer for any kind",
		func(_, d, path, _ string) bool { return d == "InputResponses" || d == "InputResponse" }},
}

// TestAgreesWithTheOfficialSchemas mutates sample messages built from the official schemas
// (drops each member, gives each value a wrong type or an unknown name) and demands that
// both schemas come to the same verdict, or that a named exemption says why not.
func TestAgreesWithTheOfficialSchemas(t *testing.T) {
	root := filepath.Join(referenceData(t), "data")
	for _, revision := range Revisions() {
		t.Run(revision, func(t *testing.T) {
			compareWith(t, revision, loadOfficial(t, filepath.Join(root, "mcp-schema", revision, "schema.json")), nil)
		})
	}
	t.Run("tasks", func(t *testing.T) {
		only := strings.Fields("CreateTaskResult GetTaskRequest GetTaskResult UpdateTaskRequest UpdateTaskResult CancelTaskRequest CancelTaskResult DetailedTask Task TaskStatus")
		compareWith(t, "2026-07-28", loadOfficial(t, filepath.Join(root, "tasks-extension", "schema.json")), only)
	})
}

func compareWith(t *testing.T, revision string, o *official, only []string) {
	s := mustSet(t, revision)
	names := only
	if names == nil {
		for name := range o.definitions {
			names = append(names, name)
		}
		sort.Strings(names)
	}
	compared, exempt, differences, leftOut := 0, 0, 0, 0
	for _, name := range names {
		if contains(unpaired, name) || strings.HasSuffix(name, "ResultResponse") {
			continue
		}
		ours := name
		if r, ok := renamed[name]; ok {
			ours = r
		}
		if name == "JSONRPCResponse" {
			ours = "JSONRPCResultResponse"
		}
		if !s.Has(ours) {
			t.Errorf("no definition for the official %s", name)
			continue
		}
		seen := map[string]bool{}
		for choice := range 5 {
			value := o.sample(o.definitions[name], choice, 0)
			envelope := envelopeFor(name, value) && !s.embedded(name) && name != "InputRequest"
			depth := 4
			if choice > 0 {
				depth = 2 // the other alternatives differ near the top
			}
			step, nth := stride(value, depth), -1
			each(value, depth, func(path, mutation string, mutated any) {
				if nth++; nth%step != 0 {
					leftOut++
					return
				}
				if envelope && mutated != nil {
					mutated = withEnvelope(name, mutated)
				}
				text, err := json.Marshal(mutated)
				if err != nil {
					t.Fatal(err)
				}
				if seen[string(text)] {
					return
				}
				seen[string(text)] = true
				theirs := o.accepts(t, name, mutated)
				mine := s.Check(ours, text)
				if envelope {
					base := "JSONRPCRequest"
					if strings.HasSuffix(name, "Notification") {
						base = "JSONRPCNotification"
					}
					theirs = theirs && (o.definitions[base] == nil || o.accepts(t, base, mutated))
					if mine == nil {
						mine = s.Check(base, text)
					}
				}
				if mine == nil && s.Has(name) && strings.HasSuffix(name, "Error") && name != "Error" {
					mine = s.Check("JSONRPCErrorResponse", text) // ours says only what the code adds
				}
				compared++
				if theirs == (mine == nil) {
					return
				}
				for _, e := range exemptions {
					if e.applies(revision, name, path, mutation) {
						exempt++
						return
					}
				}
				if differences++; differences <= 25 {
					t.Errorf("%s %s → %s: theirs %v, ours %v\n\t%.400s", name, path, mutation, theirs, mine, text)
				}
			})
		}
	}
	t.Logf("%d messages compared, %d under an exemption, %d differ", compared, exempt, differences)
	if leftOut > 0 {
		t.Logf("%d mutations were left out: at most %d a message under the race detector; without -race all are tried", leftOut, maxMutations)
	}
}

// stride is n when every nth mutation of value is to be tried so that there are no more
// than maxMutations: spread over the message, and the same ones each time.
func stride(value any, depth int) int {
	total := 0
	each(value, depth, func(string, string, any) { total++ })
	n := 1 + (total-1)/maxMutations // the value itself is among them: total is 1 at least
	// A member is dropped once and gets seven wrong values: with a factor in common the
	// same mutation would be tried of every member.
	for n > 1 && (n%2 == 0 || n%7 == 0) {
		n++
	}
	return n
}

// envelopeFor says whether the definition is a whole message whose official form may come
// without its envelope (the older revisions leave jsonrpc and id to a base type).
func envelopeFor(name string, value any) bool {
	m, ok := value.(map[string]any)
	return ok && m["method"] != nil && (strings.HasSuffix(name, "Request") || strings.HasSuffix(name, "Notification")) && !strings.HasPrefix(name, "JSONRPC") && m["method"] != "text"
}

func withEnvelope(name string, value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{"jsonrpc": "2.0"}
	if strings.HasSuffix(name, "Request") {
		out["id"] = json.Number("1")
	}
	for k, v := range m {
		out[k] = v
	}
	if params, ok := m["params"].(map[string]any); ok && strings.HasSuffix(name, "TaskRequest") && m["method"] != "tasks/result" && params["_meta"] == nil {
		// The extension's schema leaves to the core what every request carries.
		params = copyWithout(params, "")
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
		out["params"] = params
	}
	return out
}

// each calls visit with the value itself and with every mutation of it down to depth levels.
func each(value any, depth int, visit func(path, mutation string, mutated any)) {
	visit("", "unchanged", value)
	mutate(value, "", depth, func(path, mutation string, v any, drop bool) { visit(path, mutation, v) })
}

// wrongValues are what each value of a message is replaced by; of its own kind, too.
var wrongValues = map[string]any{"null": nil, "5": json.Number("5"), "1.5": json.Number("1.5"), "string": "zz", "true": true, "{}": map[string]any{}, "[]": []any{}}

func mutate(value any, path string, depth int, emit func(path, mutation string, mutated any, drop bool)) {
	for _, name := range slices.Sorted(maps.Keys(wrongValues)) {
		if s, ok := value.(string); ok && name == "string" && (s == "QUJD" || strings.HasPrefix(s, "https:")) {
			continue // formats: theirs are notes, ours are checked
		}
		emit(path, name, wrongValues[name], false)
	}
	if depth == 0 {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			without := copyWithout(v, key)
			emit(path+"/"+key, "dropped", without, true)
			mutate(v[key], path+"/"+key, depth-1, func(p, m string, changed any, drop bool) {
				whole := copyWithout(v, "")
				whole[key] = changed
				emit(p, m, whole, drop)
			})
		}
	case []any:
		for i := range v {
			mutate(v[i], fmt.Sprintf("%s/%d", path, i), depth-1, func(p, m string, changed any, drop bool) {
				whole := append([]any{}, v...)
				whole[i] = changed
				emit(p, m, whole, drop)
			})
		}
	}
}

func copyWithout(m map[string]any, key string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
