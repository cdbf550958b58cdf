package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"fabro-mcp/protocol"
)

var anyObject = json.RawMessage(`{"type":"object"}`)

// fullServer offers one of everything.
type fullServer struct {
	*protocol.Server
	resources *testResources
	tasks     *memTasks

	mu      sync.Mutex
	entered chan string // names of blocking tools as they start
	causes  chan error  // why the context of a blocking tool ended
	release chan struct{}
	calls   int
}

func newFullServer() *fullServer {
	f := &fullServer{resources: &testResources{watched: make(map[string]int)}, entered: make(chan string, 2048), causes: make(chan error, 2048), release: make(chan struct{})}
	f.tasks = &memTasks{tasks: make(map[string]*memTask), notify: func(id string) { f.Server.TaskChanged(id) }}
	f.Server = &protocol.Server{
		Info:         protocol.Implementation{Name: "full", Title: "Full", Version: "1", Description: "d", WebsiteURL: "https://example.test/", Icons: []protocol.Icon{{Src: "https://example.test/i.png", Sizes: []string{"any"}}}},
		Instructions: "Use it.",
		Tools:        f.tools(),
		Resources:    f.resources,
		Completions:  completer{},
		Tasks:        f.tasks,
		Logging:      true,
		Prompts: []protocol.Prompt{{
			Name: "greet", Title: "Greet", Arguments: []protocol.PromptArgument{{Name: "who", Required: true}},
			Get: func(_ context.Context, call *protocol.PromptCall) (*protocol.PromptResult, error) {
				return &protocol.PromptResult{Description: "d", Messages: []protocol.PromptMessage{{Content: protocol.Text("Hello " + call.Arguments["who"])}}}, nil
			},
		}, {
			Name: "ask", Get: func(ctx context.Context, call *protocol.PromptCall) (*protocol.PromptResult, error) {
				answer, err := call.Elicit(ctx, "q", nameForm)
				if err != nil {
					return nil, err
				}
				return &protocol.PromptResult{Messages: []protocol.PromptMessage{{Role: "assistant", Content: protocol.Text(fmt.Sprint(answer.Action, answer.Content["name"]))}}}, nil
			},
		}},
	}
	f.Server.Options.DrainGrace = 50 * time.Millisecond
	return f
}

var nameForm = protocol.ElicitForm{Message: "Your name?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}`)}

// wait blocks until the release, the end of the context or of the input.
func (f *fullServer) wait(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
	f.entered <- call.Name
	select {
	case <-f.release:
		return &protocol.ToolResult{Content: []protocol.Content{protocol.Text("released")}}, nil
	case <-ctx.Done():
		f.causes <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}
}

func (f *fullServer) tools() []protocol.Tool {
	yes := true
	return []protocol.Tool{
		echoTool(),
		{Name: "slow", InputSchema: anyObject, Call: f.wait},
		{Name: "gather", InputSchema: anyObject, Waits: true, Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			f.entered <- call.Name
			select {
			case <-f.release:
				return &protocol.ToolResult{Content: []protocol.Content{protocol.Text("released")}}, nil
			case <-call.InputClosed():
				return &protocol.ToolResult{Content: []protocol.Content{protocol.Text("so far")}}, nil
			case <-ctx.Done():
				f.causes <- context.Cause(ctx)
				return nil, context.Cause(ctx)
			}
		}},
		{Name: "hang", InputSchema: anyObject, Call: func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) {
			f.entered <- "hang"
			<-f.release
			return nil, nil
		}},
		{Name: "boom", InputSchema: anyObject, Call: func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) { panic("boom") }},
		{Name: "fails", InputSchema: anyObject, OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			Call: func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) {
				return nil, errors.New("the author's message")
			}},
		{Name: "typed", Title: "Typed", InputSchema: anyObject, OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
			Annotations: &protocol.ToolAnnotations{Title: "Typed", ReadOnly: &yes}, Meta: json.RawMessage(`{"example.test/a":1}`),
			Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
				return &protocol.ToolResult{Structured: call.Arguments}, nil
			}},
		{Name: "steps", InputSchema: anyObject, Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			for i := range 5 {
				call.Progress(float64(i), 4, "step")
			}
			call.Progress(2, 4, "backwards")
			call.Log(protocol.LevelDebug, "l", "fine")
			call.Log(protocol.LevelWarning, "l", map[string]any{"a": 1})
			go call.Progress(99, 100, "late")
			return &protocol.ToolResult{}, nil
		}},
		{Name: "ask", InputSchema: anyObject, Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			f.mu.Lock()
			f.calls++
			f.mu.Unlock()
			first, err := call.Elicit(ctx, "first", nameForm)
			if err != nil {
				return nil, err
			}
			if first.Action != protocol.ActionAccept {
				return &protocol.ToolResult{Content: []protocol.Content{protocol.Text("no: " + first.Action)}}, nil
			}
			second, err := call.Elicit(ctx, "second", protocol.ElicitForm{Message: "Sure?", Schema: json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"}}}`)})
			if err != nil {
				return nil, err
			}
			return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(fmt.Sprint(first.Content["name"], second.Content["sure"]))}}, nil
		}},
		{Name: "count", InputSchema: anyObject, Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			var n int
			call.State(&n)
			n++
			call.SetState(n)
			if n < 3 {
				if _, err := call.Elicit(ctx, fmt.Sprint("k", n), nameForm); err != nil {
					return nil, err
				}
			}
			return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(fmt.Sprint(n))}}, nil
		}},
		{Name: "job", InputSchema: anyObject, Task: protocol.TaskOptional, Call: f.wait},
		{Name: "must", InputSchema: anyObject, Task: protocol.TaskRequired, Call: f.wait},
		{Name: "blocks", InputSchema: anyObject, Call: func(_ context.Context, _ *protocol.ToolCall) (*protocol.ToolResult, error) {
			size := int64(3)
			return &protocol.ToolResult{Content: []protocol.Content{
				protocol.TextContent{Text: "t", Annotations: &protocol.Annotations{Audience: []string{"user"}, LastModified: time.Unix(0, 0)}, Meta: map[string]any{"example.test/m": true}},
				protocol.ImageContent{Data: []byte("i"), MIMEType: "image/png"},
				protocol.AudioContent{Data: []byte("a"), MIMEType: "audio/wav"},
				protocol.ResourceLink{URI: "test://a", Name: "a", Title: "A", Size: &size},
				protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "test://a", Text: "text"}},
				protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "test://b", Blob: []byte{1}}},
			}}, nil
		}},
	}
}

