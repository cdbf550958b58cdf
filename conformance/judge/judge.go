// Package judge looks at every frame of a server, also where no transcript
// does. It is told each line that was sent and each line that came, in the
// order in which the harness saw them, and keeps what follows from them: which
// requests are open, which revision is in force for which frame, which progress
// tokens and subscriptions are known.
//
// A finding names the requirement that was broken; whether that is a failure or
// a warning follows from the catalogue. Contested points (the id of an error
// whose request could not be read, a reply that was already on its way when the
// cancel was read) are never findings.
package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"fabro-mcp/conformance/schema"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// Finding is one broken rule.
type Finding struct {
	Rules    []string // requirement ids, the first that holds at Revision counts
	Revision string
	Message  string
	Advice   bool // a warning whatever the rule's level
}

// Kind says what a frame is.
type Kind uint8

// The kinds of frames.
const (
	Broken Kind = iota // not a message
	Request
	Notification
	Result
	Error
	Batch
)

// Frame is one line of the server, decoded.
type Frame struct {
	Kind     Kind
	Raw      []byte
	Value    *strictjson.Value // nil when the line is not JSON
	Method   string
	ID       *strictjson.Value // nil when absent
	Revision string            // the revision in force for it
	Answers  string            // the method of the request a reply belongs to
}

// Key names an id so that two ids are the same exactly when their keys are:
// numbers by their spelling, strings decoded.
func Key(id *strictjson.Value) string {
	switch {
	case id == nil:
		return ""
	case id.Kind == strictjson.String:
		return "s" + id.Text
	}
	return "n" + string(id.Raw)
}

// request is one request of ours.
type request struct {
	key       string
	method    string
	about     string // method, and the tool, prompt or resource it is about
	revision  string
	modern    bool
	claimless bool // sent before any session and without a modern claim
	sent      int  // position among all requests and notifications sent
	token     string
	caps      *strictjson.Value
	listen    bool
	filter    *strictjson.Value // of a listen
	acked     bool
	handle    bool // answered with a task, whose progress goes on
	unclaimed bool // neither a session nor a known claim says which revision it is of
	invalid   bool // no valid request: its id need not fit the schema
	logLevel  string
	answered  bool
	cancelled int // position of the cancel; 0: not cancelled
}

// Judge follows one process. It is not safe for concurrent use.
type Judge struct {
	played string // the revision the transcript is played at

	session     string // negotiated by initialize; "" before
	caps        *strictjson.Value
	serverCaps  *strictjson.Value
	initialized bool
	sent        int
	answeredOf  int // the newest request that was answered, as its position
	requests    map[string]*request
	open        []*request
	tokens      map[string]*request
	progress    map[string]*strictjson.Value // last value by token
	unreadable  int                          // lines sent that may be answered without an id
	batches     int                          // arrays sent that may be answered by one
	ourReplies  map[string]bool              // ids of server requests, seen
	allowed     map[string]bool              // ids that may be answered although no line sent them readably
	inputClosed bool
	findings    []Finding
}

// New returns a judge for a transcript played at a revision.
func New(revision string) *Judge {
	return &Judge{
		played: revision, requests: map[string]*request{}, tokens: map[string]*request{},
		progress: map[string]*strictjson.Value{}, ourReplies: map[string]bool{}, allowed: map[string]bool{},
	}
}

// Findings returns what was found since the last call.
func (j *Judge) Findings() []Finding {
	out := j.findings
	j.findings = nil
	return out
}

func (j *Judge) find(revision, message string, rules ...string) {
	j.findings = append(j.findings, Finding{Rules: rules, Revision: revision, Message: message})
}

func (j *Judge) advise(revision, message string, rules ...string) {
	j.findings = append(j.findings, Finding{Rules: rules, Revision: revision, Message: message, Advice: true})
}

// Session is the revision that initialize negotiated, or "".
func (j *Judge) Session() string { return j.session }

// fallback is the revision for frames that belong to no request.
func (j *Judge) fallback() string {
	if j.session != "" {
		return j.session
	}
	return j.played
}

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// modernOnly are the methods that only 2026-07-28 has. A request of another method that
// claims no modern revision and comes before any session may be served as one of the older
// era; whether it should is for a transcript to say. Its result is then held to that era's
// newest revision.
var modernOnly = map[string]bool{"server/discover": true, "subscriptions/listen": true}

const newestHandshake = "2025-11-25"

// Sent notes one line that was written to the server, without its newline.
func (j *Judge) Sent(line []byte) {
	if len(strings.TrimSpace(string(line))) == 0 {
		j.unreadable++ // skipping an empty line and calling it no JSON are both right
		return
	}
	v, err := strictjson.Parse(line)
	if err != nil {
		// A reader may refuse such a line without an id, or overlook the fault and
		// answer the request; which of the two is right is not for every frame.
		j.unreadable++
	}
	if v == nil {
		if v = lenient(line); v == nil {
			return
		}
	}
	if v.Is(strictjson.Array) {
		j.batches++
		j.unreadable += 1 + len(v.Items)
		for _, item := range v.Items {
			j.sentMessage(item)
		}
		return
	}
	j.sentMessage(v)
}

