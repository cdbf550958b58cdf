package protocol

import (
	"bytes"
	"errors"
	"strings"

	"fabro-mcp/transport"
)

// envelope is the outermost object of a message. The slices are parts of the frame;
// nil is absent.
type envelope struct {
	jsonrpc, id, method, params, result, failure []byte
	twoIDs                                       bool
	base                                         int // capacity of the frame: what places are counted from
	index                                        paramIndex
}

// paramIndex remembers where in the frame the members of params are, so that nobody
// has to look for them again.
type paramIndex struct {
	n     int // of spans; -1: there are others, look into params
	spans [4]paramSpan
}

type paramSpan struct{ name, nameEnd, value, valueEnd int32 }

// param notes a member of params.
func (e *envelope) param(name, value []byte) {
	x := &e.index
	if x.n < 0 || x.n == len(x.spans) || bytes.IndexByte(name, '\\') >= 0 {
		x.n = -1
		return
	}
	at, from := int32(e.base-cap(name)), int32(e.base-cap(value))
	x.spans[x.n] = paramSpan{at, at + int32(len(name)), from, from + int32(len(value))}
	x.n++
}

// find returns a member of params out of the frame.
func (x *paramIndex) find(frame []byte, name string) []byte {
	for i := range x.spans[:x.n] {
		if p := &x.spans[i]; string(frame[p.name:p.nameEnd]) == name {
			return frame[p.value:p.valueEnd]
		}
	}
	return nil
}

func (e *envelope) set(name, value []byte) {
	switch string(name) {
	case "jsonrpc":
		e.jsonrpc = value
	case "id":
		e.twoIDs = e.id != nil
		e.id = value
	case "method":
		e.method = value
	case "params":
		e.params = value
	case "result":
		e.result = value
	case "error":
		e.failure = value
	}
}

// isResponse tells answers to the server's own requests, which are never answered.
func (e *envelope) isResponse() bool {
	return e.method == nil && (e.result != nil || e.failure != nil)
}

// readableID is the id that an error reply carries: nil where there is none that
// could be one.
func (e *envelope) readableID() []byte {
	if validID(e.id) && !e.twoIDs {
		return e.id
	}
	return nil
}

// fault finds what keeps an envelope from being a request or notification.
func (e *envelope) fault() *Error {
	switch {
	case string(e.jsonrpc) != `"2.0"`:
		return &Error{Code: CodeInvalidRequest, Message: `Invalid request: member jsonrpc must be "2.0"`}
	case !isString(e.method):
		return &Error{Code: CodeInvalidRequest, Message: "Invalid request: member method must be a string"}
	case e.id != nil && !validID(e.id):
		return &Error{Code: CodeInvalidRequest, Message: "Invalid request: an id is a string or an integer"}
	}
	return nil
}

var (
	errParse     = &Error{Code: CodeParse, Message: "Parse error: the line is not a JSON text"}
	errDuplicate = &Error{Code: CodeInvalidRequest, Message: "Invalid request: a member name occurs twice in one object"}
	errDepth     = &Error{Code: CodeInvalidRequest, Message: "Invalid request: nested deeper than 1000 levels"}
	errNoObject  = &Error{Code: CodeInvalidRequest, Message: "Invalid request: a message is a JSON object"}
	errNoBatch   = &Error{Code: CodeInvalidRequest, Message: "Invalid request: batches are not part of this protocol revision"}
	errTwice     = &Error{Code: CodeInvalidRequest, Message: "Invalid request: the session is initialized already"}
	errInitBatch = &Error{Code: CodeInvalidRequest, Message: "Invalid request: initialize must not be part of a batch"}
)

// admit takes a frame in the order of the lines: what it asks for at once takes
// effect here, what can wait is left in w. The caller holds rmu.
func (c *conn) admit(w *worker, frame []byte) {
	e := envelope{base: cap(frame)}
	first := frame[skipSpace(frame, 0)]
	verdict := c.scanner.scan(frame, e.set, e.param)
	switch {
	case verdict == scanSyntax:
		c.hint(frame)
		w.out = appendErrorLine(w.out, nil, errParse)
	case first == '[':
		c.admitBatch(w, frame, verdict)
	case first != '{':
		w.out = appendErrorLine(w.out, nil, errNoObject)
	case e.isResponse():
		if verdict == scanOK {
			c.deliver(&e)
		}
	case verdict == scanDuplicate:
		w.out = appendErrorLine(w.out, e.readableID(), errDuplicate)
	case verdict == scanDepth:
		w.out = appendErrorLine(w.out, e.readableID(), errDepth)
	case e.id == nil && isString(e.method):
		c.notified(&e)
	default:
		c.admitRequest(w, &e, frame)
	}
}

