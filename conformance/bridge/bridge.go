// Package bridge puts a stdio server behind Streamable HTTP on loopback, so
// that HTTP-only suites and clients can test it.
//
// In the handshake revisions each initialize starts a process of its own and
// mints a session id; DELETE ends it. From 2026-07-28 on one process serves all
// requests. Ids and progress tokens are renumbered towards the process, because
// HTTP clients reuse small ones in parallel, and restored on the way back. What
// the bridge hides (framing, ids, order, process behaviour) is the business of
// the rest of the harness.
package bridge

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"fabro-mcp/conformance/transcript"
)

// Config says what to serve.
type Config struct {
	Command []string
	Stderr  io.Writer // of the processes; may be nil
}

// Bridge is an http.Handler. Close it when done.
type Bridge struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex // protects the fields below
	sessions map[string]*child
	shared   *child // of the revisions without sessions; started on first need
}

// New returns a bridge; no process is started before the first request.
func New(cfg Config) *Bridge {
	ctx, cancel := context.WithCancel(context.Background())
	return &Bridge{cfg: cfg, ctx: ctx, cancel: cancel, sessions: map[string]*child{}}
}

// Close ends every process.
func (b *Bridge) Close() {
	b.mu.Lock()
	all := make([]*child, 0, len(b.sessions)+1)
	for _, c := range b.sessions {
		all = append(all, c)
	}
	if b.shared != nil {
		all = append(all, b.shared)
	}
	b.sessions, b.shared = map[string]*child{}, nil
	b.mu.Unlock()
	for _, c := range all {
		c.close()
	}
	b.cancel()
}

// Listen opens a listener on loopback; any other address is refused.
func Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !loopback(host) {
		return nil, fmt.Errorf("%s is not loopback: the bridge hands whoever reaches it a program to run; use 127.0.0.1", host)
	}
	return net.Listen("tcp", address)
}

func loopback(host string) bool {
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxBody bounds one POST.
const maxBody = 64 << 20

const sessionHeader = "Mcp-Session-Id"

// ServeHTTP implements the one endpoint, on every path.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !allowed(r) {
		http.Error(w, "only loopback may talk to this bridge (Host and Origin are checked)", http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		b.post(w, r)
	case http.MethodGet:
		b.get(w, r)
	case http.MethodDelete:
		b.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "GET, POST or DELETE", http.StatusMethodNotAllowed)
	}
}

// allowed refuses what a web page elsewhere could send (DNS rebinding).
func allowed(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !loopback(host) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && loopback(u.Hostname())
}

// session finds the process of a request with a session header.
func (b *Bridge) session(r *http.Request) (*child, int) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil, http.StatusBadRequest
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.sessions[id]; c != nil {
		return c, http.StatusOK
	}
	return nil, http.StatusNotFound
}

// sharedChild returns the process of the revisions without sessions; one that
// has ended is replaced.
func (b *Bridge) sharedChild() (*child, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared != nil && !b.shared.ended() {
		return b.shared, nil
	}
	c, err := startChild(b.ctx, b.cfg)
	if err != nil {
		return nil, err
	}
	b.shared = c
	return c, nil
}

func (b *Bridge) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		rpcError(w, http.StatusRequestEntityTooLarge, nil, -32600, err.Error())
		return
	}
	m, err := parseMessage(body)
	if err != nil {
		rpcError(w, http.StatusBadRequest, nil, -32700, "the body is not one JSON message: "+err.Error())
		return
	}
	c, fresh, status, err := b.childFor(r, m)
	if err != nil {
		rpcError(w, status, m.ID, -32600, err.Error())
		return
	}
	switch {
	case m.Method != "" && m.ID != nil:
		if m.modern() {
			problem := headerProblem(r, m)
			if problem == "" {
				problem = c.paramProblem(r, m)
			}
			if problem != "" {
				rpcError(w, http.StatusBadRequest, m.ID, -32020, problem)
				return
			}
		}
		b.exchange(w, r, c, m, fresh)
	default:
		c.pass(m)
		w.WriteHeader(http.StatusAccepted)
	}
}

