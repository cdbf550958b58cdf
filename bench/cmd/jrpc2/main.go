// Peer: sourcegraph/jsonrpc2 v0.2.1. Modes:
//
//	plain        NewBufferedStream with PlainObjectCodec, handler runs in the read loop
//	plain-async  same with AsyncHandler
//	line         own newline ObjectStream that answers malformed input itself and goes on
//	line-async   same with AsyncHandler
//	line-async-gc  line-async, replies go through a group-commit writer
//	line-bulk    as line, replies bypass Conn.Reply: the handler renders the line itself
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"

	"fabro-mcp/bench/toolset"

	"github.com/sourcegraph/jsonrpc2"
)

type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return nil }

// lineStream is an ObjectStream of newline-delimited messages. Lines that are
// no request or response are answered with an error here; they don't end the
// connection.
type lineStream struct {
	r    *bufio.Reader
	long []byte
	mu   sync.Mutex
	w    io.Writer
}

func (s *lineStream) line() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	s.long = append(s.long[:0], line...)
	for err == bufio.ErrBufferFull {
		line, err = s.r.ReadSlice('\n')
		s.long = append(s.long, line...)
	}
	if err == io.EOF && len(s.long) > 0 {
		err = nil
	}
	return s.long, err
}

func (s *lineStream) ReadObject(v any) error {
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if line[0] == '[' {
			s.writeRaw(toolset.AppendError(nil, nil, -32600, "batches are not supported"))
			continue
		}
		if err := json.Unmarshal(line, v); err != nil {
			code, msg := -32700, "parse error"
			if json.Valid(line) {
				code, msg = -32600, err.Error()
			}
			s.writeRaw(toolset.AppendError(nil, nil, code, msg))
			continue
		}
		return nil
	}
}

func (s *lineStream) writeRaw(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.w.Write(b)
	return err
}

func (s *lineStream) WriteObject(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.writeRaw(append(b, '\n'))
}
func (s *lineStream) Close() error { return nil }

func handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) (any, error) {
	switch req.Method {
	case "tools/call":
		var p toolset.CallParams
		if req.Params == nil {
			return nil, &jsonrpc2.Error{Code: -32602, Message: "missing params"}
		}
		if err := json.Unmarshal(*req.Params, &p); err != nil {
			return nil, &jsonrpc2.Error{Code: -32602, Message: err.Error()}
		}
		out, err, known := toolset.Call(p.Name, p.Arguments)
		if !known {
			return nil, &jsonrpc2.Error{Code: -32602, Message: "unknown tool " + p.Name}
		}
		if err != nil {
			return json.RawMessage(toolset.AppendToolError(nil, err.Error())), nil
		}
		b, err := toolset.AppendToolResult(nil, out)
		return json.RawMessage(b), err
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return json.RawMessage(toolset.ListResult), nil
	case "initialize":
		return json.RawMessage(toolset.InitResult), nil
	case "server/discover":
		return json.RawMessage(toolset.DiscoverResult), nil
	case "notifications/initialized", "notifications/cancelled":
		return nil, nil
	}
	return nil, &jsonrpc2.Error{Code: -32601, Message: "method not found: " + req.Method}
}

type bulk struct{ s *lineStream }

func (h bulk) Handle(ctx context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
	res, err := handle(ctx, c, req)
	if req.Notif {
		return
	}
	id, _ := req.ID.MarshalJSON()
	if err != nil {
		e := err.(*jsonrpc2.Error)
		h.s.writeRaw(toolset.AppendError(nil, id, int(e.Code), e.Message))
		return
	}
	raw, ok := res.(json.RawMessage)
	if !ok {
		raw = json.RawMessage("{}")
	}
	b := make([]byte, 0, len(raw)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b = append(b, raw...)
	h.s.writeRaw(append(b, "}\n"...))
}

func main() {
	toolset.Hook()
	mode := "plain"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	var st jsonrpc2.ObjectStream
	ls := &lineStream{r: bufio.NewReaderSize(os.Stdin, 64<<10), w: os.Stdout}
	var h jsonrpc2.Handler = jsonrpc2.HandlerWithError(handle)
	switch mode {
	case "plain", "plain-async":
		st = jsonrpc2.NewBufferedStream(stdio{}, jsonrpc2.PlainObjectCodec{})
	case "line", "line-async":
		st = ls
	case "line-async-gc":
		g := toolset.NewGroupWriter(os.Stdout)
		defer g.Close()
		ls.w = g
		st = ls
	case "line-bulk":
		st, h = ls, bulk{ls}
	default:
		os.Exit(2)
	}
	if mode == "plain-async" || mode == "line-async" || mode == "line-async-gc" {
		h = jsonrpc2.AsyncHandler(h)
	}
	c := jsonrpc2.NewConn(context.Background(), st, h)
	<-c.DisconnectNotify()
}
