package protocol_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

var allVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// speak returns a way to make requests in a revision; params are members.
func speak(p *peer, version, capabilities string) func(method, params string) string {
	if version == "2026-07-28" {
		n := 0
		return func(method, params string) string {
			n++
			return p.call(modernWith(fmt.Sprint(n), method, params, capabilities, ""))
		}
	}
	p.initialize(version, capabilities)
	n := 0
	return func(method, params string) string {
		n++
		return p.call(request(fmt.Sprint(n), method, "{"+params+"}"))
	}
}

// TestEveryMethodInEveryRevision makes one good request of each kind; each answer
// is held against the official schema of its revision by the peer.
func TestEveryMethodInEveryRevision(t *testing.T) {
	for _, version := range allVersions {
		t.Run(version, func(t *testing.T) {
			do := speak(connect(t, newFullServer().Server), version, `{}`)
			for _, m := range []struct{ method, params string }{
				{"tools/list", ""}, {"resources/list", ""}, {"resources/templates/list", ""}, {"prompts/list", ""},
				{"tools/call", `"name":"blocks"`}, {"tools/call", `"name":"typed","arguments":{"n":1}`}, {"tools/call", `"name":"fails"`},
				{"tools/call", `"name":"boom"`}, {"tools/call", `"name":"steps"`},
				{"resources/read", `"uri":"test://a"`}, {"prompts/get", `"name":"greet","arguments":{"who":"w"}`},
				{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"x"},"context":{"arguments":{"a":"b"}}`},
				{"completion/complete", `"ref":{"type":"ref/resource","uri":"test://x/{id}"},"argument":{"name":"id","value":"many"}`},
			} {
				resultOf(t, do(m.method, m.params))
			}
			if version == "2026-07-28" {
				resultOf(t, do("server/discover", ""))
				return
			}
			for _, m := range []struct{ method, params string }{
				{"ping", ""}, {"logging/setLevel", `"level":"error"`}, {"resources/subscribe", `"uri":"test://a"`}, {"resources/unsubscribe", `"uri":"test://a"`},
			} {
				resultOf(t, do(m.method, m.params))
			}
		})
	}
}

func TestBadParams(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2026-07-28"} {
		do := speak(connect(t, newFullServer().Server), version, `{}`)
		for _, m := range []struct{ method, params string }{
			{"tools/call", ``}, {"tools/call", `"name":5`}, {"tools/call", `"name":"nope"`}, {"tools/call", `"Name":"echo"`}, {"tools/call", `"name":"echo","arguments":"x"`},
			{"tools/list", `"cursor":5`}, {"tools/list", `"cursor":""`}, {"tools/list", `"cursor":"bogus"`}, {"prompts/list", `"cursor":"s1.AAAA"`},
			{"resources/read", ``}, {"resources/read", `"uri":5`}, {"resources/read", `"uri":"no scheme"`}, {"resources/read", `"uri":"../etc"`},
			{"prompts/get", ``}, {"prompts/get", `"name":"nope"`}, {"prompts/get", `"name":"greet"`}, {"prompts/get", `"name":"greet","arguments":{"who":5}`}, {"prompts/get", `"name":"greet","arguments":[]`},
			{"completion/complete", ``}, {"completion/complete", `"ref":{"type":"ref/other"},"argument":{"name":"a","value":""}`}, {"completion/complete", `"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"a","value":""}`},
			{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"}`}, {"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":1}`},
			{"completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""},"context":{"arguments":{"a":1}}`},
		} {
			line := do(m.method, m.params)
			if code, _, _ := errorOf(t, line); code != -32602 {
				t.Errorf("%s %s {%s}: %s", version, m.method, m.params, line)
			}
		}
	}
}

// TestParamsOfEveryShape: each method answers each shape of params, once.
func TestParamsOfEveryShape(t *testing.T) {
	p := connect(t, newFullServer().Server)
	p.initialize("2025-11-25", "{}")
	n := 0
	for _, method := range []string{"initialize", "ping", "server/discover", "subscriptions/listen", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update"} {
		for _, params := range []string{"", "null", "{}", "[]", `"x"`, "5", "true", `{"_meta":null}`, `{"_meta":[]}`, `{"zzz":1}`} {
			n++
			line := p.call(request(fmt.Sprint(n), method, params))
			if strings.HasPrefix(params, "[") || strings.HasPrefix(params, `"`) || params == "5" || params == "true" {
				if code, _, _ := errorOf(t, line); code != -32602 {
					t.Errorf("%s %s: %s", method, params, line)
				}
			}
		}
	}
}

func TestContentFitsRevision(t *testing.T) {
	types := func(version string) (list []string) {
		do := speak(connect(t, newFullServer().Server), version, `{}`)
		for _, c := range resultOf(t, do("tools/call", `"name":"blocks"`))["content"].([]any) {
			list = append(list, c.(map[string]any)["type"].(string))
		}
		return list
	}
	want := map[string][]string{
		"2024-11-05": {"text", "image", "text", "text", "resource", "resource"},
		"2025-03-26": {"text", "image", "audio", "text", "resource", "resource"},
		"2025-06-18": {"text", "image", "audio", "resource_link", "resource", "resource"},
		"2026-07-28": {"text", "image", "audio", "resource_link", "resource", "resource"},
	}
	for version, w := range want {
		if diff := cmp.Diff(w, types(version)); diff != "" {
			t.Errorf("%s:\n%s", version, diff)
		}
	}
}

// TestQuestionsAboutARevision: what an Exchange says of its peer.
func TestQuestionsAboutARevision(t *testing.T) {
	s := plainServer(protocol.Tool{Name: "which", InputSchema: anyObject, Call: func(_ context.Context, c *protocol.ToolCall) (*protocol.ToolResult, error) {
		return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(fmt.Sprintf("together %t, lists %t", c.AsksTogether(), c.FormsHoldLists()))}}, nil
	}})
	got := map[string]any{}
	for _, version := range allVersions {
		result := resultOf(t, speak(connect(t, s), version, `{}`)("tools/call", `"name":"which"`))
		got[version] = result["content"].([]any)[0].(map[string]any)["text"]
	}
	want := map[string]any{
		"2024-11-05": "together false, lists false",
		"2025-03-26": "together false, lists false",
		"2025-06-18": "together false, lists false",
		"2025-11-25": "together false, lists true",
		"2026-07-28": "together true, lists true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStructuredContent(t *testing.T) {
	for _, version := range allVersions {
		do := speak(connect(t, newFullServer().Server), version, `{}`)
		r := resultOf(t, do("tools/call", `"name":"typed","arguments":{"n":9007199254740993}`))
		text := r["content"].([]any)[0].(map[string]any)["text"]
		if text != `{"n":9007199254740993}` {
			t.Errorf("%s: text copy %v", version, text)
		}
		_, has := r["structuredContent"]
		if want := version >= "2025-06-18"; has != want {
			t.Errorf("%s: structuredContent %v", version, has)
		}
		r = resultOf(t, do("tools/call", `"name":"typed","arguments":{"n":"x"}`))
		if r["isError"] != true || r["structuredContent"] != nil {
			t.Errorf("%s: a result that breaks its schema: %v", version, r)
		}
		r = resultOf(t, do("tools/call", `"name":"fails"`))
		if r["isError"] != true || !strings.Contains(fmt.Sprint(r["content"]), "the author's message") {
			t.Errorf("%s: %v", version, r)
		}
	}
}

func TestStructuredOfAnyType(t *testing.T) {
	s := plainServer(protocol.Tool{Name: "list", InputSchema: anyObject, OutputSchema: json.RawMessage(`{"type":"array"}`), Call: func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) {
		return &protocol.ToolResult{Structured: []int{1}}, nil
	}})
	do := speak(connect(t, s), "2026-07-28", `{}`)
	if line := do("tools/call", `"name":"list"`); !strings.Contains(line, `"structuredContent":[1]`) || !strings.Contains(line, `"text":"[1]"`) {
		t.Errorf("modern: %s", line)
	}
	if line := do("tools/list", ""); !strings.Contains(line, `"outputSchema":{"type":"array"}`) {
		t.Errorf("modern: %s", line)
	}
	do = speak(connect(t, s), "2025-11-25", `{}`)
	if line := do("tools/call", `"name":"list"`); strings.Contains(line, "structuredContent") || !strings.Contains(line, `"text":"[1]"`) {
		t.Errorf("legacy: %s", line)
	}
	if line := do("tools/list", ""); strings.Contains(line, "outputSchema") {
		t.Errorf("legacy: %s", line)
	}
}

func TestArgumentErrors(t *testing.T) {
	do := speak(connect(t, plainServer()), "2025-11-25", `{}`)
	for args, want := range map[string]string{
		`{"text":5}`:               "/text must be string, not the number 5",
		`{}`:                       `needs the property \"text\"`,
		`{"text":"x","textt":1}`:   "/textt is not a known property; did you mean text?",
		`{"text":"x","another":1}`: "/another is not a known property",
		`null`:                     `needs the property \"text\"`,
	} {
		line := do("tools/call", `"name":"echo","arguments":`+args)
		if !strings.Contains(line, want) || !strings.Contains(line, `"isError":true`) {
			t.Errorf("%s: %s", args, line)
		}
	}
}

func TestPages(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2026-07-28"} {
		f := newFullServer()
		f.Options.PageSize = 2
		do := speak(connect(t, f.Server), version, `{}`)
		var names []string
		params := ""
		for range 100 {
			r := resultOf(t, do("tools/list", params))
			for _, tool := range r["tools"].([]any) {
				names = append(names, tool.(map[string]any)["name"].(string))
			}
			next, ok := r["nextCursor"].(string)
			if !ok {
				break
			}
			params = fmt.Sprintf(`"cursor":%q`, next)
		}
		var want []string
		for _, tool := range f.Tools {
			want = append(want, tool.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
		first := resultOf(t, do("tools/list", ""))["nextCursor"].(string)
		if code, _, _ := errorOf(t, do("prompts/list", fmt.Sprintf(`"cursor":%q`, first))); code != -32602 {
			t.Errorf("a cursor of another list: code %d", code)
		}
	}
}

func TestProgressAndLogs(t *testing.T) {
	p := connect(t, newFullServer().Server)
	for _, token := range []string{"0", `""`, `"0"`, "-1", "9007199254740993"} {
		p.send(modernWith("1", "tools/call", `"name":"steps"`, "{}", `"progressToken":`+token+`,"io.modelcontextprotocol/logLevel":"info"`))
		var got []string
		for {
			line := p.next()
			if strings.Contains(line, `"id":1`) {
				break
			}
			got = append(got, line)
		}
		want := []string{}
		for i := range 5 {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":4,"message":"step"}}`, token, i))
		}
		want = append(want, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"a":1}}}`)
		if len(got) == len(want)+1 && strings.Contains(got[len(want)], `"progress":99`) {
			got = got[:len(want)] // the late one came in time
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token %s:\n%s", token, diff)
		}
	}
	p.send(modern("2", "tools/call", `"name":"steps"`))
	if line := p.next(); !strings.Contains(line, `"id":2`) {
		t.Errorf("neither token nor level, but %s", line)
	}
}

func TestLogLevelOfSession(t *testing.T) {
	p := connect(t, newFullServer().Server)
	p.initialize("2025-03-26", "{}")
	logs := func() (n int) {
		p.send(request("1", "tools/call", `{"name":"steps"}`))
		for {
			line := p.next()
			if strings.Contains(line, `"id":1`) {
				return n
			}
			n++
		}
	}
	if n := logs(); n != 1 {
		t.Errorf("by default: %d", n)
	}
	p.call(request("2", "logging/setLevel", `{"level":"debug"}`))
	if n := logs(); n != 2 {
		t.Errorf("debug: %d", n)
	}
	p.call(request("3", "logging/setLevel", `{"level":"alert"}`))
	if n := logs(); n != 0 {
		t.Errorf("alert: %d", n)
	}
	if code, _, _ := errorOf(t, p.call(request("4", "logging/setLevel", `{"level":"loud"}`))); code != -32602 {
		t.Errorf("unknown level: %d", code)
	}
}

func TestUndeclaredFeatures(t *testing.T) {
	p := connect(t, &protocol.Server{Info: protocol.Implementation{Name: "bare", Version: "1"}})
	for _, m := range []string{"tools/list", "tools/call", "resources/list", "resources/read", "prompts/list", "prompts/get", "completion/complete", "subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel"} {
		if code, _, _ := errorOf(t, p.call(modern("1", m, ""))); code != -32601 {
			t.Errorf("%s: %d", m, code)
		}
	}
	p.initialize("2025-11-25", "{}")
	for _, m := range []string{"tools/list", "resources/subscribe", "logging/setLevel", "completion/complete", "tasks/get", "tasks/result"} {
		if code, _, _ := errorOf(t, p.call(request("1", m, ""))); code != -32601 {
			t.Errorf("%s: %d", m, code)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	call := echoTool().Call
	for name, tool := range map[string]protocol.Tool{
		"space": {Name: "a b", InputSchema: anyObject, Call: call}, "letter": {Name: "é", InputSchema: anyObject, Call: call}, "long": {Name: strings.Repeat("x", 65), InputSchema: anyObject, Call: call},
		"empty": {InputSchema: anyObject, Call: call}, "twice": {Name: "echo", InputSchema: anyObject, Call: call}, "no call": {Name: "x", InputSchema: anyObject},
		"schema {}": {Name: "x", InputSchema: json.RawMessage(`{}`), Call: call}, "schema null": {Name: "x", InputSchema: json.RawMessage(`null`), Call: call}, "schema nil": {Name: "x", Call: call},
		"schema true": {Name: "x", InputSchema: json.RawMessage(`true`), Call: call}, "schema string": {Name: "x", InputSchema: json.RawMessage(`{"type":"string"}`), Call: call},
		"output": {Name: "x", InputSchema: anyObject, OutputSchema: json.RawMessage(`5`), Call: call}, "task": {Name: "x", InputSchema: anyObject, Task: protocol.TaskRequired, Call: call},
	} {
		if err := plainServer(tool).Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