// lenient reads what a forgiving server might: without a byte-order mark, with
// invalid UTF-8 replaced, nested as deep as encoding/json goes.
func lenient(line []byte) *strictjson.Value {
	line = bytes.ToValidUTF8(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), []byte("\ufffd"))
	if v, _ := strictjson.Parse(line); v != nil {
		return v
	}
	var m struct {
		JSONRPC json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method == nil {
		return nil
	}
	v, _ := strictjson.Parse(fmt.Appendf(nil, `{"jsonrpc":%s,"id":%s,"method":%s}`, m.JSONRPC, m.ID, m.Method))
	return v
}

func (j *Judge) sentMessage(v *strictjson.Value) {
	j.sent++
	method, id := v.Get("method"), v.Get("id")
	_, plain := id.Int()
	invalid := false
	switch {
	case v.Is(strictjson.Object) && !method.Is(strictjson.String) && id != nil && (v.Get("result") != nil || v.Get("error") != nil):
		return // an answer of ours
	case !v.Is(strictjson.Object) || !method.Is(strictjson.String) || v.Get("jsonrpc").Str() != "2.0" || id != nil && !plain && !id.Is(strictjson.String):
		// Not a valid request: it may be refused without an id or with the one it has.
		j.unreadable++
		if id == nil {
			return
		}
		invalid = true
	case id == nil:
		j.sentNotification(method.Text, v.Get("params"))
		return
	}
	meta := v.At("params", "_meta")
	r := &request{key: Key(id), method: method.Str(), sent: j.sent, caps: meta.Get(metaCapabilities), logLevel: meta.Get(metaLogLevel).Str(), invalid: invalid}
	r.about = r.method
	for _, member := range []string{"name", "uri"} {
		if what := v.At("params", member).Str(); what != "" {
			r.about += " " + what
		}
	}
	r.revision = j.fallback()
	r.unclaimed = transcript.Modern(r.revision) && !known(meta.Get(metaVersion).Str())
	if claim := meta.Get(metaVersion).Str(); claim != "" && (j.session == "" || transcript.Modern(claim)) {
		r.modern = transcript.Modern(claim)
		if known(claim) {
			r.revision = claim
		}
	}
	if !r.modern && r.method == "initialize" && j.session == "" {
		j.caps = v.At("params", "capabilities")
		if proposed := v.At("params", "protocolVersion").Str(); known(proposed) {
			r.revision = proposed
		}
	}
	r.claimless = j.session == "" && !r.modern && !modernOnly[r.method] && r.method != "initialize"
	if r.method == "subscriptions/listen" && r.modern {
		r.listen, r.filter = true, v.At("params", "notifications")
	}
	if token := meta.Get("progressToken"); token != nil {
		r.token = Key(token)
		j.tokens[r.token] = r
		delete(j.progress, r.token)
	}
	if old := j.requests[r.key]; old != nil && !old.answered && old.cancelled == 0 {
		// An id used twice at once: what comes back for it cannot be told apart.
		j.unreadable++
	}
	j.requests[r.key] = r
	j.open = append(j.open, r)
}

func (j *Judge) sentNotification(method string, params *strictjson.Value) {
	switch method {
	case "notifications/initialized":
		j.initialized = true
	case "notifications/cancelled":
		if r := j.requests[Key(params.Get("requestId"))]; r != nil && !r.answered && r.method != "initialize" {
			r.cancelled = j.sent
		}
	}
}

func known(revision string) bool {
	for _, r := range transcript.Revisions {
		if r == revision {
			return true
		}
	}
	return false
}

// Allow says that a reply with this id is no surprise: the transcript reckons
// with it, although the line that carried the id is one no reader need read.
func (j *Judge) Allow(id *strictjson.Value) { j.allowed[Key(id)] = true }

// InputClosed notes that the server's standard input was ended.
func (j *Judge) InputClosed() { j.inputClosed = true }

// Open returns the methods and ids of requests that wait for a reply.
func (j *Judge) Open() []string {
	var out []string
	for _, r := range j.open {
		if !r.answered && r.cancelled == 0 {
			out = append(out, fmt.Sprintf("%s (id %s)", orNone(r.method), showKey(r.key)))
		}
	}
	return out
}

// About says what the request with this id asks for: its method, and the tool, prompt or
// resource.
func (j *Judge) About(id *strictjson.Value) string {
	if r := j.requests[Key(id)]; r != nil && r.about != "" {
		return r.about
	}
	return "what is no request"
}

// Waiting reports whether the request with this id exists, is unanswered and
// was not cancelled.
func (j *Judge) Waiting(id *strictjson.Value) bool {
	r := j.requests[Key(id)]
	return r != nil && !r.answered && r.cancelled == 0
}

func orNone(method string) string {
	if method == "" {
		return "a request without method"
	}
	return method
}

func showKey(key string) string {
	if strings.HasPrefix(key, "s") {
		return strictjson.Quote(key[1:])
	}
	return key[1:]
}

// schemas returns the schema set of a revision, nil when there is none.
func schemas(revision string) *schema.Set {
	set, err := schema.For(revision)
	if err != nil {
		return nil
	}
	return set
}