type completer struct{}

func (completer) Complete(_ context.Context, req *protocol.CompletionRequest) (*protocol.Completion, error) {
	if req.Value == "many" {
		return &protocol.Completion{Values: make([]string, 150)}, nil
	}
	return &protocol.Completion{Values: []string{req.Value + "1"}}, nil
}

type testResources struct {
	mu      sync.Mutex
	watched map[string]int
}

func (*testResources) ListResources(context.Context, *protocol.Exchange) ([]protocol.Resource, error) {
	return []protocol.Resource{{URI: "test://a", Name: "a", Title: "A", MIMEType: "text/plain"}, {URI: "test://b", Name: "b"}}, nil
}

func (*testResources) ListTemplates(context.Context, *protocol.Exchange) ([]protocol.ResourceTemplate, error) {
	return []protocol.ResourceTemplate{{URITemplate: "test://x/{id}", Name: "t"}}, nil
}

func (*testResources) ReadResource(ctx context.Context, uri string, x *protocol.Exchange) (*protocol.ReadResult, error) {
	switch {
	case uri == "test://ask":
		answer, err := x.Elicit(ctx, "q", nameForm)
		if err != nil {
			return nil, err
		}
		return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri, Text: answer.Action}}}, nil
	case strings.HasPrefix(uri, "test://none"):
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri, Text: "content"}}, TTL: time.Second}, nil
}

func (r *testResources) WatchResource(_ context.Context, uri string) (func(), error) {
	if strings.HasPrefix(uri, "test://none") {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched[uri]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watched[uri]--
	}, nil
}

func (r *testResources) watchers(uri string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watched[uri]
}

// memTasks keeps tasks in memory; tests move them on by hand.
type memTasks struct {
	mu     sync.Mutex
	last   int
	tasks  map[string]*memTask
	notify func(id string)
}

type memTask struct {
	protocol.Task
	answered map[string]protocol.InputResponse
}

func (m *memTasks) CreateTask(_ context.Context, call *protocol.ToolCall, ttl time.Duration) (*protocol.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	now := time.Unix(int64(1000+m.last), 0)
	t := &memTask{Task: protocol.Task{ID: fmt.Sprint("task-", m.last), Status: protocol.TaskWorking, CreatedAt: now, UpdatedAt: now, TTL: ttl, PollInterval: 10 * time.Second}, answered: make(map[string]protocol.InputResponse)}
	m.tasks[t.ID] = t
	copied := t.Task
	return &copied, nil
}

func (m *memTasks) GetTask(_ context.Context, id string, _ *protocol.Exchange) (*protocol.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tasks[id]
	if t == nil {
		return nil, protocol.ErrTaskNotFound
	}
	copied := t.Task
	return &copied, nil
}

func (m *memTasks) UpdateTask(_ context.Context, id string, responses map[string]protocol.InputResponse, _ *protocol.Exchange) error {
	m.change(id, func(t *memTask) {
		var left []protocol.InputRequest
		for _, q := range t.InputRequests {
			if resp, ok := responses[q.Key]; ok {
				t.answered[q.Key] = resp
			} else {
				left = append(left, q)
			}
		}
		if t.InputRequests = left; left == nil {
			t.Status = protocol.TaskWorking
		}
	})
	return nil
}

func (m *memTasks) CancelTask(_ context.Context, id string, _ *protocol.Exchange) (*protocol.Task, error) {
	m.change(id, func(t *memTask) { t.Status = protocol.TaskCancelled })
	return m.GetTask(context.Background(), id, nil)
}

// change moves a task on, unless it is final, and tells of it.
func (m *memTasks) change(id string, f func(*memTask)) {
	m.mu.Lock()
	if t := m.tasks[id]; t != nil && !t.Status.Final() {
		f(t)
		t.UpdatedAt = t.UpdatedAt.Add(time.Second)
	}
	m.mu.Unlock()
	m.notify(id)
}
