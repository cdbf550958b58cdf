// Peer: bare Go floor, no SDK. One line loop over stdin. Modes:
//
//	canned   encoding/json decode of id and method, constant reply, one write per reply
//	echo     decodes params and arguments too, real tools, one write per reply
//	echo-co  as echo, but replies are flushed only when no further input is buffered
//	scan-co  as echo-co with a hand-written scanner instead of encoding/json for the envelope
//	async    as echo, a goroutine per request and a group-commit writer
//	async-d  as echo, a goroutine per request, each writes its reply under a mutex
//	hybrid   as echo, but only the tool arguments go through encoding/json
//	hybrid-lf  hybrid with leader/follower
//	lf       as echo, leader/follower: the goroutine that read a line answers it
//	sync-gc  as echo, replies handed to the group-commit writer
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"fabro-mcp/bench/toolset"
)

type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}
type envelopeP struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
}

// lineReader returns whole lines; the slice is valid until the next call.
type lineReader struct {
	r    *bufio.Reader
	long []byte
}

func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	if err != bufio.ErrBufferFull {
		if len(line) > 0 && err == io.EOF {
			return line, nil
		}
		return nil, err
	}
	l.long = append(l.long[:0], line...)
	for {
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && len(l.long) > 0 {
			err = nil
		}
		return l.long, err
	}
}

// moreBuffered reports whether a whole further line is buffered.
func (l *lineReader) moreBuffered() bool {
	n := l.r.Buffered()
	if n == 0 {
		return false
	}
	b, _ := l.r.Peek(n)
	return bytes.IndexByte(b, '\n') >= 0
}

func appendResult(dst, id []byte, result []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, "}\n"...)
}

var cannedCall = []byte(`{"content":[{"type":"text","text":"{\"message\":\"ok\",\"n\":1,\"len\":2}"}],"structuredContent":{"message":"ok","n":1,"len":2}}`)

func canned(dst, line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return dst
	}
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		if json.Valid(line) {
			return toolset.AppendError(dst, nil, -32600, "invalid request")
		}
		return toolset.AppendError(dst, nil, -32700, "parse error")
	}
	if len(e.ID) == 0 {
		return dst
	}
	switch e.Method {
	case "tools/call":
		return appendResult(dst, e.ID, cannedCall)
	case "ping":
		return appendResult(dst, e.ID, []byte("{}"))
	case "tools/list":
		return appendResult(dst, e.ID, toolset.ListResult)
	case "initialize":
		return appendResult(dst, e.ID, []byte(toolset.InitResult))
	case "server/discover":
		return appendResult(dst, e.ID, []byte(toolset.DiscoverResult))
	}
	return toolset.AppendError(dst, e.ID, -32601, "method not found: "+e.Method)
}

func echo(dst, line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return dst
	}
	var e envelopeP
	if err := json.Unmarshal(line, &e); err != nil {
		if json.Valid(line) {
			return toolset.AppendError(dst, nil, -32600, "invalid request")
		}
		return toolset.AppendError(dst, nil, -32700, "parse error")
	}
	if e.Method == nil {
		return toolset.AppendError(dst, nil, -32600, "invalid request")
	}
	if len(e.ID) == 0 {
		return dst
	}
	if c := e.ID[0]; c != '"' && c != '-' && (c < '0' || c > '9') || bytes.ContainsAny(e.ID, ".eE") && c != '"' {
		return toolset.AppendError(dst, nil, -32600, "invalid id")
	}
	return dispatch(dst, e.ID, *e.Method, e.Params)
}

func dispatch(dst, id []byte, method string, params []byte) []byte {
	switch method {
	case "tools/call":
		var p toolset.CallParams
		if err := json.Unmarshal(params, &p); err != nil {
			return toolset.AppendError(dst, id, -32602, err.Error())
		}
		return callTool(dst, id, p.Name, p.Arguments)
	case "ping":
		return appendResult(dst, id, []byte("{}"))
	case "tools/list":
		return appendResult(dst, id, toolset.ListResult)
	case "initialize":
		return appendResult(dst, id, []byte(toolset.InitResult))
	case "server/discover":
		return appendResult(dst, id, []byte(toolset.DiscoverResult))
	}
	return toolset.AppendError(dst, id, -32601, "method not found: "+method)
}

