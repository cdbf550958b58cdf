package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fabro-mcp/protocol"
	"fabro-mcp/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func echo(id int) string {
	return request(fmt.Sprint(id), "tools/call", fmt.Sprintf(`{"name":"echo","arguments":{"text":"%d"}}`, id))
}

func TestEndOfInputAnswersEverything(t *testing.T) {
	f := newFullServer()
	f.Options.DrainGrace = waitLimit
	p := connect(t, f.Server)
	p.initialize("2025-06-18", "{}")
	for i := range 200 {
		p.send(echo(i))
	}
	for i := range 5 {
		p.send(request(fmt.Sprint(1000+i), "tools/call", `{"name":"slow"}`))
	}
	for range 5 {
		<-f.entered
	}
	p.stream.CloseWrite()
	close(f.release)
	seen := map[string]int{}
	for range 205 {
		line := p.next()
		var m struct{ ID json.RawMessage }
		json.Unmarshal([]byte(line), &m)
		seen[string(m.ID)]++
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%d answers for %s", n, id)
		}
	}
}

func TestWaitingToolsAnswerAtEndOfInput(t *testing.T) {
	f := newFullServer()
	f.Options.DrainGrace = waitLimit
	p := connect(t, f.Server)
	p.send(modern("1", "tools/call", `"name":"gather"`))
	<-f.entered
	p.stream.CloseWrite()
	if line := p.next(); !strings.Contains(line, "so far") {
		t.Errorf("got %s", line)
	}
}

func TestHandlerThatNeverEnds(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.send(modern("1", "tools/call", `"name":"hang"`))
	<-f.entered
	if err := p.finish(); err != nil {
		t.Error(err)
	}
	if code, message, _ := errorOf(t, p.next()); code != -32603 || !strings.Contains(message, "ended") {
		t.Errorf("%d %s", code, message)
	}
	close(f.release)
}

func TestStopCancelsHandlers(t *testing.T) {
	f := newFullServer()
	f.Options.StopGrace = time.Millisecond
	p := connect(t, f.Server)
	p.send(modern("1", "tools/call", `"name":"slow"`))
	<-f.entered
	p.stop()
	if err := <-f.causes; err != protocol.ErrShuttingDown {
		t.Errorf("cause %v", err)
	}
	if line := p.response("1"); !strings.Contains(line, `"isError":true`) {
		t.Errorf("got %s", line)
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
}

func TestNothingAfterStop(t *testing.T) {
	f := newFullServer()
	f.Options.StopGrace = 200 * time.Millisecond
	p := connect(t, f.Server)
	p.send(modern("1", "tools/call", `"name":"slow"`))
	<-f.entered
	p.stop()
	for {
		p.send(modern("2", "tools/call", `"name":"slow"`))
		line := p.next()
		if strings.Contains(line, "shutting down") && strings.Contains(line, `"id":2`) {
			break
		}
	}
	close(f.release)
}

// brokenWriter fails like a pipe whose reader is gone.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestPeerGone(t *testing.T) {
	r, w := io.Pipe()
	f := newFullServer()
	stream := transport.NewLineStream(r, brokenWriter{}, transport.OnClose(r))
	done := make(chan error, 1)
	go func() { done <- f.Serve(context.Background(), stream) }()
	io.WriteString(w, modern("1", "tools/call", `"name":"slow"`)+"\n"+modern("2", "tools/list", "")+"\n")
	if err := <-done; !errors.Is(err, protocol.ErrPeerGone) {
		t.Errorf("got %v", err)
	}
	<-f.entered
	if err := <-f.causes; err != protocol.ErrShuttingDown {
		t.Errorf("cause %v", err)
	}
}

