package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/yosida95/uritemplate/v3"
	"go.uber.org/goleak"

	"fabro-mcp/transport"
)

// childVariable makes this test binary the fixture itself.
const childVariable = "MCP_FIXTURE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(run(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// talk serves a fixture and returns a way to make modern requests.
func talk(t *testing.T, s settings) (call func(method, params, capabilities string) map[string]any) {
	t.Helper()
	server, err := newServer(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := transport.Pipe()
	done := make(chan error, 1)
	go func() { done <- server.Serve(context.Background(), theirs) }()
	t.Cleanup(func() {
		ours.CloseWrite()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	n := 0
	return func(method, params, capabilities string) map[string]any {
		t.Helper()
		n++
		if params != "" {
			params += ","
		}
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, n, method, params, capabilities)
		if err := ours.WriteFrames([]byte(line)); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := ours.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     *int
				Result map[string]any
				Error  any
			}
			if err := json.Unmarshal(frame, &m); err != nil {
				t.Fatal(err)
			}
			if m.ID == nil || *m.ID != n {
				continue
			}
			if m.Result == nil {
				t.Fatalf("%s: %v", method, m.Error)
			}
			return m.Result
		}
	}
}

var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// TestListsAreSound: names and uris are unique, schemas are valid and refer to
// nothing outside, header names stand on reachable primitives and are unique.
func TestListsAreSound(t *testing.T) {
	call := talk(t, settings{})
	names := map[string]bool{}
	for _, entry := range call("tools/list", "", "{}")["tools"].([]any) {
		tool := entry.(map[string]any)
		name := tool["name"].(string)
		if names[name] {
			t.Errorf("two tools %s", name)
		}
		names[name] = true
		headers := map[string]bool{}
		for _, kind := range []string{"inputSchema", "outputSchema"} {
			schema, ok := tool[kind].(map[string]any)
			if !ok {
				continue
			}
			c := jsonschema.NewCompiler()
			if err := c.AddResource("mem:///s", schema); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compile("mem:///s"); err != nil {
				t.Errorf("%s %s: %v", name, kind, err)
			}
			raw, _ := json.Marshal(schema)
			for _, m := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllSubmatch(raw, -1) {
				if m[1][0] != '#' {
					t.Errorf("%s refers to %s", name, m[1])
				}
			}
			all := bytes.Count(raw, []byte(`"x-mcp-header"`))
			reachable := 0
			walkProperties(schema, func(property map[string]any) {
				header, ok := property["x-mcp-header"].(string)
				if !ok {
					return
				}
				reachable++
				kind := property["type"]
				if headers[strings.ToLower(header)] || !headerToken.MatchString(header) || kind != "string" && kind != "integer" && kind != "boolean" {
					t.Errorf("%s: header %q on a %v", name, header, kind)
				}
				headers[strings.ToLower(header)] = true
			})
			if reachable != all {
				t.Errorf("%s: %d header names, %d reachable", name, all, reachable)
			}
		}
	}
	uris := map[string]bool{}
	for _, entry := range call("resources/list", "", "{}")["resources"].([]any) {
		uri := entry.(map[string]any)["uri"].(string)
		if uris[uri] {
			t.Errorf("two resources %s", uri)
		}
		uris[uri] = true
	}
}

func walkProperties(schema map[string]any, f func(map[string]any)) {
	properties, _ := schema["properties"].(map[string]any)
	for _, p := range properties {
		if property, ok := p.(map[string]any); ok {
			f(property)
			walkProperties(property, f)
		}
	}
}

const tasksAndForms = `{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}`

// await polls a task until it has a status.
func await(t *testing.T, call func(method, params, capabilities string) map[string]any, id, status string) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		r := call("tasks/get", fmt.Sprintf(`"taskId":%q`, id), tasksAndForms)
		if r["status"] == status {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the task is %v, not %s", r, status)
		}
	}
}

// TestTasksInAnotherProcess: a task is known, and can be cancelled, from another
// process with the same directory; when its own process has gone it has failed.
func TestTasksInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	var id, done string
	t.Run("first", func(t *testing.T) {
		one, two := talk(t, settings{stateDir: dir}), talk(t, settings{stateDir: dir})
		id = one("tools/call", `"name":"confirm_delete","arguments":{"filename":"f"}`, tasksAndForms)["taskId"].(string)
		if r := await(t, two, id, "input_required"); r["inputRequests"].(map[string]any)["confirm"] == nil {
			t.Errorf("the other process sees %v", r)
		}
		done = one("tools/call", `"name":"slow_compute","arguments":{"seconds":0,"label":"x"}`, tasksAndForms)["taskId"].(string)
		if r := await(t, two, done, "completed"); !strings.Contains(fmt.Sprint(r["result"]), "Computed x") {
			t.Errorf("the other process sees %v", r)
		}
		cancelled := one("tools/call", `"name":"slow_compute","arguments":{"seconds":600}`, tasksAndForms)["taskId"].(string)
		two("tasks/cancel", fmt.Sprintf(`"taskId":%q`, cancelled), tasksAndForms)
		await(t, two, cancelled, "cancelled")
		one("tasks/cancel", fmt.Sprintf(`"taskId":%q`, cancelled), tasksAndForms)
		await(t, one, cancelled, "cancelled")
		one("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id), tasksAndForms)
	})
	three := talk(t, settings{stateDir: dir})
	await(t, three, done, "completed")
	await(t, three, id, "cancelled")
}

func TestTaskInput(t *testing.T) {
	call := talk(t, settings{})
	id := call("tools/call", `"name":"multi_input"`, tasksAndForms)["taskId"].(string)
	await(t, call, id, "input_required")
	for i, key := range []string{"first", "second"} {
		call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"decline"}}`, id, key), tasksAndForms)
		if i == 0 {
			r := await(t, call, id, "input_required")
			if left := r["inputRequests"].(map[string]any); len(left) != 1 || left["second"] == nil {
				t.Errorf("left are %v", left)
			}
		}
	}
	if r := await(t, call, id, "completed"); !strings.Contains(fmt.Sprint(r["result"]), "decline and decline") {
		t.Errorf("got %v", r)
	}
}

// FuzzTemplate: what fits a template is what it expands to, whatever comes.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"test://template/123/data", "test://template//data", "test://template/a%2Fb/data", "test://template/../data", "test://words/%C3%A9", "test://words/%zz", "test://words/a?b#c", "", "{", "test://words/%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		for name, template := range map[string]*uritemplate.Template{"id": dataTemplate, "word": wordTemplate} {
			value, ok := variable(template, name, uri)
			if !ok {
				continue
			}
			again, err := template.Expand(uritemplate.Values{name: uritemplate.String(value)})
			if err != nil || again != uri {
				t.Fatalf("%q gives %q, which expands to %q (%v)", uri, value, again, err)
			}
			if strings.ContainsAny(strings.TrimPrefix(uri, "test://"), "?#") {
				t.Fatalf("%q fits a template", uri)
			}
		}
	})
}
