package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The protocol's words that are used in several places.
const (
	prefix  = "io.modelcontextprotocol/"
	current = "2026-07-28"
)

var legacy = map[string]bool{"2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

// object is a JSON object on its way in or out.
type object = map[string]any

// request is one request that is being served.
type request struct {
	id     json.RawMessage
	method string
	params object
	meta   object
	rev    string // the revision in force
	ctx    context.Context
	cancel context.CancelFunc
}

func (r *request) modern() bool { return r.rev == current }

// declared says whether the client of this request can be asked in a way.
func (r *request) declared(s *server, capability string) bool {
	if !r.modern() {
		return s.clientHas(capability)
	}
	caps, _ := r.meta[prefix+"clientCapabilities"].(object)
	_, ok := caps[capability]
	return ok
}

// failure is an error on its way to the wire.
type failure struct {
	code    any
	message string
	data    any
}

func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...)}
}

type server struct {
	fault   string
	writing sync.Mutex // held while a frame is written
	calls   sync.WaitGroup
	over    chan struct{} // closed when what only waits has to end

	mu       sync.Mutex // protects the fields below
	session  string     // the revision of the handshake, if there was one
	probed   bool       // server/discover was asked for
	client   object     // what its client declared
	inflight map[string]*request
	listens  map[string]*request
	watched  map[string]bool
	level    string
	counter  int
	extra    bool // the tool that comes and goes is there
	asked    map[string]chan object
	nextAsk  int
	ended    bool // input has ended
}

func serve(fault string) {
	s := &server{fault: fault, over: make(chan struct{}), inflight: map[string]*request{}, listens: map[string]*request{}, watched: map[string]bool{}, asked: map[string]chan object{}, level: "info"}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if s.is("survives-closed-stdout") {
		signal.Ignore(syscall.SIGPIPE)
	}
	go func() {
		for range stop {
			if s.is("ignores-sigterm") {
				continue
			}
			s.closeListens()
			os.Exit(0)
		}
	}()
	if s.is("banner") {
		s.raw([]byte("Faulty MCP server ready\n"))
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if s.is("line-limit") && len(line) > 1<<16 {
			os.Exit(0)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.line(line)
		}
		if err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "faulty:", err)
			}
			break
		}
	}
	s.drain()
}

// is says whether the server has a fault.
func (s *server) is(name string) bool { return s.fault == name }

// drain lets the requests that were read finish. What only waits may do so for two seconds;
// what works is answered, however long a busy machine takes for that.
func (s *server) drain() {
	switch s.fault {
	case "drops-at-eof":
		os.Exit(0)
	case "hangs-at-eof":
		select {}
	case "status-at-eof":
		defer os.Exit(1)
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.ended = true
	for _, r := range s.listens {
		r.cancel()
	}
	s.mu.Unlock()
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		close(s.over)
		<-done
	}
}

var (
	integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	noID    = json.RawMessage("null")
)

// line takes one line of input apart.
func (s *server) line(line []byte) {
	if s.is("log-on-stdout") && bytes.Contains(line, []byte(`"tools/call"`)) {
		s.raw([]byte("handling a call\n"))
	}
	if !json.Valid(line) {
		switch s.fault {
		case "dies-at-bad-line":
			os.Exit(0)
		case "bad-line-code":
			s.write(object{"jsonrpc": "2.0", "id": noID, "error": object{"code": -32600, "message": "not JSON"}})
		case "bad-line-id":
			s.write(object{"jsonrpc": "2.0", "id": 1, "error": object{"code": -32700, "message": "not JSON"}})
		default:
			s.refuse(noID, fail(-32700, "not JSON"))
		}
		return
	}
	if line[0] == '[' {
		s.batch(line)
		return
	}
	if reply := s.message(line, false); reply != nil {
		s.write(reply)
	}
}

func (s *server) batch(line []byte) {
	var elements []json.RawMessage
	if json.Unmarshal(line, &elements) != nil {
		s.refuse(noID, fail(-32600, "not a batch"))
		return
	}
	s.mu.Lock()
	allowed := s.session == "2025-03-26"
	s.mu.Unlock()
	if s.is("batch-refused") {
		allowed = false
	}
	if !allowed && !s.is("serves-batches") {
		s.refuse(noID, fail(-32600, "no batches in this revision"))
		return
	}
	if len(elements) == 0 {
		if !s.is("empty-batch-silent") {
			s.refuse(noID, fail(-32600, "an empty batch"))
		}
		return
	}
	var replies []any
	for _, e := range elements {
		if reply := s.message(e, true); reply != nil {
			replies = append(replies, reply)
		}
	}
	if len(replies) > 0 || s.is("answers-notifications") {
		text, _ := json.Marshal(replies)
		s.raw(append(text, '\n'))
	}
}

