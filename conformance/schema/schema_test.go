package schema

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"
)

// keywords are those that draft-07 has and the validator checks; the value says whether a
// keyword holds a schema, a map of schemas or a list of them.
var keywords = map[string]string{
	"type": "", "required": "", "enum": "", "const": "", "format": "", "pattern": "", "minimum": "", "maximum": "", "maxItems": "", "$ref": "",
	"properties": "map", "additionalProperties": "schema", "items": "schema", "if": "schema", "then": "schema", "else": "schema", "anyOf": "list", "allOf": "list",
}

func TestOnlyKeywordsTheValidatorKnows(t *testing.T) {
	for _, r := range revisions {
		for _, file := range r.files {
			text, err := files.ReadFile(file + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for key := range doc {
				if !slices.Contains([]string{"$schema", "title", "definitions"}, key) {
					t.Errorf("%s: unknown member %q at the root", file, key)
				}
			}
			for name, d := range doc["definitions"].(map[string]any) {
				walkKeywords(t, file+" "+name, d)
			}
		}
	}
}

func walkKeywords(t *testing.T, where string, s any) {
	t.Helper()
	schema, ok := s.(map[string]any)
	if !ok {
		t.Errorf("%s: %v is no schema object", where, s)
		return
	}
	if schema["$ref"] != nil && len(schema) > 1 {
		t.Errorf("%s: draft-07 ignores what stands beside $ref", where)
	}
	for key, value := range schema {
		kind, known := keywords[key]
		switch {
		case !known:
			t.Errorf("%s: keyword %q", where, key)
		case key == "format" && !gojsonschema.FormatCheckers.Has(value.(string)):
			t.Errorf("%s: format %q is not checked by the validator", where, value)
		case kind == "schema":
			walkKeywords(t, where+"/"+key, value)
		case kind == "map":
			for name, sub := range value.(map[string]any) {
				walkKeywords(t, where+"/"+name, sub)
			}
		case kind == "list":
			for _, sub := range value.([]any) {
				walkKeywords(t, where+"/"+key, sub)
			}
		}
	}
}

func TestEveryDefinitionCompilesAndEveryMessageHasOne(t *testing.T) {
	for _, revision := range Revisions() {
		s := mustSet(t, revision)
		for _, name := range s.Definitions() {
			if _, err := s.compile(name); err != nil {
				t.Errorf("%s: %v", revision, err)
			}
		}
		for _, from := range []Side{Client, Server} {
			for _, method := range s.Requests(from) {
				for kind, definition := range s.index.results[method] {
					if !s.Has(definition) {
						t.Errorf("%s %s: result %q wants a definition %s", revision, method, kind, definition)
					}
				}
			}
		}
	}
}

func TestMethodsOfEachRevision(t *testing.T) {
	for _, tc := range []struct {
		revision         string
		client, server   int // requests
		clientN, serverN int // notifications
	}{
		{"2024-11-05", 13, 3, 4, 7},
		{"2025-03-26", 13, 3, 4, 7},
		{"2025-06-18", 13, 4, 4, 7},
		{"2025-11-25", 17, 8, 5, 9},
		{"2026-07-28", 13, 0, 1, 9},
	} {
		s := mustSet(t, tc.revision)
		got := []int{len(s.Requests(Client)), len(s.Requests(Server)), len(s.Notifications(Client)), len(s.Notifications(Server))}
		if diff := cmp.Diff([]int{tc.client, tc.server, tc.clientN, tc.serverN}, got); diff != "" {
			t.Errorf("%s: number of messages (-want +got):\n%s\nclient %v\nserver %v", tc.revision, diff, s.Requests(Client), s.Requests(Server))
		}
	}
}

func TestFrames(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	request := func(s *Set, frame string) error { return s.Request(Client, []byte(frame)) }
	fromServer := func(s *Set, frame string) error { return s.Notification(Server, []byte(frame)) }
	result := func(method string) func(*Set, string) error {
		return func(s *Set, frame string) error { return s.Response(method, []byte(frame)) }
	}
	failure := func(s *Set, frame string) error { return s.ErrorResponse([]byte(frame)) }
	for name, tc := range map[string]struct {
		revision string
		check    func(*Set, string) error
		frame    string
		want     string // part of the error; empty: valid
	}{
		"ping":                     {"2024-11-05", request, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ""},
		"ping is gone":             {"2026-07-28", request, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + meta + `}}`, "no such message"},
		"id of the wrong type":     {"2024-11-05", request, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "id: Invalid type"},
		"fractional id":            {"2025-11-25", request, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "id: Invalid type"},
		"meta is missing":          {"2026-07-28", request, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "_meta is required"},
		"meta is whole":            {"2026-07-28", request, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`, ""},
		"extension request":        {"2026-07-28", request, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t",` + meta + `}}`, ""},
		"progress":                 {"2025-06-18", fromServer, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}`, ""},
		"progress without token":   {"2025-06-18", fromServer, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.5}}`, "params: progressToken is required"},
		"initialized by a server":  {"2025-06-18", fromServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "no such message"},
		"text result":              {"2025-06-18", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}`, ""},
		"text is missing":          {"2025-06-18", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}]}}`, "result/content/0: text is required"},
		"audio before its time":    {"2024-11-05", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}}`, "result/content/0/type"},
		"null cursor":              {"2025-11-25", result("tools/list"), `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":null}}`, "result/nextCursor: Invalid type"},
		"null list":                {"2025-11-25", result("tools/list"), `{"jsonrpc":"2.0","id":1,"result":{"tools":null}}`, "result/tools: Invalid type"},
		"cache hints are missing":  {"2026-07-28", result("tools/list"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}`, "result: ttlMs is required"},
		"input required":           {"2026-07-28", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}`, ""},
		"input required of what":   {"2026-07-28", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}`, "result: "},
		"input for a list":         {"2026-07-28", result("tools/list"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}`, "result: tools is required"},
		"task handle":              {"2026-07-28", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}`, ""},
		"task handle elsewhere":    {"2026-07-28", result("prompts/get"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":null}}`, "result: messages is required"},
		"finished task, no result": {"2026-07-28", result("tasks/get"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","taskId":"t","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttlMs":1}}`, "result is required"},
		"core task":                {"2025-11-25", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}}`, ""},
		"core task without ttl":    {"2025-11-25", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x"}}}`, "result/task: ttl is required"},
		"no base64":                {"2025-11-25", result("resources/read"), `{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"a:b","blob":"%%"}]}}`, "result/contents/0"},
		"result of an extension":   {"2026-07-28", result("vendor/thing"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, ""},
		"result is no object":      {"2024-11-05", result("ping"), `{"jsonrpc":"2.0","id":1,"result":[]}`, "result: Invalid type"},
		"error":                    {"2024-11-05", failure, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no"}}`, ""},
		"error with a null id":     {"2025-11-25", failure, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, ""},
		"error without id":         {"2024-11-05", failure, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}`, ""},
		"fractional code":          {"2024-11-05", failure, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601.5,"message":"no"}}`, "error/code: Invalid type"},
		"version error, no data":   {"2026-07-28", failure, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}`, "error: data is required"},
		"version error":            {"2026-07-28", failure, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}}`, ""},
		"a number without end":     {"2026-07-28", result("tools/call"), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"structuredContent":1e999999999}}`, "exponent beyond"},
		"not JSON":                 {"2026-07-28", failure, `{"jsonrpc":`, "unexpected end"},
	} {
		err := tc.check(mustSet(t, tc.revision), tc.frame)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestUnknownRevisionAndDefinition(t *testing.T) {
	if _, err := For("1999-01-01"); err == nil || !strings.Contains(err.Error(), "2026-07-28") {
		t.Errorf("For an unknown revision: %v, want the list of known ones", err)
	}
	if err := mustSet(t, "2024-11-05").Check("NoSuchThing", []byte(`{}`)); err == nil {
		t.Error("a definition that does not exist accepted a value")
	}
	err := mustSet(t, "2024-11-05").Request(Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`))
	if !errors.Is(err, ErrUnknownMessage) {
		t.Errorf("a method of a later revision: %v, want ErrUnknownMessage", err)
	}
}

func mustSet(t *testing.T, revision string) *Set {
	t.Helper()
	s, err := For(revision)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// referenceData is the folder with the official schemas and example messages; tests that
// need it are skipped where it is not given.
func referenceData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FABRO_REFERENCE_DATA")
	if dir == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the official schemas are not here to compare with")
	}
	return dir
}
