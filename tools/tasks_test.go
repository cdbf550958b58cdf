package tools

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// withTasks declares the tasks extension.
func (s *session) withTasks() *session {
	s.caps["extensions"] = map[string]any{tasksExtension: map[string]any{}}
	return s
}

// startTask begins a gather as a task and returns its id.
func (s *session) startTask(arguments string) string {
	s.t.Helper()
	m := s.wait(s.beginCall(nameGather, arguments, nil), nameGather)
	r, _ := m["result"].(map[string]any)
	if r["resultType"] != "task" || r["status"] != "working" || r["pollIntervalMs"] != 2000.0 {
		s.t.Fatalf("no task: %v", m)
	}
	return r["taskId"].(string)
}

func (s *session) task(id string) map[string]any {
	s.t.Helper()
	return s.request("tasks/get", map[string]any{"taskId": id})
}

func TestTaskToTheEnd(t *testing.T) {
	api := newFakeAPI(t)
	endOnAnswer(api)
	run, other := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
	api.mu.Lock()
	api.logLocked(run, wire.EventStageStarted, "build")
	api.mu.Unlock()
	cfg := Config{Connect: api.connect, StateDir: t.TempDir()}
	s := open(t, cfg, rev2607, accept(nil)).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `","` + other.ID + `"]}`)
	if task := s.task(id); task["status"] != "working" || !strings.Contains(task["statusMessage"].(string), "release running: build") {
		t.Errorf("%v", task)
	}
	api.ask(run, deployQuestion())
	api.ask(other, wire.Question{ID: "q2", Text: "Second?", Type: wire.QuestionYesNo})
	task := s.task(id)
	requests, _ := task["inputRequests"].(map[string]any)
	if task["status"] != "input_required" || len(requests) != 2 {
		t.Fatalf("%v", task)
	}

	// Another process with the same state answers: the task survives a restart.
	s2 := open(t, cfg, rev2607, accept(nil)).withTasks()
	s2.request("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{
		"q1":   map[string]any{"action": "accept", "content": map[string]any{"answer": "A"}},
		"none": map[string]any{"action": "accept", "content": map[string]any{}},
	}})
	if task := s2.task(id); task["status"] != "input_required" || len(task["inputRequests"].(map[string]any)) != 1 {
		t.Errorf("after one of two answers: %v", task)
	}
	s2.request("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{
		"q2": map[string]any{"action": "accept", "content": map[string]any{"answer": false}},
	}})
	for _, session := range []*session{s2, s} {
		task := session.task(id)
		result, _ := task["result"].(map[string]any)
		if task["status"] != "completed" || result == nil {
			t.Fatalf("%v", task)
		}
		session.validate(nameGather, result)
		if got := result["structuredContent"].(map[string]any); got["ended_by"] != endedTerminal {
			t.Errorf("%v", got)
		}
	}
	// The result stays as it is.
	before := s.task(id)["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"]
	api.change(run, "run.archived", func() { run.gone = true })
	if after := s2.task(id)["result"].(map[string]any)["content"].([]any)[0].(map[string]any)["text"]; after != before {
		t.Errorf("the result changed: %v, then %v", before, after)
	}
}

func TestTaskDeclined(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, deployQuestion())
	s := open(t, Config{Connect: api.connect}, rev2607, accept(nil)).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	s.request("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"q1": map[string]any{"action": "decline"}}})
	task := s.task(id)
	result, _ := task["result"].(map[string]any)
	if task["status"] != "completed" || result["structuredContent"].(map[string]any)["ended_by"] != endedDeclined || len(api.bodies) != 0 {
		t.Errorf("%v", task)
	}
}

// TestTaskPartlyDeclined: what was answered in the same update goes to its run,
// whatever the order.
func TestTaskPartlyDeclined(t *testing.T) {
	api := newFakeAPI(t)
	one, two := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
	api.ask(one, wire.Question{ID: "q1", Text: "First?", Type: wire.QuestionYesNo})
	api.ask(two, wire.Question{ID: "q2", Text: "Second?", Type: wire.QuestionYesNo})
	s := open(t, Config{Connect: api.connect}, rev2607, accept(nil)).withTasks()
	id := s.startTask(`{"run_ids":["` + one.ID + `","` + two.ID + `"]}`)
	s.request("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{
		"q1": map[string]any{"action": "decline"}, "q2": map[string]any{"action": "accept", "content": map[string]any{"answer": true}},
	}})
	result, _ := s.task(id)["result"].(map[string]any)
	got, _ := result["structuredContent"].(map[string]any)
	notes := []any{"the person declined to answer question q1 of " + one.ID + "; it is still open", "the person answered question q2 of " + two.ID + ": yes"}
	if diff := cmp.Diff(notes, got["notes"]); diff != "" || got["ended_by"] != endedDeclined {
		t.Errorf("ended by %v, notes (-want +got)\n%s", got["ended_by"], diff)
	}
	for i, want := range []string{wire.StatusBlocked, wire.StatusRunning} {
		if status := got["runs"].([]any)[i].(map[string]any)["status"]; status != want {
			t.Errorf("run %d is %v, want %s", i, status, want)
		}
	}
	if sent := api.bodies["POST /api/v1/runs/"+two.ID+"/questions/q2/answer"]; len(sent) != 1 || len(api.bodies) != 1 {
		t.Errorf("sent %v", api.bodies)
	}
}

