package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// fakeAPI is a Fabro server in memory: enough of it to see what the tools send and
// to let runs ask, end and disappear.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex // protects the fields below
	runs     []*fakeRun // oldest first
	requests []string   // "METHOD /path?query" in order
	bodies   map[string][]json.RawMessage
	changed  chan struct{} // closed and replaced when anything changes
	fault    func(w http.ResponseWriter, r *http.Request) bool
	onAnswer func(run *fakeRun, question string, answer wire.SubmitAnswer) // called with mu held
}

type fakeRun struct {
	wire.Run
	questions []wire.Question
	events    []wire.EventEnvelope
	log       string
	gone      bool
}

var epoch = time.Date(2026, 5, 11, 20, 0, 0, 0, time.UTC)

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t, changed: make(chan struct{}), bodies: map[string][]json.RawMessage{}}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// connect is Config.Connect for this server.
func (f *fakeAPI) connect(context.Context) (*fabroapi.Client, error) {
	target, err := fabroapi.ParseTarget(f.server.URL)
	if err != nil {
		return nil, err
	}
	return fabroapi.NewClient(fabroapi.Options{Target: target, NoProxy: true, Timeout: 5 * time.Second, Retries: -1,
		Backoff: func(int) time.Duration { return time.Millisecond }})
}

// add makes a run in a status, created n minutes after the epoch.
func (f *fakeAPI) add(kind string) *fakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addLocked(kind)
}

func (f *fakeAPI) addLocked(kind string) *fakeRun {
	created := epoch.Add(time.Duration(len(f.runs)) * time.Minute)
	id := ulid.MustNew(uint64(created.UnixMilli()), strings.NewReader(fmt.Sprintf("%010d", len(f.runs))))
	run := &fakeRun{Run: wire.Run{
		ID: id.String(), Title: "Release", Goal: "Ship it", Workflow: wire.RunWorkflow{Slug: wire.Ptr("release"), Name: wire.Ptr("Release"), GraphName: wire.Ptr("Release")},
		Labels: map[string]string{}, CreatedBy: *wire.DevUser(), Timestamps: wire.RunTimestamps{CreatedAt: created},
	}}
	run.Lifecycle.Status.Kind = kind
	f.runs = append(f.runs, run)
	f.logLocked(run, "run.created", "")
	return run
}

// change alters a run and wakes who follows it.
func (f *fakeAPI) change(run *fakeRun, event string, alter func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if alter != nil {
		alter()
	}
	f.logLocked(run, event, "")
}

func (f *fakeAPI) logLocked(run *fakeRun, event, node string) {
	seq := int64(len(run.events) + 1)
	at := run.Timestamps.CreatedAt.Add(time.Duration(seq) * time.Second)
	run.events = append(run.events, wire.EventEnvelope{Seq: seq, ID: fmt.Sprintf("%s-%d", run.ID, seq), TS: at, RunID: run.ID, Event: event, NodeID: node, NodeLabel: node})
	run.Timestamps.LastEventAt = &at
	close(f.changed)
	f.changed = make(chan struct{})
}

// end lets a run succeed.
func (f *fakeAPI) end(run *fakeRun) {
	f.change(run, wire.EventRunCompleted, func() {
		run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusSucceeded, Reason: wire.SucceededCompleted}
	})
}

// ask blocks a run on questions.
func (f *fakeAPI) ask(run *fakeRun, questions ...wire.Question) {
	f.change(run, wire.EventRunBlocked, func() {
		run.questions = append(run.questions, questions...)
		run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusBlocked, BlockedReason: wire.BlockedHumanInput}
	})
}

// seen returns the requests so far and forgets them.
func (f *fakeAPI) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

func (f *fakeAPI) find(selector string) *fakeRun {
	for i := len(f.runs) - 1; i >= 0; i-- {
		run := f.runs[i]
		if !run.gone && (strings.HasPrefix(run.ID, selector) || strings.EqualFold(*run.Workflow.Slug, selector)) {
			return run
		}
	}
	return nil
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	uri := r.URL.Path
	if r.URL.RawQuery != "" {
		uri += "?" + r.URL.RawQuery
	}
	f.requests = append(f.requests, r.Method+" "+uri)
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	if path[0] == "system" {
		answerJSON(w, 200, wire.SystemInfo{Version: "1.2.3"})
		return
	}
	if path[0] == "attach" {
		f.attach(w, r, nil)
		return
	}
	if path[0] != "runs" {
		refuse(w, 404, "", "no such path")
		return
	}
	switch {
	case len(path) == 1 && r.Method == "GET":
		f.list(w, r)
	case len(path) == 1:
		f.create(w, r)
	case path[1] == "resolve":
		f.mu.Lock()
		run := f.find(r.URL.Query().Get("selector"))
		f.send(w, run)
		f.mu.Unlock()
	default:
		f.mu.Lock()
		run := f.find(path[1])
		f.mu.Unlock()
		if run == nil {
			refuse(w, 404, "", "Run not found.")
			return
		}
		f.run(w, r, run, strings.Join(path[2:], "/"))
	}
}