func TestReadErrorEndsServe(t *testing.T) {
	bad := errors.New("bad cable")
	r, w := io.Pipe()
	w.CloseWithError(bad)
	if err := plainServer().Serve(context.Background(), transport.NewLineStream(r, io.Discard)); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

func TestLongLine(t *testing.T) {
	s := plainServer()
	s.Options.MaxMessageBytes = 1000
	p := connect(t, s)
	long := strings.Repeat("x", 100_000)
	p.send(request("7", "tools/call", `{"name":"`+long+`"}`))
	if line := p.next(); !strings.Contains(line, `"id":7,"error":{"code":-32600`) {
		t.Errorf("got %s", line)
	}
	p.send(`{"params":{"x":"` + long + `"},"id":7}`)
	nullError(t, p, -32600)
	p.send("g" + long)
	nullError(t, p, -32600)
	opens(t, p)
}

func TestLargeResult(t *testing.T) {
	s := plainServer()
	s.Options.MaxResultBytes = 2000
	p := connect(t, s)
	line := p.call(modern("1", "tools/call", `"name":"echo","arguments":{"text":"`+strings.Repeat("x", 3000)+`"}`))
	if r := resultOf(t, line); r["isError"] != true || len(line) > 1000 || !strings.Contains(line, "too large") {
		t.Errorf("got %s", line)
	}
	p.call(modern("2", "tools/call", `"name":"echo","arguments":{"text":"small"}`))
}

func TestLimits(t *testing.T) {
	f := newFullServer()
	f.Options.MaxHandlers, f.Options.MaxQueued, f.Options.MaxWaiting = 2, 3, 2
	p := connect(t, f.Server)
	p.initialize("2025-06-18", "{}")
	slow := func(id int, name string) {
		p.send(request(fmt.Sprint(id), "tools/call", fmt.Sprintf(`{"name":%q}`, name)))
	}
	for i := range 5 {
		slow(i, "slow")
	}
	<-f.entered
	<-f.entered
	slow(5, "slow")
	code, message, data := errorOf(t, p.response("5"))
	if code != -32603 || string(data) != `{"retryable":true}` {
		t.Errorf("%d %s %s", code, message, data)
	}
	for i := range 2 {
		slow(10+i, "gather")
		<-f.entered
	}
	slow(12, "gather")
	if code, _, _ := errorOf(t, p.response("12")); code != -32603 {
		t.Errorf("waiting calls: %d", code)
	}
	// The rest of the protocol works, and a queued call can be cancelled.
	p.call(request("20", "ping", ""))
	p.call(request("21", "tools/list", ""))
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	p.quiet()
	close(f.release)
	got := map[string]bool{}
	for range 6 {
		var m struct{ ID json.RawMessage }
		line := p.next()
		json.Unmarshal([]byte(line), &m)
		got[string(m.ID)] = true
	}
	for _, id := range []string{"0", "1", "2", "4", "10", "11"} {
		if !got[id] {
			t.Errorf("no answer for %s", id)
		}
	}
	p.quiet()
}

// gate is a host's end of the output that reads nothing until it is opened.
type gate struct {
	entered, open chan struct{}
	w             io.Writer
}

func (g *gate) Write(p []byte) (int, error) {
	select {
	case g.entered <- struct{}{}:
	default:
	}
	<-g.open
	return g.w.Write(p)
}

// TestHostThatReadsNothing: the server takes only so many requests from a host that
// reads no answers, and answers them all when it reads again.
func TestHostThatReadsNothing(t *testing.T) {
	s := plainServer()
	s.Options.MaxHandlers, s.Options.MaxQueued, s.Options.MaxWaiting = 4, 8, 1
	const n, most = 300, 4 + 8 + 1 + 100
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	g := &gate{entered: make(chan struct{}, 1), open: make(chan struct{}), w: outW}
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(context.Background(), transport.NewLineStream(inR, g, transport.OnClose(outW)))
	}()
	var taken atomic.Int32
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		text := strings.Repeat("x", 70_000) // more than the reader's buffer
		for i := range n {
			if _, err := io.WriteString(inW, modern(fmt.Sprint(i), "tools/call", `"name":"echo","arguments":{"text":"`+text+`"}`)+"\n"); err != nil {
				t.Error(err)
				return
			}
			taken.Add(1)
		}
		inW.Close()
	}()
	<-g.entered
	for range 100_000 {
		runtime.Gosched()
	}
	if got := taken.Load(); got > most {
		t.Errorf("%d requests were taken while nothing was read, at most %d should be", got, most)
	}
	close(g.open)
	host := transport.NewLineStream(outR, io.Discard)
	for range n {
		if _, err := host.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	<-wrote
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShortAnswersThatNobodyReads: what is answered at once, whatever it is, does not
// pile up either.
func TestShortAnswersThatNobodyReads(t *testing.T) {
	for name, line := range map[string]string{
		"ping":           request("1", "ping", ""),
		"list":           modern("1", "tools/list", ""),
		"call":           modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"}`),
		"unknown method": modern("1", "no/such", ""),
		"no JSON":        "{",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inR, inW := io.Pipe()
			_, outW := io.Pipe()
			done := make(chan error, 1)
			ctx, stop := context.WithCancel(context.Background())
			go func() { done <- plainServer().Serve(ctx, transport.NewLineStream(inR, outW, transport.OnClose(outW))) }()
			// Answers of so many messages are several times what may be held back.
			const n, most = 100, 50
			burst := strings.Repeat(line+"\n", 5_000)
			taken := make(chan struct{}, n)
			go func() {
				for range n {
					if _, err := io.WriteString(inW, burst); err != nil {
						return
					}
					taken <- struct{}{}
				}
			}()
			got := 0
			for waits := true; waits && got <= most; {
				select {
				case <-taken:
					got++
				case <-time.After(time.Second):
					waits = false
				}
			}
			if got > most {
				t.Errorf("%d messages were taken while nobody read the answers", got*5_000)
			}
			stop()
			<-done
			inW.CloseWithError(io.ErrClosedPipe)
			inR.Close()
		})
	}
}

