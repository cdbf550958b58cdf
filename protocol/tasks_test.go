package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

const canTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}`

func tasked(id, method, params string) string { return modernWith(id, method, params, canTasks, "") }

func TestTasksExtension(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	r := resultOf(t, p.call(tasked("1", "tools/call", `"name":"job","task":{"ttl":5}`)))
	delete(r, "_meta")
	want := map[string]any{"taskId": "task-1", "status": "working", "createdAt": "1970-01-01T00:16:41Z", "lastUpdatedAt": "1970-01-01T00:16:41Z", "ttlMs": nil, "resultType": "task", "content": []any{}}
	got := map[string]any{}
	for k, v := range r {
		got[k] = v
	}
	delete(got, "pollIntervalMs")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("created:\n%s", diff)
	}
	get := func() string { return p.call(tasked("2", "tasks/get", `"taskId":"task-1"`)) }
	if line := get(); !strings.Contains(line, `"status":"working"`) || !strings.Contains(line, `"resultType":"complete"`) {
		t.Errorf("get: %s", line)
	}
	f.tasks.change("task-1", func(m *memTask) {
		m.Status = protocol.TaskInputRequired
		m.InputRequests = []protocol.InputRequest{{Key: "a", Form: &nameForm}, {Key: "b", Form: &nameForm}}
	})
	if line := get(); !strings.Contains(line, `"inputRequests":{"a":{"method":"elicitation/create"`) {
		t.Errorf("input: %s", line)
	}
	update := func(responses string) string {
		return p.call(tasked("3", "tasks/update", `"taskId":"task-1","inputResponses":`+responses))
	}
	resultOf(t, update(`{"unknown":{"action":"accept"}}`))
	if code, _, _ := errorOf(t, update(`{"a":{"action":"accept","content":{"name":1}}}`)); code != -32602 {
		t.Errorf("misfit: %d", code)
	}
	resultOf(t, update(`{"a":{"action":"accept","content":{"name":"x"}}}`))
	if line := get(); !strings.Contains(line, `"inputRequests":{"b":`) {
		t.Errorf("partial: %s", line)
	}
	resultOf(t, update(`{"b":{"action":"decline"}}`))
	f.tasks.change("task-1", func(m *memTask) {
		m.Status, m.Result = protocol.TaskCompleted, protocol.ErrorResult("it failed")
	})
	if line := get(); !strings.Contains(line, `"status":"completed"`) || !strings.Contains(line, `"result":{"content":[{"type":"text","text":"it failed"}],"isError":true,"resultType":"complete"}`) {
		t.Errorf("tool error: %s", line)
	}
	if line := p.call(tasked("4", "tasks/cancel", `"taskId":"task-1"`)); strings.Contains(line, "taskId") {
		t.Errorf("cancel of a final task: %s", line)
	}
	if line := get(); !strings.Contains(line, `"status":"completed"`) {
		t.Errorf("it was revived or cancelled: %s", line)
	}
	for _, m := range []string{"tasks/get", "tasks/cancel"} {
		if code, _, _ := errorOf(t, p.call(tasked("5", m, `"taskId":"nope"`))); code != -32602 {
			t.Errorf("%s of an unknown task: %d", m, code)
		}
	}
}

func TestTaskFailsAndIsCancelled(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.call(tasked("1", "tools/call", `"name":"job"`))
	p.call(tasked("2", "tools/call", `"name":"must"`))
	f.tasks.change("task-1", func(m *memTask) {
		m.Status, m.Error = protocol.TaskFailed, &protocol.Error{Code: 7, Message: "gone"}
	})
	if line := p.call(tasked("3", "tasks/get", `"taskId":"task-1"`)); !strings.Contains(line, `"error":{"code":7,"message":"gone"}`) || !strings.Contains(line, `"statusMessage":"gone"`) {
		t.Errorf("failed: %s", line)
	}
	resultOf(t, p.call(tasked("4", "tasks/cancel", `"taskId":"task-2"`)))
	f.tasks.change("task-2", func(m *memTask) { m.Status = protocol.TaskCompleted })
	if line := p.call(tasked("5", "tasks/get", `"taskId":"task-2"`)); !strings.Contains(line, `"status":"cancelled"`) {
		t.Errorf("a late result revived it: %s", line)
	}
}

func TestTasksUndeclared(t *testing.T) {
	f := newFullServer()
	close(f.release)
	p := connect(t, f.Server)
	if line := p.call(modern("1", "tools/call", `"name":"job","task":{}`)); !strings.Contains(line, "released") {
		t.Errorf("optional: %s", line)
	}
	line := p.call(modern("2", "tools/call", `"name":"must"`))
	code, _, data := errorOf(t, line)
	if code != -32021 || string(data) != `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}` {
		t.Errorf("required: %s", line)
	}
	if code, _, _ := errorOf(t, p.call(modernWith("3", "tasks/update", `"taskId":"x","inputResponses":{}`, `{"tasks":{}}`, ""))); code != -32021 {
		t.Errorf("only the old capability: %d", code)
	}
}

func TestTaskNotifications(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.call(tasked("1", "tools/call", `"name":"job"`))
	p.send(tasked("2", "subscriptions/listen", `"notifications":{"taskIds":["task-1","nope"]}`))
	p.expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["task-1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`)
	f.tasks.change("task-1", func(m *memTask) { m.Status = protocol.TaskCompleted })
	if line := p.next(); !strings.Contains(line, `"method":"notifications/tasks","params":{"taskId":"task-1","status":"completed"`) || !strings.Contains(line, `"result":{"content":[]`) || !strings.Contains(line, `subscriptionId":2`) {
		t.Errorf("got %s", line)
	}
	p.quiet()
}

