package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"fabro-mcp/conformance/process"
)

// child is one process and the exchanges that are open with it.
type child struct {
	proc *process.Process

	mu      sync.Mutex // protects the fields below
	next    int64
	open    []*exchange // in the order in which they were asked
	streams []*outbox   // GET streams

	tools   sync.Mutex               // protects headers
	headers map[string][]headerParam // by tool; nil: to be asked for
}

// exchange is one request of an HTTP caller.
type exchange struct {
	id     int64           // towards the process
	caller json.RawMessage // the id the caller gave
	token  json.RawMessage // the progress token the caller gave, or nil
	method string
	out    *outbox
}

// item is one message for a caller; the reply is final.
type item struct {
	data  []byte
	final bool
	code  int64 // of an error reply
}

// outbox is an unbounded queue: the process must never wait for a slow caller.
type outbox struct {
	mu    sync.Mutex // protects items
	items []item
	wake  chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) put(i item) {
	o.mu.Lock()
	o.items = append(o.items, i)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) ready() <-chan struct{} { return o.wake }

func (o *outbox) take() []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.items
	o.items = nil
	return out
}

func startChild(ctx context.Context, cfg Config) (*child, error) {
	c := &child{}
	c.mu.Lock()
	defer c.mu.Unlock() // no line is handled before proc is set
	proc, err := process.Start(ctx, process.Spec{
		Command: cfg.Command,
		OnLine:  func(l process.Line) { c.line(l.Data) },
		OnErr: func(b []byte) {
			if cfg.Stderr != nil {
				cfg.Stderr.Write(b)
			}
		},
	})
	c.proc = proc
	return c, err
}

func (c *child) ended() bool {
	select {
	case <-c.proc.Done():
		return true
	default:
		return false
	}
}

func (c *child) close() { c.proc.Close(exitGrace) }

func (c *child) write(v any) {
	if b, err := json.Marshal(v); err == nil {
		c.proc.Write(append(b, '\n'))
	}
}

// ask sends a request with an id, and a progress token, of our own.
func (c *child) ask(m *message) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	x := &exchange{id: c.next, caller: m.ID, method: m.Method, out: newOutbox()}
	params := m.Params
	if token := m.meta["progressToken"]; token != nil {
		x.token = token
		params = m.withMeta("progressToken", c.next)
	}
	c.open = append(c.open, x)
	out := map[string]any{"jsonrpc": "2.0", "id": x.id, "method": m.Method}
	if params != nil {
		out["params"] = params
	}
	c.write(out)
	return x
}

// pass sends a notification, or the answer to a request of the server.
func (c *child) pass(m *message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Method == "notifications/cancelled" {
		for i := len(c.open) - 1; i >= 0; i-- {
			if x := c.open[i]; string(x.caller) == string(m.params["requestId"]) {
				m.params["requestId"] = json.RawMessage(strconv.FormatInt(x.id, 10))
				c.write(map[string]any{"jsonrpc": "2.0", "method": m.Method, "params": m.params})
				return
			}
		}
	}
	c.proc.Write(append(m.compact(), '\n'))
}

func (c *child) cancelRequest(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": x.id, "reason": "the caller closed the connection"}})
}

func (c *child) forget(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.open {
		if o == x {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return
		}
	}
}

func (c *child) openStream() *outbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := newOutbox()
	c.streams = append(c.streams, q)
	return q
}

func (c *child) closeStream(q *outbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.streams {
		if o == q {
			c.streams = append(c.streams[:i], c.streams[i+1:]...)
			return
		}
	}
}

// find returns the open exchange with an id towards the process.
func (c *child) find(id string) *exchange {
	for _, x := range c.open {
		if strconv.FormatInt(x.id, 10) == id {
			return x
		}
	}
	return nil
}

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// line routes one line of the process: replies by id, progress by token,
// subscription messages by subscription id, all else to the youngest open
// request, or to a stream of the session.
func (c *child) line(data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		return // the rest of the harness reports such lines
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Method == "" {
		c.reply(m)
		return
	}
	if m.Method == "notifications/tools/list_changed" {
		go c.forgetTools() // asking for tools waits for lines, so not from here
	}
	if m.ID == nil {
		if id, ok := m.meta[subscriptionKey]; ok {
			if x := c.find(unquote(id)); x != nil {
				m.Params = m.withMeta(subscriptionKey, x.caller)
				x.out.put(item{data: m.compact()})
			}
			return
		}
		if m.Method == "notifications/progress" {
			if x := c.find(unquote(m.params["progressToken"])); x != nil && x.token != nil {
				m.params["progressToken"] = x.token
				m.Params, _ = json.Marshal(m.params)
				x.out.put(item{data: m.compact()})
			}
			return
		}
	}
	switch {
	case len(c.open) > 0:
		c.open[len(c.open)-1].out.put(item{data: m.compact()})
	case len(c.streams) > 0:
		c.streams[0].put(item{data: m.compact()})
	}
}

func (c *child) forgetTools() {
	c.tools.Lock()
	defer c.tools.Unlock()
	c.headers = nil
}

func (c *child) reply(m *message) {
	x := c.find(string(m.ID))
	if x == nil {
		// An error without an id can only be meant for the one who is waiting.
		if (m.ID == nil || string(m.ID) == "null") && len(c.open) > 0 {
			x = c.open[len(c.open)-1]
		} else {
			return
		}
	}
	m.ID = x.caller
	if id := m.resultMeta(subscriptionKey); id != nil && unquote(id) == fmt.Sprint(x.id) {
		m.setResultMeta(subscriptionKey, x.caller)
	}
	x.out.put(item{data: m.compact(), final: true, code: m.code()})
}

func unquote(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
