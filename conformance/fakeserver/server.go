// Package fakeserver is a small MCP server over stdio that the harness's own
// tests are played against: it speaks all five revisions, and a mode makes it
// misbehave in one way. It is written without the harness's readers, so that a
// mistake in those cannot hide itself.
package fakeserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Modes in which the server misbehaves; "" is a good server.
const (
	Hang        = "hang"         // answers nothing
	HangCall    = "hang-call"    // does not answer tools/call
	Mute        = "mute"         // answers initialize, server/discover and ping, and nothing else
	Banner      = "banner"       // greets on stdout
	Twice       = "twice"        // answers everything twice
	StringIDs   = "string-ids"   // turns every id into a string
	IgnoreEOF   = "ignore-eof"   // stays when its input ends
	IgnoreTerm  = "ignore-term"  // and when it is asked to leave
	AnswerAfter = "answer-after" // answers cancelled requests
	BadSchema   = "bad-schema"   // lists tools without an input schema
	Crash       = "crash"        // ends at the first tools/call
	LegacyOnly  = "legacy-only"  // knows no 2026-07-28
	Pretty      = "pretty"       // writes each message over two lines
	Child       = "child"        // starts a process that holds its pipes
)

var legacy = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

var spokenByMute = map[string]bool{"initialize": true, "server/discover": true, "ping": true}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
}

type server struct {
	mode    string
	mu      sync.Mutex // guards out and the fields below
	out     *bufio.Writer
	session string
	cancels map[string]chan struct{}
	calls   sync.WaitGroup
}

// Main serves until in ends.
func Main(mode string, in io.Reader, out io.Writer) {
	s := &server{mode: mode, out: bufio.NewWriter(out), cancels: map[string]chan struct{}{}}
	switch mode {
	case Banner:
		s.line([]byte("Welcome to the fake server!"))
	case IgnoreTerm:
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.read(line)
		}
		if err != nil {
			break
		}
	}
	if mode == IgnoreEOF || mode == IgnoreTerm {
		select {}
	}
	s.mu.Lock()
	for _, c := range s.cancels {
		close(c)
	}
	s.cancels = map[string]chan struct{}{}
	s.mu.Unlock()
	s.calls.Wait()
}

func (s *server) line(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(append(b, '\n'))
	s.out.Flush()
}

func (s *server) send(id json.RawMessage, member string, body any) {
	if s.mode == StringIDs && id[0] != '"' {
		id = fmt.Appendf(nil, "%q", id)
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, id, member, b)
	if s.mode == Pretty {
		line = fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\"id\":%s,\n%q:%s}", id, member, b)
	}
	s.line(line)
	if s.mode == Twice {
		s.line(line)
	}
}

func (s *server) fail(id json.RawMessage, code int, text string) {
	s.send(id, "error", map[string]any{"code": code, "message": text})
}

func (s *server) read(line []byte) {
	if s.mode == Hang {
		return
	}
	var m message
	if err := json.Unmarshal(line, &m); s.mode == Mute && (err != nil || !spokenByMute[m.Method]) {
		return
	} else if err != nil {
		if json.Valid(line) {
			s.fail([]byte("null"), -32600, "not a message")
		} else {
			s.fail([]byte("null"), -32700, "not JSON")
		}
		return
	}
	switch {
	case m.Method == "" && m.ID != nil: // an answer
	case m.Method == "" || m.JSONRPC != "2.0" || string(m.ID) == "null":
		s.fail([]byte("null"), -32600, "not a request")
	case m.ID == nil:
		s.notified(&m)
	default:
		s.request(&m)
	}
}

