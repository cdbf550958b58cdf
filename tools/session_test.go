package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/xeipuuv/gojsonschema"

	"fabro-mcp/tools/plain"
	"fabro-mcp/transport"
)

// The revisions that sessions speak.
const (
	rev2024 = "2024-11-05"
	rev2506 = "2025-06-18"
	rev2511 = "2025-11-25"
	rev2607 = "2026-07-28"
)

// session is a scripted client on a stream in memory.
type session struct {
	t        *testing.T
	stream   *transport.LineStream
	revision string
	caps     map[string]any
	// answer fills in a form; nil refuses to be asked. It returns the result of
	// elicitation/create; without one the form stays open, and one with an "error"
	// is a failure of the host.
	answer func(params map[string]any) map[string]any

	mu      sync.Mutex // protects the fields below
	nextID  int
	waiting map[string]chan map[string]any
	notes   []map[string]any
	told    int           // how many of the notes untilNote has seen
	noted   chan struct{} // one for each notification, never blocking the reader
	asked   []map[string]any
}

// open starts a server and a client that speaks a revision. With answer the client
// declares that it can show forms.
func open(t *testing.T, cfg Config, revision string, answer func(map[string]any) map[string]any) *session {
	t.Helper()
	return openHost(t, cfg, revision, answer, func(*host) {})
}

// openHost is open for a test that changes the host before it serves.
func openHost(t *testing.T, cfg Config, revision string, answer func(map[string]any) map[string]any, change func(*host)) *session {
	t.Helper()
	h, err := newHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	change(h)
	server := h.server
	theirs, ours := transport.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, theirs) }()
	s := &session{t: t, stream: ours, revision: revision, answer: answer, waiting: map[string]chan map[string]any{}, noted: make(chan struct{}, 10_000), caps: map[string]any{}}
	if answer != nil {
		s.caps["elicitation"] = map[string]any{}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	t.Cleanup(func() {
		ours.Close()
		cancel()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Error("the server did not end")
		}
		<-read
	})
	if revision != rev2607 {
		s.request("initialize", map[string]any{"protocolVersion": revision, "capabilities": s.caps, "clientInfo": map[string]any{"name": "test", "version": "1"}})
		s.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	return s
}

func (s *session) write(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.stream.WriteFrames(line) // fails only when the test is over
}

func (s *session) read() {
	for {
		frame, err := s.stream.ReadFrame()
		if err != nil {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(frame, &m); err != nil {
			s.t.Errorf("not JSON: %s", frame)
			return
		}
		method, isCall := m["method"].(string)
		id, hasID := m["id"]
		switch {
		case isCall && hasID:
			params, _ := m["params"].(map[string]any)
			s.mu.Lock()
			s.asked = append(s.asked, params)
			s.mu.Unlock()
			if method != "elicitation/create" || s.answer == nil {
				s.write(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32601, "message": "no"}})
				continue
			}
			if result := s.answer(params); result["error"] != nil {
				go s.write(map[string]any{"jsonrpc": "2.0", "id": id, "error": result["error"]})
			} else if result != nil {
				go s.write(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
			}
		case isCall:
			s.mu.Lock()
			s.notes = append(s.notes, m)
			s.mu.Unlock()
			select {
			case s.noted <- struct{}{}:
			default:
			}
		default:
			s.mu.Lock()
			reply := s.waiting[fmt.Sprint(id)]
			delete(s.waiting, fmt.Sprint(id))
			s.mu.Unlock()
			if reply != nil {
				reply <- m
			}
		}
	}
}

// begin sends a request and returns where its response will come.
func (s *session) begin(method string, params map[string]any) <-chan map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	if s.revision == rev2607 {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["io.modelcontextprotocol/protocolVersion"] = s.revision
		meta["io.modelcontextprotocol/clientCapabilities"] = s.caps
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "test", "version": "1"}
		params["_meta"] = meta
	}
	reply := make(chan map[string]any, 1)
	s.mu.Lock()
	s.nextID++
	id := s.nextID
	s.waiting[fmt.Sprint(id)] = reply
	s.mu.Unlock()
	s.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return reply
}

func (s *session) wait(reply <-chan map[string]any, what string) map[string]any {
	s.t.Helper()
	select {
	case m := <-reply:
		return m
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("no answer to %s", what)
		return nil
	}
}