// send answers with a run; mu is held.
func (f *fakeAPI) send(w http.ResponseWriter, run *fakeRun) {
	if run == nil {
		refuse(w, 404, "", "No run found matching this selector (tried run ID prefix and workflow name)")
		return
	}
	answerJSON(w, 200, run.Run)
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	answerJSON(w, status, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: strconv.Itoa(status), Title: http.StatusText(status), Code: code, Detail: detail}}})
}

func number(r *http.Request, name string, def int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return def
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []wire.Run
	for _, run := range slices.Backward(f.runs) {
		archived := r.URL.Query().Get("include_archived") == "true" || !run.Lifecycle.Archived
		columns := r.URL.Query()["status"]
		inColumn := len(columns) == 0 || slices.Contains(columns, wire.Column(run.Lifecycle.Status.Kind))
		parent := r.URL.Query().Get("parent_id")
		isChild := parent == "" || run.ParentID != nil && *run.ParentID == parent
		if !run.gone && archived && inColumn && isChild {
			all = append(all, run.Run)
		}
	}
	total, offset := len(all), min(number(r, "page[offset]", 0), len(all))
	page := all[offset:min(offset+number(r, "page[limit]", 20), len(all))]
	if page == nil {
		page = []wire.Run{}
	}
	answerJSON(w, 200, wire.List[wire.Run]{Data: page, Meta: wire.ListMeta{HasMore: offset+len(page) < total, Total: &total}})
}

func (f *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var manifest wire.RunManifest
	if err := json.Unmarshal(f.keep(r), &manifest); err != nil {
		refuse(w, 400, "", err.Error())
		return
	}
	run := f.addLocked(wire.StatusSubmitted)
	if manifest.Args != nil {
		for _, label := range manifest.Args.Label {
			key, value, _ := strings.Cut(label, "=")
			run.Labels[key] = value
		}
	}
	answerJSON(w, 201, run.Run)
}

// keep remembers the body of a request; mu is held.
func (f *fakeAPI) keep(r *http.Request) json.RawMessage {
	var body json.RawMessage
	json.NewDecoder(r.Body).Decode(&body)
	f.bodies[r.Method+" "+r.URL.Path] = append(f.bodies[r.Method+" "+r.URL.Path], body)
	return body
}

func (f *fakeAPI) run(w http.ResponseWriter, r *http.Request, run *fakeRun, rest string) {
	if rest == "attach" {
		f.attach(w, r, run)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	part, _, _ := strings.Cut(rest, "/")
	become := func(kind, event string) {
		run.Lifecycle.Status = wire.RunStatus{Kind: kind}
		f.logLocked(run, event, "")
		answerJSON(w, 200, run.Run)
	}
	switch part {
	case "":
		answerJSON(w, 200, run.Run)
	case "state":
		answerJSON(w, 200, map[string]any{"status": run.Lifecycle.Status, "stages": map[string]any{
			"build@1": map[string]any{"first_event_seq": 2, "state": "succeeded", "handler": "command"},
			"gate@1":  map[string]any{"first_event_seq": 5, "state": "running", "handler": "human"},
		}})
	case "questions":
		if id, answering := strings.CutSuffix(strings.TrimPrefix(rest, "questions/"), "/answer"); answering {
			f.answer(w, r, run, id)
			return
		}
		answerJSON(w, 200, wire.List[wire.Question]{Data: append([]wire.Question{}, run.questions...)})
	case "events":
		f.events(w, r, run)
	case "start":
		become(wire.StatusRunnable, "run.runnable")
	case "approve":
		become(wire.StatusRunnable, "run.runnable")
	case "deny", "cancel":
		f.keep(r)
		become(wire.StatusFailed, wire.EventRunFailed)
	case "archive", "unarchive":
		run.Lifecycle.Archived = part == "archive"
		answerJSON(w, 200, run.Run)
	case "parent":
		f.keep(r)
		answerJSON(w, 200, run.Run)
	case "steer", "interrupt":
		f.keep(r)
		w.WriteHeader(202)
	case "stages":
		f.stages(w, r, run, rest)
	case "graph":
		w.Header().Set("Content-Type", "text/vnd.graphviz")
		fmt.Fprint(w, "digraph Release {}\n")
	case "artifacts":
		answerJSON(w, 200, wire.ArtifactList{Data: []wire.Artifact{}})
	case "pair":
		f.pair(w, r, run, rest)
	default:
		refuse(w, 404, "", "no such path")
	}
}

func (f *fakeAPI) stages(w http.ResponseWriter, r *http.Request, run *fakeRun, rest string) {
	if !strings.HasSuffix(rest, "/logs/output") {
		answerJSON(w, 200, wire.List[wire.RunStage]{Data: []wire.RunStage{
			{ID: "build@1", Name: "Build", Handler: "command", Status: wire.StageFailed, NodeID: "build", Visit: 1},
			{ID: "gate@1", Name: "Gate", Handler: "human", Status: wire.StageRunning, NodeID: "gate", Visit: 1},
		}})
		return
	}
	offset := min(number(r, "offset", 0), len(run.log))
	end := min(offset+number(r, "limit", wire.DefaultLogLimit), len(run.log))
	answerJSON(w, 200, wire.CommandLog{Offset: int64(offset), NextOffset: int64(end), TotalBytes: int64(len(run.log)), Bytes: []byte(run.log[offset:end]), EOF: end == len(run.log)})
}

func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request, run *fakeRun, id string) {
	var answer wire.SubmitAnswer
	if err := json.Unmarshal(f.keep(r), &answer); err != nil {
		refuse(w, 400, "", err.Error())
		return
	}
	at := slices.IndexFunc(run.questions, func(q wire.Question) bool { return q.ID == id })
	if at < 0 {
		refuse(w, 409, "", "Question no longer exists or was already answered.")
		return
	}
	q := run.questions[at]
	if answer.Kind == wire.AnswerSelected && !slices.ContainsFunc(q.Options, func(o wire.QuestionOption) bool { return o.Key == answer.OptionKey }) {
		refuse(w, 400, "", "Invalid option key.")
		return
	}
	run.questions = slices.Delete(run.questions, at, at+1)
	if len(run.questions) == 0 {
		run.Lifecycle.Status = wire.RunStatus{Kind: wire.StatusRunning}
	}
	f.logLocked(run, wire.EventInterviewCompleted, q.Stage)
	if f.onAnswer != nil {
		f.onAnswer(run, id, answer)
	}
	w.WriteHeader(204)
}