// scan is echo with a hand-written envelope scanner; on anything unusual it
// falls back to echo. For the tool "echo" with only message and n it copies
// the raw string through.
func scan(dst, line []byte) []byte {
	var id, method, params []byte
	ok := scanObject(line, func(k, v []byte) {
		switch string(k) {
		case "id":
			id = v
		case "method":
			method = v
		case "params":
			params = v
		}
	})
	if !ok || len(id) == 0 || len(method) < 2 || id[0] < '0' || id[0] > '9' {
		return echo(dst, line)
	}
	switch string(method) {
	case `"ping"`:
		return appendResult(dst, id, []byte("{}"))
	case `"tools/list"`:
		return appendResult(dst, id, toolset.ListResult)
	case `"tools/call"`:
	default:
		return echo(dst, line)
	}
	var name, args []byte
	if !scanObject(params, func(k, v []byte) {
		switch string(k) {
		case "name":
			name = v
		case "arguments":
			args = v
		}
	}) || string(name) != `"echo"` {
		return echo(dst, line)
	}
	var msg, n []byte
	other, quiet := false, false
	if !scanObject(args, func(k, v []byte) {
		switch string(k) {
		case "message":
			msg = v
		case "n":
			n = v
		case "quiet":
			quiet = string(v) == "true"
		default:
			other = true
		}
	}) || other || len(msg) < 2 || msg[0] != '"' || bytes.IndexByte(msg, '\\') >= 0 || !utf8.Valid(msg) {
		return echo(dst, line)
	}
	msgLen := len(msg) - 2
	if quiet {
		msg = []byte(`""`)
	}
	if len(n) == 0 {
		n = []byte("0")
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"result":{"content":[{"type":"text","text":"{\"message\":\"`...)
	dst = append(dst, msg[1:len(msg)-1]...)
	dst = append(dst, `\",\"n\":`...)
	dst = append(dst, n...)
	dst = append(dst, `,\"len\":`...)
	dst = strconv.AppendInt(dst, int64(msgLen), 10)
	dst = append(dst, `}"}],"structuredContent":{"message":`...)
	dst = append(dst, msg...)
	dst = append(dst, `,"n":`...)
	dst = append(dst, n...)
	dst = append(dst, `,"len":`...)
	dst = strconv.AppendInt(dst, int64(msgLen), 10)
	return append(dst, "}}}\n"...)
}

// hybrid scans the envelope and params by hand and leaves only the arguments
// to encoding/json; everything else is as in echo.
func hybrid(dst, line []byte) []byte {
	var id, method, params []byte
	ok := scanObject(line, func(k, v []byte) {
		switch string(k) {
		case "id":
			id = v
		case "method":
			method = v
		case "params":
			params = v
		}
	})
	if !ok || len(id) == 0 || id[0] < '0' || id[0] > '9' || len(method) < 2 || !utf8.Valid(line) {
		return echo(dst, line)
	}
	if string(method) != `"tools/call"` {
		return dispatch(dst, id, string(method[1:len(method)-1]), params)
	}
	var name, args []byte
	if !scanObject(params, func(k, v []byte) {
		switch string(k) {
		case "name":
			name = v
		case "arguments":
			args = v
		}
	}) || len(name) < 2 || bytes.IndexByte(name, '\\') >= 0 {
		return echo(dst, line)
	}
	return callTool(dst, id, string(name[1:len(name)-1]), args)
}

func callTool(dst, id []byte, name string, args []byte) []byte {
	out, err, known := toolset.Call(name, args)
	if !known {
		return toolset.AppendError(dst, id, -32602, "unknown tool "+name)
	}
	mark := len(dst)
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"result":`...)
	if err != nil {
		dst = toolset.AppendToolError(dst, err.Error())
	} else if dst, err = toolset.AppendToolResult(dst, out); err != nil {
		return toolset.AppendError(dst[:mark], id, -32603, err.Error())
	}
	return append(dst, "}\n"...)
}

func ws(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// str returns the index after the string that starts at b[i]=='"', or -1.
func str(b []byte, i int) int {
	i++
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return -1
		}
		i += j
		n := 0
		for k := i - 1; b[k] == '\\'; k-- {
			n++
		}
		i++
		if n%2 == 0 {
			return i
		}
	}
}

// scanObject calls f with each key (unquoted) and raw value. It checks the
// structure only loosely.
func scanObject(b []byte, f func(k, v []byte)) bool {
	i := ws(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = ws(b, i+1)
	if i < len(b) && b[i] == '}' {
		return ws(b, i+1) == len(b)
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return false
		}
		e := str(b, i)
		if e < 0 {
			return false
		}
		k := b[i+1 : e-1]
		i = ws(b, e)
		if i >= len(b) || b[i] != ':' {
			return false
		}
		i = ws(b, i+1)
		if i >= len(b) {
			return false
		}
		s := i
		switch b[i] {
		case '"':
			if i = str(b, i); i < 0 {
				return false
			}
		case '{', '[':
			depth := 0
		loop:
			for i < len(b) {
				switch b[i] {
				case '"':
					if i = str(b, i); i < 0 {
						return false
					}
					continue
				case '{', '[':
					depth++
				case '}', ']':
					if depth--; depth == 0 {
						i++
						break loop
					}
				}
				i++
			}
			if depth != 0 {
				return false
			}
		default:
			for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] > ' ' {
				i++
			}
		}
		f(k, b[s:i])
		i = ws(b, i)
		if i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return ws(b, i+1) == len(b)
		}
		if b[i] != ',' {
			return false
		}
		i = ws(b, i+1)
	}
}

// leaderFollower: whoever read a line handles it on the spot, after seeing to
// it that another goroutine waits for the next line. No hand-over of the
// request lies between reading and answering, yet a slow call blocks nobody.
func leaderFollower(in *lineReader, handle func(dst, line []byte) []byte) {
	var (
		rmu, wmu sync.Mutex
		wg       sync.WaitGroup
		waiting  atomic.Int32 // goroutines at or in the read
		total    atomic.Int32 // all goroutines; the cap gives backpressure
		eof      bool
	)
	const maxInFlight = 256
	var serve func()
	serve = func() {
		defer wg.Done()
		var lineBuf, out []byte
		for {
			rmu.Lock()
			if eof {
				rmu.Unlock()
				return
			}
			line, err := in.next()
			if err != nil {
				eof = true
				rmu.Unlock()
				return
			}
			lineBuf = append(lineBuf[:0], line...)
			if waiting.Add(-1) == 0 && total.Load() < maxInFlight {
				waiting.Add(1)
				total.Add(1)
				wg.Add(1)
				go serve()
			}
			rmu.Unlock()
			out = handle(out[:0], lineBuf)
			if len(out) > 0 {
				wmu.Lock()
				_, err = os.Stdout.Write(out)
				wmu.Unlock()
				if err != nil {
					os.Exit(1)
				}
			}
			if cap(out)+cap(lineBuf) > 1<<20 {
				out, lineBuf = nil, nil
			}
			if waiting.Add(1) > 4 {
				waiting.Add(-1)
				total.Add(-1)
				return
			}
		}
	}
	waiting.Add(1)
	total.Add(1)
	wg.Add(1)
	go serve()
	wg.Wait()
}

func main() {
	toolset.Hook()
	mode := "echo"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	in := &lineReader{r: bufio.NewReaderSize(os.Stdin, 64<<10)}
	var out []byte
	handle := echo
	coalesce := false
	switch mode {
	case "canned":
		handle = canned
	case "echo":
	case "echo-co":
		coalesce = true
	case "scan-co":
		handle, coalesce = scan, true
	case "sync-gc":
		g := toolset.NewGroupWriter(os.Stdout)
		defer g.Close()
		for {
			line, err := in.next()
			if err != nil {
				return
			}
			out = handle(out[:0], line)
			g.Add(func(dst []byte) []byte { return append(dst, out...) })
		}
	case "async":
		g := toolset.NewGroupWriter(os.Stdout)
		var wg sync.WaitGroup
		pool := sync.Pool{New: func() any { return new([]byte) }}
		for {
			line, err := in.next()
			if err != nil {
				break
			}
			lp := pool.Get().(*[]byte)
			*lp = append((*lp)[:0], line...)
			wg.Add(1)
			go func() {
				defer wg.Done()
				op := pool.Get().(*[]byte)
				*op = handle((*op)[:0], *lp)
				g.Add(func(dst []byte) []byte { return append(dst, *op...) })
				if cap(*op)+cap(*lp) < 1<<20 {
					pool.Put(op)
					pool.Put(lp)
				}
			}()
		}
		wg.Wait()
		g.Close()
		return
	case "async-d":
		var wg sync.WaitGroup
		var wmu sync.Mutex
		pool := sync.Pool{New: func() any { return new([]byte) }}
		for {
			line, err := in.next()
			if err != nil {
				break
			}
			lp := pool.Get().(*[]byte)
			*lp = append((*lp)[:0], line...)
			wg.Add(1)
			go func() {
				defer wg.Done()
				op := pool.Get().(*[]byte)
				*op = handle((*op)[:0], *lp)
				if len(*op) > 0 {
					wmu.Lock()
					_, err := os.Stdout.Write(*op)
					wmu.Unlock()
					if err != nil {
						os.Exit(1)
					}
				}
				if cap(*op)+cap(*lp) < 1<<20 {
					pool.Put(op)
					pool.Put(lp)
				}
			}()
		}
		wg.Wait()
		return
	case "lf":
		leaderFollower(in, handle)
		return
	case "hybrid":
		handle = hybrid
	case "hybrid-lf":
		leaderFollower(in, hybrid)
		return
	default:
		fmt.Fprintln(os.Stderr, "unknown mode", mode)
		os.Exit(2)
	}
	for {
		line, err := in.next()
		if err != nil {
			return
		}
		out = handle(out, line)
		if len(out) == 0 || coalesce && len(out) < 64<<10 && in.moreBuffered() {
			continue
		}
		if _, err := os.Stdout.Write(out); err != nil {
			os.Exit(1)
		}
		out = out[:0]
		if cap(out) > 1<<20 {
			out = nil
		}
	}
}