// admitRequest takes a single request.
func (c *conn) admitRequest(w *worker, e *envelope, frame []byte) {
	if fault := e.fault(); fault != nil {
		w.out = appendErrorLine(w.out, e.readableID(), fault)
		return
	}
	r := &c.scratch
	*r = request{conn: c, id: e.id, frame: frame, index: e.index}
	if err := c.route(r, e); err != nil {
		if !c.inUse(e.id) {
			w.out = appendErrorLine(w.out, e.id, err)
		}
		return
	}
	if r.method.effort == inline {
		if c.inUse(e.id) {
			return
		}
		w.out = r.respond(w.out)
		return
	}
	r = r.own(c.stream.Own(frame), frame)
	effort := c.effortOf(r)
	run, refuse := c.take(r, effort)
	switch {
	case refuse != nil:
		w.out = appendErrorLine(w.out, r.id, refuse)
	case run:
		w.next, w.eager = r, effort == waiting
	}
}

// own returns the request with all its parts in memory of its own. They are found
// again by how far they reach before the end of the memory they share.
func (r *request) own(owned, frame []byte) *request {
	n := new(request)
	move := func(part []byte) []byte {
		if part == nil {
			return nil
		}
		at := cap(frame) - cap(part)
		return owned[at : at+len(part) : at+len(part)]
	}
	*n = request{conn: r.conn, rev: r.rev, method: r.method, caps: r.caps, meta: r.meta, frame: owned, index: r.index}
	n.id, n.params = move(r.id), move(r.params)
	if m := r.meta; m != noMeta {
		n.meta = &requestMeta{
			version: move(m.version), clientCaps: move(m.clientCaps), clientInfo: move(m.clientInfo),
			logLevel: move(m.logLevel), progressToken: move(m.progressToken), trace: m.trace,
		}
	}
	n.x.request = n
	return n
}

// inUse reports, and notes, that an open request has this id.
func (c *conn) inUse(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inflight.find(id) == nil {
		return false
	}
	c.opts.Logger.Warn("dropped a request whose id is still in use", "id", clip(string(id)))
	return true
}

func (c *conn) effortOf(r *request) effort {
	if r.method.effort == works && r.method.name == "tools/call" && c.server.tools.Load().waits {
		if t := c.server.tools.Load().called(r); t != nil && t.Waits {
			return waiting
		}
	}
	return r.method.effort
}

// route decides era, revision and method of a request, in the order that
// docs/protocol.md gives.
func (c *conn) route(r *request, e *envelope) (err *Error) {
	r.meta = noMeta
	if e.params != nil && !isNull(e.params) {
		if !isObject(e.params) {
			return invalidParams("params must be an object")
		}
		r.params = e.params
		if raw := r.param("_meta"); raw != nil {
			r.meta = &c.scratchMeta
			if r != &c.scratch {
				r.meta = new(requestMeta)
			}
			if err = r.meta.read(raw); err != nil {
				return err
			}
		}
	}
	m := methodOf(e.method)
	s := c.session.Load()
	if c.claimsRevision(r, s) {
		return c.routeModern(r, m, e)
	}
	if s == nil {
		return c.routeUnopened(r, m, e)
	}
	r.rev, r.caps = s.rev, s.caps
	if m == nil || !m.in(r.rev) || m.declared != nil && !m.declared(c.server) {
		name, _ := stringValue(e.method)
		return methodNotFound(name)
	}
	if r.method = m; m.serve == nil {
		return errTwice
	}
	return r.meta.checkToken()
}

// claimsRevision tells whether a request belongs to the era of per-request
// metadata: it claims a revision, and an open session is of no other mind (to a
// session, the claim of a handshake revision is a member it does not know).
func (c *conn) claimsRevision(r *request, s *session) bool {
	if r.meta.version == nil {
		return false
	}
	if s == nil {
		return true
	}
	name, _ := stringValue(r.meta.version)
	rev := c.server.revs.of(name)
	return rev == nil || !rev.has(featHandshake)
}

func (c *conn) routeModern(r *request, m *method, e *envelope) (err *Error) {
	name, ok := stringValue(r.meta.version)
	if !ok {
		return invalidParams("_meta[%q] must be a string", metaVersion)
	}
	if r.rev = c.server.revs.of(name); r.rev == nil || !r.rev.has(featPerRequest) {
		return c.server.revs.unsupported(name)
	}
	if err := r.meta.check(c.server.revs); err != nil {
		return err
	}
	if r.caps, err = readCapabilities(r.meta.clientCaps, r.rev); err != nil {
		return err
	}
	if m == nil || !m.in(r.rev) || m.declared != nil && !m.declared(c.server) {
		name, _ := stringValue(e.method)
		return methodNotFound(name)
	}
	r.method = m
	return nil
}

