package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"fabro-mcp/protocol"
)

// Limits of a task's life: what a client may ask for, and what it gets unasked.
const (
	defaultTTL   = time.Hour
	maxTTL       = 24 * time.Hour
	pollInterval = 500 * time.Millisecond
)

// taskStore is a TaskProvider that runs calls in the background of this process.
// Their state is a file each where there is a directory, so that another process
// can tell what became of them; a task whose process has died has failed.
type taskStore struct {
	f     *fixture
	files *taskFiles // nil without a directory

	mu   sync.Mutex // protects the fields below, and every runningTask
	runs map[string]*runningTask
}

// runningTask is a task of this process, running or ended.
type runningTask struct {
	task    protocol.Task
	cancel  context.CancelCauseFunc
	changed chan struct{} // closed and replaced at every change
	answers map[string]protocol.InputResponse
	asked   map[string]bool // all keys that were ever asked
}

var errTaskCancelled = errors.New("the task was cancelled")

func openTaskStore(stateDir string, f *fixture) (*taskStore, error) {
	s := &taskStore{f: f, runs: make(map[string]*runningTask)}
	if stateDir == "" {
		return s, nil
	}
	var err error
	s.files, err = openTaskFiles(stateDir)
	return s, err
}

// CreateTask starts the tool in the background.
func (s *taskStore) CreateTask(ctx context.Context, c *call, ttl time.Duration) (*protocol.Task, error) {
	tool := s.tool(c.Name)
	if tool == nil {
		return nil, protocol.ErrNoTask
	}
	var early map[string]protocol.InputResponse
	if asksFirst[c.Name] {
		name := form("What is your name?", `{"name":{"type":"string"}}`, "name")
		answers, err := c.Ask(ctx, protocol.InputRequest{Key: "user_name", Form: &name})
		if err != nil {
			return nil, err
		}
		early = answers
	}
	if ttl <= 0 {
		ttl = defaultTTL
	}
	now := time.Now()
	run := &runningTask{
		task:    protocol.Task{ID: randomName(), Status: protocol.TaskWorking, CreatedAt: now, UpdatedAt: now, TTL: min(ttl, maxTTL), PollInterval: pollInterval},
		changed: make(chan struct{}), answers: make(map[string]protocol.InputResponse), asked: make(map[string]bool),
	}
	for k, v := range early {
		run.answers[k], run.asked[k] = v, true
	}
	work, cancel := context.WithCancelCause(context.Background())
	run.cancel = cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.runs {
		if old.task.Status.Final() && time.Since(old.task.CreatedAt) > old.task.TTL {
			delete(s.runs, id)
		}
	}
	s.runs[run.task.ID] = run
	if err := s.saveLocked(run); err != nil {
		delete(s.runs, run.task.ID)
		return nil, err
	}
	go s.work(work, run, tool, c)
	task := run.task
	return &task, nil
}

func (s *taskStore) tool(name string) *protocol.Tool {
	for i := range s.f.server.Tools {
		if s.f.server.Tools[i].Name == name {
			return &s.f.server.Tools[i]
		}
	}
	return nil
}

// work runs the tool and notes how it ends.
func (s *taskStore) work(ctx context.Context, run *runningTask, tool *protocol.Tool, c *call) {
	x := c.Detach(func(ctx context.Context, requests []protocol.InputRequest) (map[string]protocol.InputResponse, error) {
		return s.ask(ctx, run, requests)
	})
	res, err := callSafely(ctx, tool, &call{Name: c.Name, Arguments: c.Arguments, Exchange: x})
	x.End()
	s.change(run, func(t *protocol.Task) {
		var wire *protocol.Error
		t.InputRequests = nil
		switch {
		case errors.Is(err, errTaskCancelled):
			t.Status = protocol.TaskCancelled
		case errors.As(err, &wire):
			t.Status, t.Error, t.StatusMessage = protocol.TaskFailed, wire, wire.Message
		case err != nil:
			t.Status, t.Result = protocol.TaskCompleted, protocol.ErrorResult(err.Error())
		default:
			t.Status, t.Result = protocol.TaskCompleted, res
		}
	})
}

func callSafely(ctx context.Context, tool *protocol.Tool, c *call) (res *result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &protocol.Error{Code: protocol.CodeInternal, Message: "The task broke"}
		}
	}()
	return tool.Call(ctx, c)
}