// childFor picks the process for a message: a new one for a handshake, that of
// the session, or the shared one. fresh is the new session's id.
func (b *Bridge) childFor(r *http.Request, m *message) (c *child, fresh string, status int, err error) {
	modern := m.modern() || transcript.Modern(r.Header.Get("Mcp-Protocol-Version"))
	switch {
	case m.Method == "initialize" && !modern:
		c, err = startChild(b.ctx, b.cfg)
		if err != nil {
			return nil, "", http.StatusInternalServerError, err
		}
		fresh = strings.ToLower(rand.Text())
		b.mu.Lock()
		b.sessions[fresh] = c
		b.mu.Unlock()
		m.session = true
		return c, fresh, 0, nil
	case r.Header.Get(sessionHeader) != "" && !modern:
		c, status = b.session(r)
		if c == nil {
			return nil, "", status, errors.New("no such session")
		}
		m.session = true
		return c, "", 0, nil
	}
	c, err = b.sharedChild()
	return c, "", http.StatusInternalServerError, err
}

// headerProblem holds the headers of a modern request to its body.
func headerProblem(r *http.Request, m *message) string {
	version := r.Header.Get("Mcp-Protocol-Version")
	if version != m.version() {
		return fmt.Sprintf("the MCP-Protocol-Version header is %q and the body says %q", version, m.version())
	}
	if method := r.Header.Get("Mcp-Method"); method != m.Method {
		return fmt.Sprintf("the Mcp-Method header is %q and the body says %q", method, m.Method)
	}
	name, has := m.name()
	if header := decodeHeader(r.Header.Get("Mcp-Name")); has && header != name {
		return fmt.Sprintf("the Mcp-Name header is %q and the body says %q", header, name)
	}
	return ""
}

// exchange sends a request to the process and its answer to the caller: as
// plain JSON when the reply is all there is, else as an event stream.
func (b *Bridge) exchange(w http.ResponseWriter, r *http.Request, c *child, m *message, fresh string) {
	x := c.ask(m)
	defer c.forget(x)
	if fresh != "" {
		w.Header().Set(sessionHeader, fresh)
	}
	var stream *eventStream
	for {
		select {
		case <-x.out.ready():
			for _, item := range x.out.take() {
				if item.final && stream == nil {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(statusOf(m, item.code))
					w.Write(item.data)
					return
				}
				if stream == nil {
					stream = newEventStream(w)
				}
				stream.send(item.data)
				if item.final {
					return
				}
			}
		case <-c.proc.Done():
			if stream == nil {
				rpcError(w, http.StatusBadGateway, m.ID, -32603, "the server ended: "+c.proc.State().String())
			}
			return
		case <-r.Context().Done():
			if m.modern() { // closing the stream is the cancel of these revisions
				c.cancelRequest(x)
			}
			return
		}
	}
}

// statusOf maps error codes to HTTP statuses, as 2026-07-28 asks for; within a
// session every reply is a 200.
func statusOf(m *message, code int64) int {
	if m.session {
		return http.StatusOK
	}
	switch code {
	case -32601:
		return http.StatusNotFound
	case -32700, -32600, -32020, -32021, -32022:
		return http.StatusBadRequest
	case -32602:
		if !m.completeMeta() {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// get opens the stream on which a session's own messages travel.
func (b *Bridge) get(w http.ResponseWriter, r *http.Request) {
	c, status := b.session(r)
	if c == nil {
		if status == http.StatusBadRequest {
			status = http.StatusMethodNotAllowed // no session, no stream
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	q := c.openStream()
	defer c.closeStream(q)
	stream := newEventStream(w)
	for {
		select {
		case <-q.ready():
			for _, item := range q.take() {
				stream.send(item.data)
			}
		case <-c.proc.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (b *Bridge) delete(w http.ResponseWriter, r *http.Request) {
	c, status := b.session(r)
	if c == nil {
		http.Error(w, http.StatusText(status), status)
		return
	}
	b.mu.Lock()
	delete(b.sessions, r.Header.Get(sessionHeader))
	b.mu.Unlock()
	c.close()
	w.WriteHeader(http.StatusNoContent)
}

// eventStream writes server-sent events.
type eventStream struct {
	w http.ResponseWriter
}

func newEventStream(w http.ResponseWriter) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(http.StatusOK)
	s := &eventStream{w}
	s.flush()
	return s
}

func (s *eventStream) send(data []byte) {
	fmt.Fprintf(s.w, "event: message\ndata: %s\n\n", data)
	s.flush()
}

func (s *eventStream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func rpcError(w http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	body := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": code, "message": text}}
	if id != nil {
		body["id"] = id
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may be gone
}

// exitGrace is how long a process may take to leave after its input ended.
const exitGrace = 2 * time.Second
