package protocol

import (
	"context"
	"errors"
	"sync"
	"time"
)

// TaskProvider keeps the tasks of a server. One provider serves both the tasks
// extension of 2026-07-28 and the core tasks of 2025-11-25: what a task id means
// and how long a task is kept is its own affair. Ids must not be guessable.
type TaskProvider interface {
	// CreateTask starts a call as a task, and returns once GetTask would find it.
	// ttl is what the peer asked for, 0 for nothing. ctx ends with the request,
	// not with the task. ErrNoTask makes the engine run the call at once; an
	// error of Ask is passed on, so that input can be gathered first.
	CreateTask(ctx context.Context, call *ToolCall, ttl time.Duration) (*Task, error)
	// GetTask returns ErrTaskNotFound for an id it does not know.
	GetTask(ctx context.Context, id string, x *Exchange) (*Task, error)
	// UpdateTask takes responses to questions that the task has outstanding.
	UpdateTask(ctx context.Context, id string, responses map[string]InputResponse, x *Exchange) error
	// CancelTask ends a task, or leaves one that has ended already as it is, and
	// returns its state.
	CancelTask(ctx context.Context, id string, x *Exchange) (*Task, error)
}

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final reports whether a task with this status changes no more.
func (s TaskStatus) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Task is the state of a task.
type Task struct {
	ID                   string
	Status               TaskStatus
	StatusMessage        string
	CreatedAt, UpdatedAt time.Time
	TTL                  time.Duration  // from CreatedAt; 0 is unlimited
	PollInterval         time.Duration  // 0 is absent
	InputRequests        []InputRequest // while TaskInputRequired: all that are outstanding
	Result               *ToolResult    // when TaskCompleted; a tool's own error has IsError
	Error                *Error         // when TaskFailed: the protocol error
}

// errTasksUndeclared answers a request about tasks that did not declare the
// extension.
var errTasksUndeclared = &Error{
	Code: CodeMissingCapability, Message: "This request needs the client capability extensions." + extensionTasks,
	Data: map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extensionTasks: map[string]any{}}}},
}

// wakeup lets many wait for something that happens again and again.
type wakeup struct {
	mu sync.Mutex // protects ch
	ch chan struct{}
}

// wait returns a channel that is closed at the next wake.
func (w *wakeup) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *wakeup) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

// wantsTask decides whether a call becomes a task. In the extension the server
// decides, for peers that declared it; in the core protocol the client asks.
func (r *request) wantsTask(t *Tool) (bool, *Error) {
	if !r.conn.server.hasTasks() {
		return false, nil
	}
	switch {
	case r.rev.has(featExtensions):
		if t.Task == TaskRequired && !r.caps.tasksExtension {
			return false, errTasksUndeclared
		}
		return t.Task != TaskNever && r.caps.tasksExtension, nil
	case r.rev.has(featCoreTasks):
		asked := r.param("task")
		switch {
		case asked != nil && !isObject(asked):
			return false, invalidParams("Parameter task must be an object")
		case asked != nil && t.Task == TaskNever:
			return false, &Error{Code: CodeMethodNotFound, Message: "Tool " + t.Name + " cannot run as a task"}
		case asked == nil && t.Task == TaskRequired:
			return false, &Error{Code: CodeMethodNotFound, Message: "Tool " + t.Name + " can only run as a task"}
		}
		return asked != nil, nil
	}
	return false, nil
}

// createTask turns a call into a task; made is false when the call should run at
// once after all.
func (r *request) createTask(b []byte, tool *compiledTool) (made bool, body []byte, err error) {
	var ttl time.Duration
	if raw := field(r.param("task"), "ttl"); r.rev.has(featCoreTasks) && raw != nil {
		ms, ok := parseMillis(raw)
		if !ok {
			return false, b, invalidParams("Parameter task.ttl must be an integer of milliseconds")
		}
		ttl = ms
	}
	task, err := guard(r, func() (*Task, error) { return r.conn.server.Tasks.CreateTask(&r.ctx, &r.call, ttl) })
	if errors.Is(err, ErrNoTask) {
		return false, b, nil
	}
	if err != nil {
		body, err = r.appendToolOutcome(b, tool, nil, err)
		return true, body, err
	}
	if r.rev.has(featExtensions) {
		r.resultType = "task"
		// The core's schema of a tools/call result requires content. With an empty
		// one, validators that know nothing of extensions accept the handle too.
		b = keyRaw(r.appendTask(b, task), "content", []byte("[]"))
		return true, b, nil
	}
	if s := r.conn.session.Load(); s != nil {
		s.follow(task.ID, r)
	}
	b = append(r.appendTask(append(key(b, "task"), '{'), task), '}')
	return true, b, nil
}

func parseMillis(raw []byte) (time.Duration, bool) {
	if !isInteger(raw) || len(raw) > 13 || raw[0] == '-' {
		return 0, false
	}
	var ms int64
	for _, c := range raw {
		ms = ms*10 + int64(c-'0')
	}
	return time.Duration(ms) * time.Millisecond, true
}

// appendTask appends the members that every view of a task has.
func (r *request) appendTask(b []byte, t *Task) []byte {
	ttl, poll := "ttlMs", "pollIntervalMs"
	status, message := t.Status, t.StatusMessage
	if r.rev.has(featCoreTasks) {
		ttl, poll = "ttl", "pollInterval"
		if status == TaskCompleted && t.Result != nil && t.Result.IsError {
			status = TaskFailed // what a tool could not do is a failure there
			if message == "" {
				message = "The tool reported an error"
			}
		}
	}
	if status == TaskFailed && message == "" && t.Error != nil {
		message = t.Error.Message
	}
	b = keyString(b, "taskId", t.ID)
	b = keyString(b, "status", string(status))
	b = keyText(b, "statusMessage", message)
	b = keyString(b, "createdAt", timestamp(t.CreatedAt))
	b = keyString(b, "lastUpdatedAt", timestamp(t.UpdatedAt))
	if t.TTL > 0 {
		b = keyInt(b, ttl, t.TTL.Milliseconds())
	} else {
		b = keyRaw(b, ttl, nullID)
	}
	if t.PollInterval > 0 {
		b = keyInt(b, poll, t.PollInterval.Milliseconds())
	}
	return b
}

// getTask reads the task that the request names.
func (r *request) getTask() (*Task, error) {
	id, bad := r.stringParam("taskId")
	if bad != nil {
		return nil, bad
	}
	if r.rev.has(featExtensions) && !r.caps.tasksExtension {
		return nil, errTasksUndeclared
	}
	return guard(r, func() (*Task, error) { return r.conn.server.Tasks.GetTask(&r.ctx, id, &r.x) })
}

func serveTasksGet(r *request, b []byte) ([]byte, error) {
	task, err := r.getTask()
	if err != nil {
		return b, err
	}
	if r.rev.has(featExtensions) {
		return r.appendTaskDetails(b, task)
	}
	return r.appendTask(b, task), nil
}

func serveTasksCancel(r *request, b []byte) ([]byte, error) {
	task, err := r.getTask()
	if err != nil {
		return b, err
	}
	core := r.rev.has(featCoreTasks)
	if core && task.Status.Final() {
		return b, invalidParams("The task cannot be cancelled: it is %s", task.Status)
	}
	if !task.Status.Final() {
		task, err = guard(r, func() (*Task, error) { return r.conn.server.Tasks.CancelTask(&r.ctx, task.ID, &r.x) })
		if err != nil {
			return b, err
		}
	}
	if core {
		b = r.appendTask(b, task)
	}
	return b, nil
}