func TestCoreTasks(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	if line := p.initialize("2025-11-25", `{"elicitation":{}}`); !strings.Contains(line, `"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`) || strings.Contains(line, "extensions") {
		t.Errorf("capabilities: %s", line)
	}
	if line := p.call(request("1", "tools/list", "")); !strings.Contains(line, `"execution":{"taskSupport":"optional"}`) || !strings.Contains(line, `"execution":{"taskSupport":"required"}`) {
		t.Errorf("list: %s", line)
	}
	line := p.call(request("2", "tools/call", `{"name":"job","task":{"ttl":60000}}`))
	if !strings.Contains(line, `"result":{"task":{"taskId":"task-1","status":"working","createdAt":"1970-01-01T00:16:41Z","lastUpdatedAt":"1970-01-01T00:16:41Z","ttl":60000,"pollInterval":10000}}`) {
		t.Errorf("created: %s", line)
	}
	if code, _, _ := errorOf(t, p.call(request("3", "tools/call", `{"name":"must"}`))); code != -32601 {
		t.Errorf("required, not asked: %d", code)
	}
	if code, _, _ := errorOf(t, p.call(request("4", "tools/call", `{"name":"echo","arguments":{"text":"x"},"task":{}}`))); code != -32601 {
		t.Errorf("forbidden, asked: %d", code)
	}
	// tasks/result waits, and puts the task's question.
	p.send(request("5", "tasks/result", `{"taskId":"task-1"}`))
	f.tasks.change("task-1", func(m *memTask) {
		m.Status = protocol.TaskInputRequired
		m.InputRequests = []protocol.InputRequest{{Key: "a", Form: &nameForm}}
	})
	var question string
	for question == "" {
		if line := p.next(); strings.Contains(line, "elicitation/create") {
			question = line
		}
	}
	if !strings.Contains(question, `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}`) {
		t.Errorf("question: %s", question)
	}
	p.send(`{"jsonrpc":"2.0","id":"s1","result":{"action":"accept","content":{"name":"x"}}}`)
	for f.answered("task-1", "a") == "" {
		p.next() // notifications/tasks/status
	}
	f.tasks.change("task-1", func(m *memTask) { m.Status, m.Result = protocol.TaskCompleted, protocol.ErrorResult("no luck") })
	line = p.response("5")
	if !strings.Contains(line, `"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}`) {
		t.Errorf("result: %s", line)
	}
	if line := p.call(request("6", "tasks/get", `{"taskId":"task-1"}`)); !strings.Contains(line, `"status":"failed"`) || strings.Contains(line, "related-task") {
		t.Errorf("a tool error is a failure: %s", line)
	}
	if code, _, _ := errorOf(t, p.call(request("7", "tasks/cancel", `{"taskId":"task-1"}`))); code != -32602 {
		t.Errorf("cancel of a final task: %d", code)
	}
	p.call(request("8", "tools/call", `{"name":"job","task":{}}`))
	if line := p.call(request("9", "tasks/cancel", `{"taskId":"task-2"}`)); !strings.Contains(line, `"status":"cancelled"`) {
		t.Errorf("cancel: %s", line)
	}
	for _, m := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if code, _, _ := errorOf(t, p.call(request("10", m, `{"taskId":"nope"}`))); code != -32602 {
			t.Errorf("%s of an unknown task: %d", m, code)
		}
	}
	if code, _, _ := errorOf(t, p.call(request("11", "tasks/list", ""))); code != -32601 {
		t.Errorf("tasks/list: %d", code)
	}
}

func (f *fullServer) answered(id, key string) string {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	return string(f.tasks.tasks[id].answered[key].Raw)
}