// message serves one message. In a batch, and for what is refused at once, it returns the
// reply; a request of a line is served in a goroutine of its own and returns nil.
func (s *server) message(text []byte, inBatch bool) object {
	var m map[string]json.RawMessage
	if s.is("folds-case") {
		text = foldMembers(text)
	}
	if json.Unmarshal(text, &m) != nil || m == nil {
		return s.failureReply(noID, fail(-32600, "not an object"))
	}
	id, hasID := m["id"]
	var method string
	methodOK := json.Unmarshal(m["method"], &method) == nil
	switch {
	case hasID && !validID(id):
		if s.is("truncates-ids") && integer.MatchString(strings.Split(string(id), ".")[0]) {
			id = json.RawMessage(strings.Split(string(id), ".")[0])
		} else if !(s.is("answers-null-id") && string(id) == "null") {
			return s.failureReply(noID, fail(-32600, "the id is neither a string nor an integer"))
		}
	case m["method"] == nil && (m["result"] != nil || m["error"] != nil):
		if s.answered(id, m) || !s.is("answers-responses") {
			return nil
		}
		return s.failureReply(id, fail(-32600, "a response to nothing"))
	}
	if !hasID {
		id = noID
	}
	if string(m["jsonrpc"]) != `"2.0"` || !methodOK || m["method"] == nil {
		return s.failureReply(id, fail(-32600, "not a request"))
	}
	var params any
	dec := json.NewDecoder(bytes.NewReader(m["params"]))
	dec.UseNumber()
	_ = dec.Decode(&params) // absent params stay nil; the line as a whole is valid JSON
	if !hasID {
		s.notified(method, params)
		return nil
	}
	r := &request{id: id, method: method}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	p, isObject := params.(object)
	if params != nil && !isObject && !s.is("takes-any-params") {
		return s.failureReply(id, fail(-32602, "params is no object"))
	}
	r.params = p
	if r.params == nil {
		r.params = object{}
	}
	return s.start(r, inBatch)
}

// start registers a request and serves it.
func (s *server) start(r *request, inBatch bool) object {
	if bad := s.era(r); bad != nil {
		return s.failureReply(r.id, bad)
	}
	if r.method == "initialize" || inBatch {
		if inBatch && r.method == "initialize" {
			return s.failureReply(r.id, fail(-32600, "initialize in a batch"))
		}
		return s.serveOne(r)
	}
	s.mu.Lock()
	_, twice := s.inflight[string(r.id)]
	if !twice {
		s.inflight[string(r.id)] = r
	}
	s.mu.Unlock()
	if twice {
		fmt.Fprintf(os.Stderr, "faulty: the id %s is in use\n", r.id)
		return nil
	}
	serveIt := func() {
		defer s.calls.Done()
		reply := s.serveOne(r)
		s.mu.Lock()
		delete(s.inflight, string(r.id))
		silent := r.ctx.Err() != nil && !s.is("answers-cancelled")
		s.mu.Unlock()
		if reply != nil && !silent {
			s.write(reply)
		}
		r.cancel()
	}
	s.calls.Add(1)
	if s.is("serial") {
		serveIt()
		return nil
	}
	go serveIt()
	return nil
}

func (s *server) serveOne(r *request) object {
	result, bad := s.dispatch(r)
	if bad != nil {
		return s.failureReply(r.id, bad)
	}
	if result == nil { // a listen ends without a reply unless the server closes it
		return nil
	}
	return s.resultReply(r, result)
}

func validID(id json.RawMessage) bool { return id[0] == '"' || integer.Match(id) }

// foldMembers lowers the member names of the envelope, as a decoder does that matches them
// without case.
func foldMembers(text []byte) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return text
	}
	folded := map[string]json.RawMessage{}
	for k, v := range m {
		folded[strings.ToLower(k)] = v
	}
	out, _ := json.Marshal(folded)
	return out
}
