package protocol_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fabro-mcp/conformance/schema"
)

// referenceData is where the official schemas are; empty where they are not. It is
// asked for while a test runs, so that a remembered verdict of go test depends on it.
func referenceData() string { return os.Getenv("FABRO_REFERENCE_DATA") }

// official compiles definitions of the official schemas, each once.
var official struct {
	sync.Mutex
	compilers map[string]*jsonschema.Compiler
	compiled  map[string]*jsonschema.Schema
}

func officialSchema(t testing.TB, file, pointer string) *jsonschema.Schema {
	t.Helper()
	official.Lock()
	defer official.Unlock()
	if official.compiled == nil {
		official.compilers, official.compiled = make(map[string]*jsonschema.Compiler), make(map[string]*jsonschema.Schema)
	}
	url := "file:///" + file
	if s := official.compiled[url+pointer]; s != nil {
		return s
	}
	c := official.compilers[url]
	if c == nil {
		raw, err := os.ReadFile(filepath.Join(referenceData(), "data", file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c = jsonschema.NewCompiler()
		delete(doc.(map[string]any), "$id")
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
		official.compilers[url] = c
	}
	s, err := c.Compile(url + pointer)
	if err != nil {
		t.Fatal(err)
	}
	official.compiled[url+pointer] = s
	return s
}

var resultTypes = map[string]string{
	"initialize": "InitializeResult", "ping": "EmptyResult", "server/discover": "DiscoverResult", "subscriptions/listen": "SubscriptionsListenResult",
	"tools/list": "ListToolsResult", "tools/call": "CallToolResult", "resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult",
	"resources/read": "ReadResourceResult", "resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult", "prompts/list": "ListPromptsResult",
	"prompts/get": "GetPromptResult", "completion/complete": "CompleteResult", "logging/setLevel": "EmptyResult",
	"tasks/get": "GetTaskResult", "tasks/result": "GetTaskPayloadResult", "tasks/cancel": "CancelTaskResult", "tasks/update": "UpdateTaskResult",
}

// sent is what the test remembers of a request, to judge the response by.
type sent struct{ method, revision string }

// judge holds the server's messages against the schemas of the revision that is in
// force for each: the project's own, and where they are at hand the official ones.
type judge struct {
	t testing.TB

	mu      sync.Mutex
	session string
	sent    map[string]sent
}

type wireMessage struct {
	ID     json.RawMessage
	Method *string
	Params struct {
		Version string                     `json:"protocolVersion"`
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
	Result json.RawMessage
	Error  json.RawMessage
}

func (j *judge) sending(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line = strings.TrimPrefix(line, "\xef\xbb\xbf")
	var all []json.RawMessage
	if json.Unmarshal([]byte(line), &all) != nil {
		all = []json.RawMessage{json.RawMessage(line)}
	}
	for _, one := range all {
		var m wireMessage
		if json.Unmarshal(one, &m) != nil || m.Method == nil || m.ID == nil {
			continue
		}
		if j.sent == nil {
			j.sent = make(map[string]sent)
		}
		var claim string
		json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/protocolVersion"], &claim)
		s := sent{method: *m.Method}
		if claim == "2026-07-28" {
			s.revision = claim
		}
		if _, dup := j.sent[string(m.ID)]; !dup {
			j.sent[string(m.ID)] = s
		}
	}
}

func (j *judge) received(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if line[0] == '[' {
		var all []json.RawMessage
		json.Unmarshal([]byte(line), &all)
		for _, one := range all {
			j.judgeLocked(one)
		}
		return
	}
	j.judgeLocked([]byte(line))
}

func (j *judge) judgeLocked(line []byte) {
	var m wireMessage
	if err := json.Unmarshal(line, &m); err != nil {
		j.t.Errorf("no message: %s", line)
		return
	}
	switch {
	case m.Method != nil && m.ID != nil:
		j.own(j.session, line, func(s *schema.Set) error { return s.Request(schema.Server, line) })
		j.hold(line, j.session, "ServerRequest")
	case m.Method != nil:
		j.judgeNotification(line, &m)
	case m.Error != nil:
		revision := j.session
		if s, ok := j.sent[string(m.ID)]; ok && s.revision != "" || revision == "" {
			revision = "2026-07-28"
		}
		j.own(revision, line, func(s *schema.Set) error { return s.ErrorResponse(line) })
		if string(m.ID) == "null" { // the one exemption: JSON-RPC's null id
			line = bytes.Replace(line, []byte(`"id":null`), []byte(`"id":0`), 1)
		}
		j.hold(line, revision, "JSONRPCError")
	default:
		s := j.sent[string(m.ID)]
		if s.method == "subscriptions/listen" {
			delete(j.sent, string(m.ID))
		}
		j.judgeResult(line, &m, s)
		delete(j.sent, string(m.ID))
	}
}

func (j *judge) judgeNotification(line []byte, m *wireMessage) {
	_, subscribed := m.Params.Meta["io.modelcontextprotocol/subscriptionId"]
	notification := func(s *schema.Set) error { return s.Notification(schema.Server, line) }
	if modern, err := schema.For("2026-07-28"); err != nil || notification(modern) != nil {
		j.own(j.session, line, notification)
	}
	switch {
	case *m.Method == "notifications/tasks":
		j.holdFile(line, "tasks-extension/schema.json", "#/$defs/TaskStatusNotification")
	case *m.Method == "notifications/subscriptions/acknowledged", subscribed, j.session == "":
		j.hold(line, "2026-07-28", "ServerNotification")
	case referenceData() == "":
	default:
		if j.fits(line, "2026-07-28", "ServerNotification") != nil {
			j.hold(line, j.session, "ServerNotification")
		}
	}
}

func (j *judge) judgeResult(line []byte, m *wireMessage, s sent) {
	revision := s.revision
	if s.method == "initialize" {
		var r struct{ ProtocolVersion string }
		json.Unmarshal(m.Result, &r)
		j.session = r.ProtocolVersion
	}
	if revision == "" {
		revision = j.session
	}
	if revision == "" {
		revision = "2025-11-25" // ping before initialize
	}
	j.own(revision, line, func(set *schema.Set) error {
		if newer := set.Newer(set.ResultDefinition(s.method, m.Result), m.Result); len(newer) > 0 {
			return fmt.Errorf("members of later revisions: %v", newer)
		}
		return set.Response(s.method, line)
	})
	j.hold(line, revision, "JSONRPCResponse")
	def := resultTypes[s.method]
	modern := revision == "2026-07-28"
	var r struct {
		ResultType string
		Task       json.RawMessage
	}
	json.Unmarshal(m.Result, &r)
	switch {
	case def == "":
		j.t.Errorf("a result for %q: %s", s.method, line)
	case modern && r.ResultType == "input_required":
		j.hold(m.Result, revision, "InputRequiredResult")
	case modern && r.ResultType == "task":
		j.holdFile(m.Result, "tasks-extension/schema.json", "#/$defs/CreateTaskResult")
	case modern && len(s.method) > 6 && s.method[:6] == "tasks/":
		j.holdFile(m.Result, "tasks-extension/schema.json", "#/$defs/"+def)
	case !modern && r.Task != nil:
		j.hold(m.Result, revision, "CreateTaskResult")
	default:
		j.hold(m.Result, revision, def)
	}
}

// own holds a message against the project's own schema of a revision.
func (j *judge) own(revision string, line []byte, check func(*schema.Set) error) {
	set, err := schema.For(revision)
	if err == nil {
		err = check(set)
	}
	if err != nil {
		j.t.Errorf("not valid in our own schema of %s: %s\n%v", revision, line, err)
	}
}

func (j *judge) hold(line []byte, revision, def string) {
	if referenceData() == "" {
		return
	}
	if err := j.fits(line, revision, def); err != nil {
		j.t.Errorf("not valid in %s: %s\n%v", revision, line, err)
	}
}

func (j *judge) fits(line []byte, revision, def string) error {
	section := "definitions"
	if revision >= "2025-11-25" {
		section = "$defs"
		if rename := map[string]string{"JSONRPCError": "JSONRPCErrorResponse"}[def]; rename != "" {
			def = rename
		}
	}
	if revision == "" {
		return fmt.Errorf("no session is open")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	return officialSchema(j.t, "mcp-schema/"+revision+"/schema.json", "#/"+section+"/"+def).Validate(value)
}

func (j *judge) holdFile(line []byte, file string, pointer string) {
	if referenceData() == "" {
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err == nil {
		err = officialSchema(j.t, file, pointer).Validate(value)
	}
	if err != nil {
		j.t.Errorf("not valid in %s %s: %s\n%v", file, pointer, line, err)
	}
}

// TestOfficialSchemasPresent says whether the messages of these tests were held
// against the official schemas.
func TestOfficialSchemasPresent(t *testing.T) {
	if referenceData() == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: messages are not held against the official schemas")
	}
}