func (f *fakeAPI) events(w http.ResponseWriter, r *http.Request, run *fakeRun) {
	desc := r.URL.Query().Get("order") == "desc"
	limit, since, before := number(r, "limit", 100), int64(number(r, "since_seq", 1)), int64(number(r, "before_seq", 1<<40))
	var page []wire.EventEnvelope
	more := false
	take := func(e wire.EventEnvelope) bool {
		if e.Seq < since || e.Seq >= before {
			return true
		}
		if len(page) == limit {
			more = true
			return false
		}
		page = append(page, e)
		return true
	}
	if desc {
		for _, e := range slices.Backward(run.events) {
			if !take(e) {
				break
			}
		}
	} else {
		for _, e := range run.events {
			if !take(e) {
				break
			}
		}
	}
	answerJSON(w, 200, wire.List[wire.EventEnvelope]{Data: append([]wire.EventEnvelope{}, page...), Meta: wire.ListMeta{HasMore: more}})
}

// attach streams the events of one run, or of all.
func (f *fakeAPI) attach(w http.ResponseWriter, r *http.Request, run *fakeRun) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	f.mu.Lock()
	sent := map[*fakeRun]int{}
	for _, each := range f.runs {
		sent[each] = len(each.events)
	}
	if run != nil {
		sent[run] = number(r, "since_seq", len(run.events)+1) - 1
	}
	for {
		for _, each := range f.runs {
			if run != nil && each != run {
				continue
			}
			for ; sent[each] < len(each.events); sent[each]++ {
				data, _ := json.Marshal(each.events[sent[each]])
				fmt.Fprintf(w, "data: %s\n\n", data)
			}
		}
		w.(http.Flusher).Flush()
		if run != nil && run.Lifecycle.Status.Terminal() {
			f.mu.Unlock()
			return
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		f.mu.Lock()
	}
}

func (f *fakeAPI) pair(w http.ResponseWriter, r *http.Request, run *fakeRun, rest string) {
	record := wire.PairRecord{PairID: run.ID, RunID: run.ID, Status: wire.PairActive, StartedAt: epoch, Target: wire.PairTarget{StageID: "work@1", NodeLabel: "Work"}}
	f.keep(r)
	switch {
	case rest == "pair" && r.Method == "GET":
		answerJSON(w, 200, wire.PairStatus{RunID: run.ID, Targets: []wire.PairTarget{record.Target}})
	case strings.HasSuffix(rest, "/messages"):
		answerJSON(w, 202, wire.PairMessage{MessageID: run.ID, PairID: run.ID, RunID: run.ID, StageID: "work@1", Text: "hello", AcceptedAt: epoch})
	case strings.HasSuffix(rest, "/transcript"):
		answerJSON(w, 200, wire.PairTranscript{Data: []wire.PairEntry{{Kind: wire.PairAssistantMessage, Seq: 4, EventID: "e", TS: epoch, PairID: run.ID, Text: wire.Ptr("\x1b[1mhi\x1b[0m")}}, Meta: wire.PairTranscriptMeta{NextSinceSeq: 5, HasMore: true}})
	default:
		answerJSON(w, 200, record)
	}
}
