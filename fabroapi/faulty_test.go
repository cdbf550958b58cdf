package fabroapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(tlsHelper); address != "" {
		askHealth(address)
		os.Exit(0)
	}
	if storage := os.Getenv(serveHelper); storage != "" {
		os.Exit(serveEmbedded(storage))
	}
	if address := os.Getenv(proxyHelper); address != "" {
		askThroughConnector(address)
		os.Exit(0)
	}
	// The goroutine that waits for a daemon ends when the daemon's process does,
	// which a stopped one takes its time for under the race detector.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os.(*Process).Wait"))
}

const (
	runID  = "01J00000000000000000000001"
	pairID = "01J00000000000000000000002"
)

// method is one method of the client as the tests call it.
type method struct {
	name string
	// write requests must never be repeated.
	write bool
	call  func(context.Context, *fabroapi.Client) error
}

// methods calls every method of the client once.
func methods() []method {
	drop := func(_ any, err error) error { return err }
	manifest := &wire.RunManifest{Version: 1, Cwd: "/w", Target: wire.ManifestTarget{Path: "a.fabro"},
		Workflows: map[string]wire.ManifestWorkflow{"a.fabro": {Source: "digraph A {}"}}}
	type client = *fabroapi.Client
	type ctx = context.Context
	return []method{
		{"ResolveRun", false, func(x ctx, c client) error { return drop(c.ResolveRun(x, "demo")) }},
		{"GetRun", false, func(x ctx, c client) error { return drop(c.GetRun(x, runID)) }},
		{"ListRuns", false, func(x ctx, c client) error { return drop(c.ListRuns(x, fabroapi.ListRunsOptions{})) }},
		{"ListRuns with everything", false, func(x ctx, c client) error {
			return drop(c.ListRuns(x, fabroapi.ListRunsOptions{Limit: 100, Offset: 200, IncludeArchived: true, ParentID: runID,
				Columns: []string{wire.ColumnRunning, wire.ColumnBlocked}, Sort: "updated_at", Ascending: true}))
		}},
		{"CreateRun", true, func(x ctx, c client) error { return drop(c.CreateRun(x, manifest)) }},
		{"StartRun", true, func(x ctx, c client) error { return drop(c.StartRun(x, runID, false)) }},
		{"ApproveRun", true, func(x ctx, c client) error { return drop(c.ApproveRun(x, runID)) }},
		{"DenyRun", true, func(x ctx, c client) error { return drop(c.DenyRun(x, runID, "no")) }},
		{"CancelRun", true, func(x ctx, c client) error { return drop(c.CancelRun(x, runID)) }},
		{"PauseRun", true, func(x ctx, c client) error { return drop(c.PauseRun(x, runID)) }},
		{"UnpauseRun", true, func(x ctx, c client) error { return drop(c.UnpauseRun(x, runID)) }},
		{"ArchiveRun", false, func(x ctx, c client) error { return drop(c.ArchiveRun(x, runID)) }},
		{"UnarchiveRun", false, func(x ctx, c client) error { return drop(c.UnarchiveRun(x, runID)) }},
		{"RetryRun", true, func(x ctx, c client) error { return drop(c.RetryRun(x, runID)) }},
		{"DeleteRun", false, func(x ctx, c client) error { return drop(c.DeleteRun(x, runID, true)) }},
		{"SetRunTitle", false, func(x ctx, c client) error { return drop(c.SetRunTitle(x, runID, "t")) }},
		{"SteerRun", true, func(x ctx, c client) error { return c.SteerRun(x, runID, "go on", false) }},
		{"InterruptRun", true, func(x ctx, c client) error { return c.InterruptRun(x, runID) }},
		{"LinkParent", false, func(x ctx, c client) error { return drop(c.LinkParent(x, runID, pairID)) }},
		{"UnlinkParent", false, func(x ctx, c client) error { return drop(c.UnlinkParent(x, runID)) }},
		{"RunState", false, func(x ctx, c client) error { return drop(c.RunState(x, runID)) }},
		{"RunStateRaw", false, func(x ctx, c client) error { return drop(c.RunStateRaw(x, runID)) }},
		{"RunSettings", false, func(x ctx, c client) error { return drop(c.RunSettings(x, runID)) }},
		{"Questions", false, func(x ctx, c client) error { return drop(c.Questions(x, runID)) }},
		{"Answer", true, func(x ctx, c client) error { return c.Answer(x, runID, "q1", wire.AnswerOfYes(true)) }},
		{"Events", false, func(x ctx, c client) error { return drop(c.Events(x, runID, fabroapi.EventsOptions{SinceSeq: 1})) }},
		{"Events from the end", false, func(x ctx, c client) error {
			return drop(c.Events(x, runID, fabroapi.EventsOptions{Desc: true, BeforeSeq: 9, Limit: 1000}))
		}},
		{"Event", false, func(x ctx, c client) error { return drop(c.Event(x, runID, 1, 0)) }},
		{"Stages", false, func(x ctx, c client) error { return drop(c.Stages(x, runID)) }},
		{"StageEvents", false, func(x ctx, c client) error { return drop(c.StageEvents(x, runID, "a@1", 1, 10)) }},
		{"StageLog", false, func(x ctx, c client) error { return drop(c.StageLog(x, runID, "a@1", 0, 100)) }},
		{"RunLog", false, func(x ctx, c client) error { return drop(c.RunLog(x, runID)) }},
		{"GraphSource", false, func(x ctx, c client) error { return drop(c.GraphSource(x, runID)) }},
		{"Artifacts", false, func(x ctx, c client) error { return drop(c.Artifacts(x, runID)) }},
		{"StageArtifact", false, func(x ctx, c client) error { return drop(c.StageArtifact(x, runID, "a@1", "f", 0)) }},
		{"PairStatus", false, func(x ctx, c client) error { return drop(c.PairStatus(x, runID)) }},
		{"PairStart", true, func(x ctx, c client) error { return drop(c.PairStart(x, runID, "a@1")) }},
		{"PairGet", false, func(x ctx, c client) error { return drop(c.PairGet(x, runID, pairID)) }},
		{"PairMessage", true, func(x ctx, c client) error { return drop(c.PairMessage(x, runID, pairID, "hi", "")) }},
		{"PairEnd", true, func(x ctx, c client) error { return drop(c.PairEnd(x, runID, pairID)) }},
		{"PairTranscript", false, func(x ctx, c client) error { return drop(c.PairTranscript(x, runID, pairID, 1, 10)) }},
		{"Validate", false, func(x ctx, c client) error { return drop(c.Validate(x, manifest)) }},
		{"Preflight", false, func(x ctx, c client) error { return drop(c.Preflight(x, manifest)) }},
		{"Health", false, func(x ctx, c client) error { return drop(c.Health(x)) }},
		{"SystemInfo", false, func(x ctx, c client) error { return drop(c.SystemInfo(x)) }},
		{"Attach", false, func(x ctx, c client) error {
			return c.Attach(x, runID, 1, func(wire.EventEnvelope) error { return nil })
		}},
		{"AttachAll", false, func(x ctx, c client) error {
			return c.AttachAll(x, []string{runID}, nil, func(wire.EventEnvelope) error { return nil })
		}},
	}
}