// ask parks the task until its questions are answered.
func (s *taskStore) ask(ctx context.Context, run *runningTask, requests []protocol.InputRequest) (map[string]protocol.InputResponse, error) {
	first := true
	for {
		s.mu.Lock()
		found := make(map[string]protocol.InputResponse)
		var open []protocol.InputRequest
		for _, q := range requests {
			if a, ok := run.answers[q.Key]; ok {
				found[q.Key] = a
			} else {
				open = append(open, q)
			}
		}
		changed := run.changed
		s.mu.Unlock()
		if open == nil {
			return found, nil
		}
		if first {
			first = false
			s.change(run, func(t *protocol.Task) { t.Status, t.InputRequests = protocol.TaskInputRequired, open })
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// change moves a task on, unless it has ended, and tells of it.
func (s *taskStore) change(run *runningTask, f func(*protocol.Task)) {
	s.mu.Lock()
	if !run.task.Status.Final() {
		f(&run.task)
		run.task.UpdatedAt = time.Now()
		if err := s.saveLocked(run); err != nil {
			s.f.logger.Error("a task cannot be saved", "error", err)
		}
		close(run.changed)
		run.changed = make(chan struct{})
	}
	id := run.task.ID
	s.mu.Unlock()
	s.f.server.TaskChanged(id)
}

// GetTask finds a task of this process, or one that another process has saved.
func (s *taskStore) GetTask(_ context.Context, id string, _ *protocol.Exchange) (*protocol.Task, error) {
	s.mu.Lock()
	run := s.runs[id]
	var task protocol.Task
	if run != nil {
		task = run.task
		if task.Status.Final() && time.Since(task.CreatedAt) > task.TTL {
			delete(s.runs, id)
			run = nil
		}
	}
	s.mu.Unlock()
	if run != nil {
		return &task, nil
	}
	if s.files == nil {
		return nil, protocol.ErrTaskNotFound
	}
	return s.files.load(id)
}

// UpdateTask takes answers to questions that are open.
func (s *taskStore) UpdateTask(_ context.Context, id string, responses map[string]protocol.InputResponse, _ *protocol.Exchange) error {
	s.mu.Lock()
	run := s.runs[id]
	s.mu.Unlock()
	if run == nil {
		return &protocol.Error{Code: protocol.CodeInternal, Message: "The task belongs to another process of this server; answer there"}
	}
	s.change(run, func(t *protocol.Task) {
		var open []protocol.InputRequest
		for _, q := range t.InputRequests {
			if a, ok := responses[q.Key]; ok {
				run.answers[q.Key], run.asked[q.Key] = a, true
			} else {
				open = append(open, q)
			}
		}
		if t.InputRequests = open; open == nil {
			t.Status = protocol.TaskWorking
		}
	})
	return nil
}

// CancelTask ends a task at once; what its tool still does no longer counts.
func (s *taskStore) CancelTask(ctx context.Context, id string, x *protocol.Exchange) (*protocol.Task, error) {
	s.mu.Lock()
	run := s.runs[id]
	s.mu.Unlock()
	if run == nil {
		if s.files == nil {
			return nil, protocol.ErrTaskNotFound
		}
		return s.files.cancel(id)
	}
	run.cancel(errTaskCancelled)
	s.change(run, func(t *protocol.Task) { t.Status, t.InputRequests = protocol.TaskCancelled, nil })
	return s.GetTask(ctx, id, x)
}

// saveLocked writes the task's file, if tasks are kept in files. A task that
// another process has cancelled meanwhile becomes cancelled here too.
func (s *taskStore) saveLocked(run *runningTask) error {
	if s.files == nil {
		return nil
	}
	saved, err := s.files.save(&run.task)
	if err != nil {
		return fmt.Errorf("task %s: %w", run.task.ID, err)
	}
	if saved.Status == protocol.TaskCancelled && run.task.Status != protocol.TaskCancelled {
		run.task = *saved
		run.cancel(errTaskCancelled)
	}
	return nil
}

// marshalResult and its inverse keep a result of text, which is all that the task
// tools return.
func marshalResult(r *result) json.RawMessage {
	var kept struct {
		Text    []string `json:"text"`
		IsError bool     `json:"isError,omitempty"`
	}
	for _, c := range r.Content {
		if t, ok := c.(protocol.TextContent); ok {
			kept.Text = append(kept.Text, t.Text)
		}
	}
	kept.IsError = r.IsError
	raw, _ := json.Marshal(kept)
	return raw
}

func unmarshalResult(raw json.RawMessage) (*result, error) {
	var kept struct {
		Text    []string `json:"text"`
		IsError bool     `json:"isError"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, err
	}
	r := &result{IsError: kept.IsError}
	for _, t := range kept.Text {
		r.Content = append(r.Content, protocol.Text(t))
	}
	return r, nil
}