// routeUnopened serves requests without a claim before a session is open: ping and
// initialize are fine, everything else is told what it lacks.
func (c *conn) routeUnopened(r *request, m *method, e *envelope) *Error {
	if m == nil {
		name, _ := stringValue(e.method)
		return methodNotFound(name)
	}
	known := c.server.revs
	r.method, r.rev = m, known.latestWith(featHandshake)
	switch {
	case r.rev == nil && m.serve == nil:
		return known.noHandshake(r)
	case r.rev == nil && !m.in(known.latestWith(featPerRequest)):
		name, _ := stringValue(e.method)
		return methodNotFound(name)
	case r.rev != nil && m.name == "ping":
		return r.meta.checkToken()
	case m.serve == nil:
		return c.initialize(r)
	case r.meta.clientCaps != nil:
		return known.missingMeta(metaVersion)
	}
	return known.missingMeta(metaVersion, metaClientCaps)
}

// noHandshake refuses initialize where no revision has it, naming those that are
// spoken for people who read the error of a client that cannot.
func (t revisionTable) noHandshake(r *request) *Error {
	requested, _ := stringValue(r.param("protocolVersion"))
	return &Error{
		Code:    CodeUnsupportedVersion,
		Message: "initialize is not supported; this server speaks " + strings.Join(t.names(0), ", "),
		Data:    map[string]any{"supported": t.names(0), "requested": requested},
	}
}

func methodOf(raw []byte) *method {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		inner = unescape(inner)
	}
	return methodNamed(inner)
}

// notified serves a notification. None is ever answered, whatever is wrong with it.
func (c *conn) notified(e *envelope) {
	name, _ := stringValue(e.method)
	if string(e.jsonrpc) != `"2.0"` || e.params != nil && !isNull(e.params) && !isObject(e.params) {
		c.opts.Logger.Debug("ignored a malformed notification", "method", clip(name))
		return
	}
	switch name {
	case "notifications/cancelled":
		if id := field(e.params, "requestId"); validID(id) {
			c.cancelRequest(id, cancelled(e.params))
		}
	case "notifications/initialized":
		if s := c.session.Load(); s != nil {
			s.open()
		}
	default:
		c.opts.Logger.Debug("ignored a notification", "method", clip(name))
	}
}

// refuse answers a line over the limit, to the id that its head shows. Any other
// error ends the input.
func (c *conn) refuse(w *worker, err error) error {
	var long *transport.FrameTooLongError
	if !errors.As(err, &long) {
		return err
	}
	e := &Error{Code: CodeInvalidRequest, Message: "Invalid request: " + long.Error(), Data: map[string]any{"limit": long.Limit}}
	w.out = appendErrorLine(w.out, headID(long.Head), e)
	c.opts.Logger.Warn("skipped a line over the limit", "limit", long.Limit)
	return nil
}

// headID finds the id in the first bytes of a message that is not held whole: only
// one that stands before everything of unknown length can be trusted.
func headID(head []byte) []byte {
	i := skipSpace(head, 0)
	if i >= len(head) || head[i] != '{' {
		return nil
	}
	for i++; ; i++ {
		if i = skipSpace(head, i); i >= len(head) || head[i] != '"' {
			return nil
		}
		end, _ := scanString(head, i)
		if end < 0 {
			return nil
		}
		name := string(head[i+1 : end-1])
		if i = skipSpace(head, end); i >= len(head) || head[i] != ':' {
			return nil
		}
		start := skipSpace(head, i+1)
		if start >= len(head) {
			return nil
		}
		if head[start] == '"' {
			end, _ = scanString(head, start)
		} else {
			end = scanNumber(head, start)
		}
		if end < 0 || end >= len(head) {
			return nil
		}
		if name == "id" {
			if validID(head[start:end]) {
				return head[start:end]
			}
			return nil
		}
		if i = skipSpace(head, end); i >= len(head) || head[i] != ',' {
			return nil
		}
	}
}

// hint tells the person at the log what a stranger is speaking.
func (c *conn) hint(frame []byte) {
	const header = "Content-Length:"
	if len(frame) >= len(header) && string(frame[:len(header)]) == header {
		c.opts.Logger.Warn("the client frames messages with Content-Length headers; MCP over stdio is one JSON text a line")
		return
	}
	c.opts.Logger.Debug("a line is not JSON", "bytes", len(frame))
}