func (s *server) notified(m *message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if m.Method != "notifications/cancelled" || json.Unmarshal(m.Params, &p) != nil || s.mode == AnswerAfter {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.cancels[string(p.RequestID)]; ok {
		close(c)
		delete(s.cancels, string(p.RequestID))
	}
}

type params struct {
	Meta struct {
		Version       *string         `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities  json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ClientInfo      json.RawMessage `json:"clientInfo"`
	Cursor          *string         `json:"cursor"`
	Name            string          `json:"name"`
	Arguments       struct {
		Text string `json:"text"`
		MS   int    `json:"ms"`
	} `json:"arguments"`
}

func (s *server) request(m *message) {
	var p params
	if len(m.Params) > 0 && json.Unmarshal(m.Params, &p) != nil {
		s.fail(m.ID, -32602, "params do not fit")
		return
	}
	modern := p.Meta.Version != nil && (s.session == "" || !legacy[*p.Meta.Version])
	if s.mode == LegacyOnly {
		modern = false
	}
	switch {
	case modern && *p.Meta.Version != "2026-07-28":
		s.send(m.ID, "error", map[string]any{"code": -32022, "message": "unsupported protocol version",
			"data": map[string]any{"supported": []string{"2026-07-28"}, "requested": *p.Meta.Version}})
		return
	case modern && (len(p.Meta.Capabilities) == 0 || p.Meta.Capabilities[0] != '{'):
		s.fail(m.ID, -32602, "_meta lacks io.modelcontextprotocol/clientCapabilities")
		return
	}
	switch m.Method {
	case "ping":
		if modern {
			break
		}
		s.send(m.ID, "result", map[string]any{})
		return
	case "initialize":
		if modern {
			break
		}
		s.initialize(m, &p)
		return
	case "server/discover":
		if s.mode == LegacyOnly || s.session != "" && !modern {
			break
		}
		if !modern {
			s.fail(m.ID, -32602, "_meta lacks io.modelcontextprotocol/protocolVersion")
			return
		}
		s.result(m.ID, true, map[string]any{"supportedVersions": []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"},
			"capabilities": map[string]any{"tools": map[string]any{}}, "ttlMs": 1000, "cacheScope": "public"})
		return
	case "tools/list", "tools/call":
		if !modern && s.session == "" {
			s.fail(m.ID, -32602, "initialize first, or send _meta")
			return
		}
		if m.Method == "tools/list" {
			s.list(m, &p, modern)
		} else {
			s.call(m, &p, modern)
		}
		return
	}
	s.fail(m.ID, -32601, "unknown method "+m.Method)
}

func (s *server) initialize(m *message, p *params) {
	if p.ProtocolVersion == "" || len(p.Capabilities) == 0 || len(p.ClientInfo) == 0 {
		s.fail(m.ID, -32602, "initialize needs protocolVersion, capabilities and clientInfo")
		return
	}
	if s.session != "" {
		s.fail(m.ID, -32600, "initialized before")
		return
	}
	s.session = p.ProtocolVersion
	if !legacy[s.session] {
		s.session = "2025-11-25"
	}
	s.send(m.ID, "result", map[string]any{"protocolVersion": s.session, "capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo": map[string]any{"name": "fake", "version": "1.0"}})
}

// result sends a result with what a modern one must have.
func (s *server) result(id json.RawMessage, modern bool, body map[string]any) {
	if modern {
		body["resultType"] = "complete"
		body["_meta"] = map[string]any{"io.modelcontextprotocol/serverInfo": map[string]any{"name": "fake", "version": "1.0"}}
	}
	s.send(id, "result", body)
}

func (s *server) list(m *message, p *params, modern bool) {
	schema := map[string]any{"type": "object"}
	tools := []map[string]any{
		{"name": "echo", "inputSchema": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}}},
		{"name": "slow", "inputSchema": schema},
	}
	if s.mode == BadSchema {
		delete(tools[0], "inputSchema")
	}
	body := map[string]any{"tools": tools[:1], "nextCursor": "page-2"}
	switch {
	case p.Cursor != nil && *p.Cursor == "page-2":
		body = map[string]any{"tools": tools[1:]}
	case p.Cursor != nil:
		s.fail(m.ID, -32602, "unknown cursor")
		return
	}
	if modern {
		body["ttlMs"], body["cacheScope"] = 1000, "public"
	}
	s.result(m.ID, modern, body)
}

func (s *server) call(m *message, p *params, modern bool) {
	text := func(t string) map[string]any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": t}}}
	}
	if s.mode == HangCall {
		return
	}
	if s.mode == Crash {
		fmt.Fprintln(os.Stderr, "panic: something is rotten")
		os.Exit(7)
	}
	switch p.Name {
	case "echo":
		s.result(m.ID, modern, text(p.Arguments.Text))
	case "slow":
		stop := make(chan struct{})
		s.mu.Lock()
		s.cancels[string(m.ID)] = stop
		s.mu.Unlock()
		if p.Meta.ProgressToken != nil {
			s.line(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2}}`, p.Meta.ProgressToken))
		}
		s.calls.Go(func() {
			select {
			case <-stop:
			case <-time.After(time.Duration(p.Arguments.MS) * time.Millisecond):
				s.result(m.ID, modern, text("slow"))
			}
		})
	default:
		s.fail(m.ID, -32602, "unknown tool "+p.Name)
	}
}