func TestTaskCancelled(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	cfg := Config{Connect: api.connect, StateDir: t.TempDir()}
	s := open(t, cfg, rev2607, nil).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	s.request("tasks/cancel", map[string]any{"taskId": id})
	api.end(run)
	for _, session := range []*session{s, open(t, cfg, rev2607, nil).withTasks()} {
		if task := session.task(id); task["status"] != "cancelled" {
			t.Errorf("%v", task)
		}
	}
	for _, request := range api.seen() {
		if strings.HasSuffix(request, "/cancel") {
			t.Error("the run was cancelled")
		}
	}
	s.request("tasks/cancel", map[string]any{"taskId": id}) // again is no error
}

// TestTaskCannotAsk: a host that cannot ask sees the question in the status line.
func TestTaskCannotAsk(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2607, nil).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	api.ask(run, deployQuestion())
	task := s.task(id)
	if task["status"] != "working" || !strings.Contains(task["statusMessage"].(string), "waits for an answer: Deploy?") {
		t.Errorf("%v", task)
	}
	attention := s.startTask(`{"run_ids":["` + run.ID + `"],"until":"attention"}`)
	if task := s.task(attention); task["status"] != "completed" {
		t.Errorf("%v", task)
	}
}

func TestTaskTimes(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	clock := time.Now()
	s := openHost(t, Config{Connect: api.connect}, rev2607, nil, func(h *host) {
		h.now = func() time.Time {
			api.mu.Lock()
			defer api.mu.Unlock()
			return clock
		}
	}).withTasks()
	forward := func(d time.Duration) {
		api.mu.Lock()
		defer api.mu.Unlock()
		clock = clock.Add(d)
	}
	limited := s.startTask(`{"run_ids":["` + run.ID + `"],"timeout_seconds":60}`)
	open := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	forward(61 * time.Second)
	if task := s.task(limited); task["status"] != "completed" || task["result"].(map[string]any)["structuredContent"].(map[string]any)["ended_by"] != endedDeadline {
		t.Errorf("%v", task)
	}
	if task := s.task(open); task["status"] != "working" {
		t.Errorf("without a timeout a task waits on: %v", task)
	}
}

func TestTaskUnknown(t *testing.T) {
	api, elsewhere := newFakeAPI(t), newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	dir := t.TempDir()
	s := open(t, Config{Connect: api.connect, StateDir: dir}, rev2607, nil).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	other := open(t, Config{Connect: elsewhere.connect, StateDir: dir}, rev2607, nil).withTasks()
	for _, c := range []struct {
		name string
		s    *session
		id   string
	}{{"made up", s, "task-1"}, {"changed", s, id[:len(id)-2] + "AA"}, {"of another server", other, id}} {
		m := c.s.wait(c.s.begin("tasks/get", map[string]any{"taskId": c.id}), "tasks/get")
		if e, _ := m["error"].(map[string]any); e == nil || e["code"] != -32602.0 {
			t.Errorf("%s: %v", c.name, m)
		}
	}
}

// TestTaskNotMade: what is wrong with a call is said at once.
func TestTaskNotMade(t *testing.T) {
	api := newFakeAPI(t)
	s := open(t, Config{Connect: api.connect}, rev2607, nil).withTasks()
	for arguments, want := range map[string]string{`{"run_ids":[]}`: "at least 1", `{"run_ids":["nothing"]}`: "No run found"} {
		if r := s.call(nameGather, arguments); !r.failed() || !strings.Contains(r.text(), want) {
			t.Errorf("%s: %s", arguments, r.text())
		}
	}
}

// TestCoreTask: the tasks of 2025-11-25, with a question on the way.
func TestCoreTask(t *testing.T) {
	api := newFakeAPI(t)
	endOnAnswer(api)
	run := api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2511, accept(map[string]any{"answer": "A"}))
	m := s.wait(s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, map[string]any{"task": map[string]any{"ttl": 60000}}), nameGather)
	task, _ := m["result"].(map[string]any)["task"].(map[string]any)
	if task == nil || task["status"] != "working" {
		t.Fatalf("%v", m)
	}
	api.ask(run, deployQuestion())
	result := s.request("tasks/result", map[string]any{"taskId": task["taskId"]})
	s.validate(nameGather, result)
	if got := result["structuredContent"].(map[string]any); got["ended_by"] != endedTerminal || len(s.forms()) != 1 {
		t.Errorf("%v, %d forms", got, len(s.forms()))
	}
}

// TestTaskNotifies: who listens to a task hears of the question and of the end.
func TestTaskNotifies(t *testing.T) {
	api := newFakeAPI(t)
	endOnAnswer(api)
	run := api.add(wire.StatusRunning)
	s := open(t, Config{Connect: api.connect}, rev2607, accept(nil)).withTasks()
	id := s.startTask(`{"run_ids":["` + run.ID + `"]}`)
	s.begin("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})
	api.waitFor(t, run.ID+"/attach")
	until := func(status string) {
		t.Helper()
		deadline := time.After(2 * time.Minute)
		for {
			select {
			case <-s.noted:
			case <-deadline:
				t.Fatalf("no notification of %s", status)
			}
			s.mu.Lock()
			last := s.notes[len(s.notes)-1]
			s.mu.Unlock()
			if params, _ := last["params"].(map[string]any); last["method"] == "notifications/tasks" && params["status"] == status {
				return
			}
		}
	}
	select { // the listen is acknowledged before anything else is told
	case <-s.noted:
	case <-time.After(2 * time.Minute):
		t.Fatal("the listen was not acknowledged")
	}
	api.ask(run, deployQuestion())
	until("input_required")
	s.request("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"q1": map[string]any{"action": "accept", "content": map[string]any{"answer": "A"}}}})
	until("completed")
}