const secretToken = "fabro_dev_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// faults are the ways a server can go wrong. Want is what errors.Is must find.
var faults = []struct {
	name  string
	want  error
	texts []string // one of them is in the sentence
	serve func(http.ResponseWriter, *http.Request)
}{
	{"500 with envelope", nil, []string{"something broke (request id req-7)"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-request-id", "req-7")
		w.WriteHeader(500)
		fmt.Fprint(w, `{"errors":[{"status":"500","title":"Internal Server Error","detail":"something broke"}]}`)
	}},
	{"500 with garbage that repeats the token", nil, []string{"request failed with status 500"}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		fmt.Fprint(w, "\x00\x1b[31mpanic\xff "+r.Header.Get("Authorization"))
	}},
	{"502 web page", nil, []string{"web page"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(502)
		fmt.Fprint(w, "<html><body>Bad Gateway</body></html>")
	}},
	{"401", fabroapi.ErrLoginRequired, []string{"fabro auth login"}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		fmt.Fprint(w, `{"errors":[{"status":"401","title":"Unauthorized","detail":"Authentication required.","code":"unauthorized"}]}`)
	}},
	{"404", fabroapi.ErrNotFound, []string{"Run not found."}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		fmt.Fprint(w, `{"errors":[{"status":"404","title":"Not Found","detail":"Run not found."}],"request_id":"x"}`)
	}},
	{"429", nil, []string{"slow down"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"errors":[{"status":"429","title":"Too Many Requests","detail":"slow down"}]}`)
	}},
	{"redirect to another host", nil, []string{"set --server"}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	}},
	{"wrong JSON", fabroapi.ErrBadAnswer, []string{"not the Fabro API's"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `["surprise"]`)
	}},
	{"text instead of JSON", fabroapi.ErrBadAnswer, []string{"not the Fabro API's"}, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello")
	}},
	{"truncated body", fabroapi.ErrUnreachable, []string{"ended in the middle"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `{"data":[`)
	}},
	{"closed without an answer", fabroapi.ErrUnreachable, []string{"ended in the middle", "reset"}, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.Close()
	}},
	{"no HTTP at all", fabroapi.ErrUnreachable, []string{"malformed HTTP"}, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n\r\n")
		conn.Close()
	}},
	{"hung before the headers", fabroapi.ErrUnreachable, []string{"timed out after"}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}},
	{"hung in the body", fabroapi.ErrUnreachable, []string{"timed out after"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `{"data":[`)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}},
	{"endless body", fabroapi.ErrBadAnswer, []string{"larger than"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := []byte(strings.Repeat("x", 64<<10))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}},
}

// accepts lists what is no fault for a method: text is text, and an answer that
// nobody reads cannot be wrong.
func accepts(fault, method string) bool {
	unread := method == "SteerRun" || method == "InterruptRun" || method == "Answer"
	text := method == "RunLog" || method == "GraphSource" || method == "StageArtifact"
	switch fault {
	case "wrong JSON":
		return unread || text || method == "RunStateRaw" || method == "RunSettings"
	case "text instead of JSON":
		return unread || text
	case "endless body":
		return unread
	}
	return false
}

// TestFaultyServer calls every method against every fault: each gives a sentence
// in bounded time that names no secret, and a write is sent once.
func TestFaultyServer(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			patience := 30 * time.Second
			if strings.HasPrefix(fault.name, "hung") {
				patience = 50 * time.Millisecond
			}
			for _, m := range methods() {
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					var requests atomic.Int64
					server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						requests.Add(1)
						io.Copy(io.Discard, r.Body)
						fault.serve(w, r)
					}))
					defer server.Close()
					client := newClient(t, server.URL, fabroapi.Options{Timeout: patience, StreamTimeout: patience, MaxBody: 1 << 20})
					defer client.Close()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					err := m.call(ctx, client)
					if accepts(fault.name, m.name) {
						if err != nil {
							t.Error(err)
						}
						return
					}
					if err == nil {
						t.Fatal("no error")
					}
					text := err.Error()
					if errors.Is(err, context.DeadlineExceeded) {
						t.Error("waited for the caller's deadline")
					}
					if fault.want != nil && !errors.Is(err, fault.want) {
						t.Errorf("%v: is not %v", err, fault.want)
					}
					if !containsAny(text, fault.texts) {
						t.Errorf("%q has none of %q", text, fault.texts)
					}
					if strings.Contains(text, secretToken) || strings.ContainsAny(text, "\x00\x1b") || !utf8.ValidString(text) {
						t.Errorf("unfit for a person: %q", text)
					}
					if m.write && requests.Load() != 1 {
						t.Errorf("sent %d times", requests.Load())
					}
				})
			}
		})
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// newClient makes a client without pauses, with a token that must not leak.
func newClient(t *testing.T, address string, opts fabroapi.Options) *fabroapi.Client {
	t.Helper()
	target, err := fabroapi.ParseTarget(address)
	if err != nil {
		t.Fatal(err)
	}
	opts.Target = target
	if opts.Token == nil {
		opts.Token = fabroapi.StaticToken(secretToken)
	}
	opts.NoProxy = true
	opts.Backoff = func(int) time.Duration { return 0 }
	client, err := fabroapi.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// TestReadsAreRepeated shows that a passing fault does not reach the caller of a
// read, but does reach the caller of a write.
func TestReadsAreRepeated(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(503)
		case 2:
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		default:
			writeJSON(w, 200, sampleRun())
		}
	}))
	defer server.Close()
	client := newClient(t, server.URL, fabroapi.Options{})
	run, err := client.GetRun(t.Context(), runID)
	if err != nil || run.ID != runID {
		t.Fatalf("read: %v, %v", run, err)
	}
	requests.Store(0)
	var api *fabroapi.APIError
	if _, err := client.StartRun(t.Context(), runID, false); !errors.As(err, &api) || api.Status != 503 || requests.Load() != 1 {
		t.Fatalf("write: %v after %d requests", err, requests.Load())
	}
}

// TestNothingListens: a refused connection and a missing socket are sentences
// that name the server.
func TestNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + listener.Addr().String()
	listener.Close()
	for _, target := range []string{address, t.TempDir() + "/none.sock"} {
		client := newClient(t, target, fabroapi.Options{})
		_, err := client.Health(t.Context())
		if !errors.Is(err, fabroapi.ErrUnreachable) || !strings.Contains(err.Error(), strings.TrimPrefix(target, "unix://")) {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestBadArguments: what cannot be a request is refused before one is made.
func TestBadArguments(t *testing.T) {
	client := newClient(t, t.TempDir()+"/none.sock", fabroapi.Options{})
	for name, call := range map[string]func() error{
		"no run id":      func() error { _, err := client.GetRun(t.Context(), ""); return err },
		"dots for a run": func() error { _, err := client.ArchiveRun(t.Context(), ".."); return err },
		"no question id": func() error { return client.Answer(t.Context(), runID, "", wire.AnswerOfYes(true)) },
		"no stage id":    func() error { _, err := client.StageLog(t.Context(), runID, "", 0, 0); return err },
		"no pair id":     func() error { _, err := client.PairGet(t.Context(), runID, ""); return err },
		"orders at odds": func() error {
			_, err := client.Events(t.Context(), runID, fabroapi.EventsOptions{BeforeSeq: 1})
			return err
		},
		"orders at odds 2": func() error {
			_, err := client.Events(t.Context(), runID, fabroapi.EventsOptions{SinceSeq: 1, Desc: true})
			return err
		},
		"no kind of answer": func() error { return client.Answer(t.Context(), runID, "q", wire.SubmitAnswer{}) },
	} {
		if err := call(); err == nil || errors.Is(err, fabroapi.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCancel: a caller that gives up gets its own reason back at once.
func TestCancel(t *testing.T) {
	entered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	defer server.Close()
	client := newClient(t, server.URL, fabroapi.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := client.GetRun(ctx, runID)
	if !errors.Is(err, context.Canceled) || errors.Is(err, fabroapi.ErrUnreachable) {
		t.Fatal(err)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func sampleRun() wire.Run {
	return wire.Run{
		ID: runID, Title: "Demo", Goal: "Demo", Labels: map[string]string{}, Models: []wire.RunModel{}, Size: "XS",
		Workflow: wire.RunWorkflow{Slug: wire.Ptr("demo"), NodeCount: 2, EdgeCount: 1}, Origin: wire.RunOrigin{Kind: "api"},
		CreatedBy: *wire.DevUser(), Lifecycle: wire.RunLifecycle{Status: wire.RunStatus{Kind: wire.StatusSubmitted}},
		Timestamps: wire.RunTimestamps{CreatedAt: time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)},
	}
}