// request returns the result of a request; an error fails the test.
func (s *session) request(method string, params map[string]any) map[string]any {
	s.t.Helper()
	m := s.wait(s.begin(method, params), method)
	result, ok := m["result"].(map[string]any)
	if !ok {
		s.t.Fatalf("%s: %v", method, m)
	}
	return result
}

// untilNote waits for the next notification of a method.
func (s *session) untilNote(method string) {
	s.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		for len(s.notes) > s.told {
			s.told++
			if s.notes[s.told-1]["method"] == method {
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
		select {
		case <-s.noted:
		case <-deadline:
			s.t.Fatalf("no %s", method)
		}
	}
}

// call calls a tool to the end, answering input_required like a host would.
func (s *session) call(tool, arguments string) *result {
	s.t.Helper()
	return s.finish(s.beginCall(tool, arguments, nil), tool, arguments)
}

func (s *session) beginCall(tool, arguments string, extra map[string]any) <-chan map[string]any {
	params := map[string]any{"name": tool, "arguments": json.RawMessage(arguments)}
	for k, v := range extra {
		params[k] = v
	}
	return s.begin("tools/call", params)
}

func (s *session) finish(reply <-chan map[string]any, tool, arguments string) *result {
	s.t.Helper()
	for range 10 {
		m := s.wait(reply, tool)
		r, ok := m["result"].(map[string]any)
		if !ok {
			s.t.Fatalf("%s %s: %v", tool, arguments, m)
		}
		if r["resultType"] != "input_required" {
			s.validate(tool, r)
			return &result{t: s.t, tool: tool, raw: r}
		}
		responses := map[string]any{}
		for key, request := range r["inputRequests"].(map[string]any) {
			params := request.(map[string]any)["params"].(map[string]any)
			s.mu.Lock()
			s.asked = append(s.asked, params)
			s.mu.Unlock()
			responses[key] = s.answer(params)
		}
		reply = s.beginCall(tool, arguments, map[string]any{"inputResponses": responses, "requestState": r["requestState"]})
	}
	s.t.Fatalf("%s: asked again and again", tool)
	return nil
}

// validate holds a result against the published output schema of its tool, and its
// text against the limits that hold for every text.
func (s *session) validate(tool string, r map[string]any) {
	s.t.Helper()
	res := &result{t: s.t, tool: tool, raw: r}
	text := res.text()
	if text == "" || utf8.RuneCountInString(text) > plain.Limit || plain.Clean(text) != text {
		s.t.Errorf("%s: a text of %d characters, clean %v", tool, utf8.RuneCountInString(text), plain.Clean(text) == text)
	}
	structured, has := r["structuredContent"]
	if !has {
		if !res.failed() && s.revision != rev2024 {
			s.t.Errorf("%s: a result without structured content", tool)
		}
		return
	}
	for _, spec := range catalogue(false) {
		if spec.name != tool {
			continue
		}
		verdict, err := gojsonschema.Validate(gojsonschema.NewStringLoader(spec.output), gojsonschema.NewGoLoader(structured))
		if err != nil {
			s.t.Fatal(err)
		}
		if !verdict.Valid() {
			s.t.Errorf("%s: the structured content breaks the output schema: %v", tool, verdict.Errors())
		}
	}
}

// forms returns the forms shown so far.
func (s *session) forms() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.asked...)
}

// result is a tool result.
type result struct {
	t    *testing.T
	tool string
	raw  map[string]any
}

func (r *result) failed() bool { return r.raw["isError"] == true }

func (r *result) text() string {
	content, _ := r.raw["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	text, _ := content[0].(map[string]any)["text"].(string)
	return text
}

// structured decodes the structured value.
func (r *result) structured(into any) {
	r.t.Helper()
	if r.failed() {
		r.t.Fatalf("%s failed: %s", r.tool, r.text())
	}
	data, err := json.Marshal(r.raw["structuredContent"])
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		r.t.Fatalf("%s: %v in %s", r.tool, err, data)
	}
}

// accept answers every form with the given content.
func accept(content map[string]any) func(map[string]any) map[string]any {
	return func(map[string]any) map[string]any { return map[string]any{"action": "accept", "content": content} }
}

func decline(map[string]any) map[string]any { return map[string]any{"action": "decline"} }