// TestDeafHostClosesItsSide: a host that reads no answers is not read from, and the
// server ends all the same when it closes its side.
func TestDeafHostClosesItsSide(t *testing.T) {
	s := plainServer()
	s.Options.DrainGrace = 100 * time.Millisecond
	host, server := transport.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), server) }()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for range 20_000 {
			if host.WriteFrames([]byte(modern("1", "tools/list", ""))) != nil {
				return
			}
		}
	}()
	select {
	case <-wrote:
		t.Fatal("everything was taken while nobody read the answers")
	case <-time.After(time.Second):
	}
	host.CloseWrite()
	<-wrote
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDeafHostThatListens: an open listen keeps nothing from ending, with a host
// that reads no answers.
func TestDeafHostThatListens(t *testing.T) {
	for name, signal := range map[string]bool{"end of input": false, "signal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plainServer()
			s.Options.DrainGrace, s.Options.StopGrace = 100*time.Millisecond, 100*time.Millisecond
			host, server := transport.Pipe()
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, server) }()
			if err := host.WriteFrames([]byte(modern(`"L"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))); err != nil {
				t.Fatal(err)
			}
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				for i := range 20_000 {
					if host.WriteFrames([]byte(modern(fmt.Sprint(i), "tools/list", ""))) != nil {
						return
					}
				}
			}()
			select {
			case <-wrote:
				t.Fatal("everything was taken while nobody read the answers")
			case <-time.After(time.Second):
			}
			if signal {
				stop()
			} else {
				host.CloseWrite()
			}
			<-done
			<-wrote
		})
	}
}

func TestManyCancels(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.initialize("2025-06-18", "{}")
	const n = 300
	for i := range n {
		p.send(request(fmt.Sprint(i), "tools/call", `{"name":"slow"}`))
		if i%3 != 0 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
		}
	}
	close(f.release)
	for range n / 3 {
		line := p.next()
		var m struct{ ID int }
		json.Unmarshal([]byte(line), &m)
		if m.ID%3 != 0 && !strings.Contains(line, "released") {
			t.Errorf("got %s", line)
		}
	}
}

func TestPanicsStayInside(t *testing.T) {
	p := connect(t, newFullServer().Server)
	line := p.call(modern("1", "tools/call", `"name":"boom"`))
	if r := resultOf(t, line); r["isError"] != true || strings.Contains(line, "boom.go") || strings.Contains(line, "goroutine") {
		t.Errorf("got %s", line)
	}
	p.call(modern("2", "tools/list", ""))
}

func TestServeRefusesFaultyServer(t *testing.T) {
	a, _ := transport.Pipe()
	if err := (&protocol.Server{}).Serve(context.Background(), a); err == nil {
		t.Error("a server without a name was served")
	}
	s := plainServer()
	s.Options.Revisions = []string{"2099-01-01"}
	if err := s.Check(); err == nil {
		t.Error("an unknown revision was taken")
	}
}

func TestSomeRevisions(t *testing.T) {
	s := plainServer()
	s.Options.Revisions = []string{"2026-07-28"}
	p := connect(t, s)
	line := p.call(request("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	if _, message, data := errorOf(t, line); !strings.Contains(message, "2026-07-28") || !strings.Contains(string(data), `"supported":["2026-07-28"]`) {
		t.Errorf("got %s", line)
	}
	if code, _, _ := errorOf(t, p.call(request("2", "ping", ""))); code != -32601 {
		t.Errorf("ping: %d", code)
	}
	p.call(modern("3", "tools/list", ""))
	s = plainServer()
	s.Options.Revisions = []string{"2025-03-26", "2025-06-18"}
	p = connect(t, s)
	if v := resultOf(t, p.initialize("2025-11-25", "{}"))["protocolVersion"]; v != "2025-06-18" {
		t.Errorf("counter-offer %v", v)
	}
	if code, _, _ := errorOf(t, p.call(modern("3", "tools/list", ""))); code != -32022 {
		t.Errorf("modern: %d", code)
	}
}

func TestTraceReachesHandlers(t *testing.T) {
	var got protocol.TraceContext
	var client protocol.Implementation
	s := plainServer(protocol.Tool{Name: "trace", InputSchema: anyObject, Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		got, client = call.Trace(), call.Client()
		return nil, nil
	}})
	p := connect(t, s)
	p.call(modernWith("1", "tools/call", `"name":"trace"`, "{}", `"traceparent":"00-ab-cd-01","tracestate":"a=b","baggage":"k=v","io.modelcontextprotocol/clientInfo":{"name":"c","version":"2"}`))
	if want := (protocol.TraceContext{Traceparent: "00-ab-cd-01", Tracestate: "a=b", Baggage: "k=v"}); got != want {
		t.Errorf("got %+v", got)
	}
	if client.Name != "c" || client.Version != "2" {
		t.Errorf("client %+v", client)
	}
}
