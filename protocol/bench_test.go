package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fabro-mcp/protocol"
	"fabro-mcp/transport"
)

// benchServer has the echo tool of the bench kit: typed both ways, structured.
func benchServer() *protocol.Server {
	type in struct {
		Message string `json:"message"`
		N       int    `json:"n"`
	}
	type out struct {
		Message string `json:"message"`
		N       int    `json:"n"`
		Len     int    `json:"len"`
	}
	var tools []protocol.Tool
	for i := range 8 {
		name := "echo"
		if i > 0 {
			name = fmt.Sprint("echo_", i)
		}
		tools = append(tools, protocol.Tool{
			Name: name, Description: "Echo the arguments as structured content and as text.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","description":"text to be echoed"},"n":{"type":"integer"},"quiet":{"type":"boolean"}},"required":["message"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"},"n":{"type":"integer"},"len":{"type":"integer"}},"required":["message","n","len"],"additionalProperties":false}`),
			Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
				var a in
				if err := json.Unmarshal(call.Arguments, &a); err != nil {
					return nil, err
				}
				return &protocol.ToolResult{Structured: out{a.Message, a.N, len(a.Message)}}, nil
			},
		})
	}
	return &protocol.Server{Info: protocol.Implementation{Name: "bench", Version: "1"}, Tools: tools}
}

// loop is a stream end for measurements: lines are sent and answers counted without
// looking at them.
type loop struct {
	stream *transport.LineStream
	done   chan error
}

func openLoop(tb testing.TB, s *protocol.Server) *loop {
	tb.Helper()
	ours, theirs := transport.Pipe()
	l := &loop{stream: ours, done: make(chan error, 1)}
	go func() { l.done <- s.Serve(context.Background(), theirs) }()
	l.roundTrip(tb, request("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	tb.Cleanup(func() {
		ours.CloseWrite()
		if err := <-l.done; err != nil {
			tb.Error(err)
		}
	})
	return l
}

func (l *loop) roundTrip(tb testing.TB, line string) {
	if err := l.stream.WriteFrames([]byte(line)); err != nil {
		tb.Fatal(err)
	}
	frame, err := l.stream.ReadFrame()
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Contains(frame, []byte(`"result"`)) {
		tb.Fatalf("no result: %s", frame)
	}
}

var benchCalls = []struct {
	name, line string
	most       float64 // allocations
}{
	{"ping", request("1", "ping", ""), 4},
	{"list", request("2", "tools/list", ""), 4},
	{"echo", request("3", "tools/call", `{"name":"echo","arguments":{"message":"hello, world","n":7}}`), 20},
}

// TestAllocations keeps what one request allocates below its limit, decoding and
// encoding by the handler included.
func TestAllocations(t *testing.T) {
	l := openLoop(t, benchServer())
	for _, c := range benchCalls {
		line := c.line
		l.roundTrip(t, line)
		got := testing.AllocsPerRun(2000, func() { l.roundTrip(t, line) })
		t.Logf("%s: %.1f allocations", c.name, got)
		if got > c.most && !raceEnabled {
			t.Errorf("%s: %.1f allocations, at most %.0f are allowed", c.name, got, c.most)
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, c := range benchCalls {
		b.Run(c.name, func(b *testing.B) {
			l := openLoop(b, benchServer())
			b.ReportAllocs()
			for b.Loop() {
				l.roundTrip(b, c.line)
			}
		})
	}
}

// BenchmarkInFlight keeps 64 calls in flight.
func BenchmarkInFlight(b *testing.B) {
	for _, c := range benchCalls {
		b.Run(c.name, func(b *testing.B) {
			l := openLoop(b, benchServer())
			line := strings.Replace(c.line, `"id":`, `"id":10000`, 1)
			window := make(chan struct{}, 64)
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for i := range b.N {
					window <- struct{}{}
					one := strings.Replace(line, `"id":10000`, fmt.Sprintf(`"id":%d`, 10000+i), 1)
					if err := l.stream.WriteFrames([]byte(one)); err != nil {
						b.Error(err)
						return
					}
				}
			}()
			for range b.N {
				if _, err := l.stream.ReadFrame(); err != nil {
					b.Fatal(err)
				}
				<-window
			}
		})
	}
}

// BenchmarkLarge sends 16 MiB in one argument.
func BenchmarkLarge(b *testing.B) {
	s := benchServer()
	s.Tools = append(s.Tools, protocol.Tool{Name: "sink", InputSchema: json.RawMessage(`{"type":"object"}`), Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		return &protocol.ToolResult{}, nil
	}})
	l := openLoop(b, s)
	line := request("1", "tools/call", `{"name":"sink","arguments":{"message":"`+strings.Repeat("0123456789abcdef", 1<<20)+`"}}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		l.roundTrip(b, line)
	}
}
