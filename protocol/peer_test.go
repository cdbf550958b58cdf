package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"fabro-mcp/protocol"
	"fabro-mcp/transport"
)

// waitLimit bounds every wait of a test; it only matters when something is wrong.
const waitLimit = time.Minute

// peer is the client's side of a served pipe. It checks every line it sees.
type peer struct {
	t      testing.TB
	stream *transport.LineStream
	lines  chan string
	done   chan error
	stop   context.CancelFunc

	judge judge

	mu   sync.Mutex
	seen []string
}

// connect serves s over a pipe and returns the other end.
func connect(t testing.TB, s *protocol.Server) *peer {
	t.Helper()
	ours, theirs := transport.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{t: t, stream: ours, lines: make(chan string, 1024), done: make(chan error, 1), stop: stop, judge: judge{t: t}}
	go func() { p.done <- s.Serve(ctx, theirs) }()
	go func() {
		defer close(p.lines)
		for {
			frame, err := ours.ReadFrame()
			if err != nil {
				return
			}
			line := string(frame)
			p.judge.received(line)
			p.mu.Lock()
			p.seen = append(p.seen, line)
			p.mu.Unlock()
			p.lines <- line
		}
	}()
	t.Cleanup(func() {
		p.stop()
		p.stream.Close()
		for range p.lines {
		}
	})
	return p
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		p.judge.sending(l)
		if err := p.stream.WriteLines([]byte(l + "\n")); err != nil {
			p.t.Fatalf("send %s: %v", l, err)
		}
	}
}

// next returns the next line of the server.
func (p *peer) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the server closed its output")
		}
		return line
	case <-time.After(waitLimit):
		p.t.Fatal("no line from the server")
	}
	return ""
}

// call sends one line and returns the response to its id, dropping what comes before.
func (p *peer) call(line string) string {
	p.t.Helper()
	p.send(line)
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		p.t.Fatal(err)
	}
	return p.response(string(m.ID))
}

// response returns the response with that id.
func (p *peer) response(id string) string {
	p.t.Helper()
	for {
		line := p.next()
		var m struct {
			ID     json.RawMessage
			Method *string
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			p.t.Fatalf("the server wrote %q: %v", line, err)
		}
		if m.Method == nil && string(m.ID) == id {
			return line
		}
	}
}

// quiet checks that nothing but the answer to a ping, or to another harmless
// request, is on its way.
func (p *peer) quiet() {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"witness","method":"no/such/method"}`)
	if line := p.next(); !strings.Contains(line, `"id":"witness"`) {
		p.t.Fatalf("unexpected line: %s", line)
	}
}

// finish ends the input and returns what Serve returned.
func (p *peer) finish() error {
	p.t.Helper()
	p.stream.CloseWrite()
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(waitLimit):
		p.t.Fatal("Serve does not return")
	}
	return nil
}

// initialize opens a session.
func (p *peer) initialize(version, capabilities string) string {
	p.t.Helper()
	line := p.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"0"}}}`, version, capabilities))
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return line
}

// modern returns a request of 2026-07-28. params are members, without brackets.
func modern(id, method, params string) string { return modernWith(id, method, params, `{}`, "") }

func modernWith(id, method, params, capabilities, meta string) string {
	if params != "" {
		params += ","
	}
	if meta != "" {
		meta = "," + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s%s}}}`, id, method, params, capabilities, meta)
}

// request returns a request without metadata. params may be empty.
func request(id, method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params)
}

// errorOf returns code and message of an error response.
func errorOf(t testing.TB, line string) (code int64, message string, data json.RawMessage) {
	t.Helper()
	var m struct {
		Error *struct {
			Code    int64
			Message string
			Data    json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error == nil {
		t.Fatalf("no error response: %s (%v)", line, err)
	}
	return m.Error.Code, m.Error.Message, m.Error.Data
}

// resultOf returns the result of a response.
func resultOf(t testing.TB, line string) map[string]any {
	t.Helper()
	var m struct{ Result map[string]any }
	dec := json.NewDecoder(bytes.NewReader([]byte(line)))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil || m.Result == nil {
		t.Fatalf("no result: %s (%v)", line, err)
	}
	return m.Result
}
