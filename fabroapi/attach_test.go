package fabroapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// script is what a server does with one connection to an event stream.
type script func(w http.ResponseWriter, since int64)

func sse(w http.ResponseWriter, first, last int64, name string) {
	for seq := first; seq <= last; seq++ {
		event := "stage.started"
		if seq == last && name != "" {
			event = name
		}
		fmt.Fprintf(w, ": comment\nevent: message\nid: %d\ndata: {\"seq\":%d,\"id\":\"x\",\"ts\":\"2026-08-01T10:00:00Z\",\"run_id\":%q,\"event\":%q,\"unknown\":1,\"properties\":{}}\r\n\r\n", seq, seq, runID, event)
	}
	http.NewResponseController(w).Flush()
}

func cut(w http.ResponseWriter) {
	conn, _, _ := http.NewResponseController(w).Hijack()
	conn.Close()
}

// TestAttach plays connections that break in every way: each event arrives once
// and in order, and the end of the run ends the call.
func TestAttach(t *testing.T) {
	tests := []struct {
		name    string
		since   int64
		scripts []script
		status  []string // what GET /runs/{id} says, one after another, the last for ever
		want    []int64
		fails   string
	}{
		{"one connection", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, since, 3, "run.completed") },
		}, []string{"succeeded"}, []int64{1, 2, 3}, ""},
		{"broken and resumed, with what was seen already", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, since, 2, ""); cut(w) },
			func(w http.ResponseWriter, since int64) { cut(w) },
			func(w http.ResponseWriter, since int64) {
				w.WriteHeader(503)
			},
			func(w http.ResponseWriter, since int64) { sse(w, since-2, 4, "run.failed") },
		}, []string{"failed"}, []int64{1, 2, 3, 4}, ""},
		{"a busy server when the stream has ended", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, since, 3, "run.completed") },
		}, []string{"503", "503", "503", "succeeded"}, []int64{1, 2, 3}, ""},
		{"half a line is no event", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, 1, 1, ""); fmt.Fprint(w, `data: {"seq":2,"ev`) },
			func(w http.ResponseWriter, since int64) { sse(w, since, 2, "run.completed") },
		}, []string{"running", "succeeded"}, []int64{1, 2}, ""},
		{"a run that has not started yet", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, 1, 2, "") },
			func(w http.ResponseWriter, since int64) { sse(w, 1, 0, "") },
			func(w http.ResponseWriter, since int64) { sse(w, 3, 4, "run.completed") },
		}, []string{"submitted", "runnable", "succeeded"}, []int64{1, 2, 3, 4}, ""},
		{"a run that was resumed after its end", 1, []script{
			func(w http.ResponseWriter, since int64) { sse(w, 1, 2, "run.failed") },
			func(w http.ResponseWriter, since int64) { sse(w, 3, 4, "run.completed") },
		}, []string{"running", "succeeded"}, []int64{1, 2, 3, 4}, ""},
		{"only what follows", 0, []script{
			func(w http.ResponseWriter, since int64) { sse(w, since, 9, "run.completed") },
		}, []string{"succeeded"}, []int64{8, 9}, ""},
		{"ended before we came", 5, []script{
			func(w http.ResponseWriter, since int64) { sse(w, 1, 0, "") },
		}, []string{"succeeded"}, nil, ""},
		{"never anything", 1, []script{func(w http.ResponseWriter, since int64) { cut(w) }}, []string{"running"}, nil, "middle of the answer"},
		{"no JSON", 1, []script{
			func(w http.ResponseWriter, since int64) { fmt.Fprint(w, "data: hello\n\n") },
		}, []string{"running"}, nil, "not the Fabro API's"},
		{"no event", 1, []script{
			func(w http.ResponseWriter, since int64) { fmt.Fprint(w, "data: {}\n\n") },
		}, []string{"running"}, nil, "no event"},
		{"too long a line", 1, []script{
			func(w http.ResponseWriter, since int64) { fmt.Fprint(w, "data: ", strings.Repeat("x", 2<<20), "\n") },
		}, []string{"running"}, nil, "larger than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var connections, asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/attach"):
					since, err := strconv.ParseInt(r.URL.Query().Get("since_seq"), 10, 64)
					if err != nil {
						t.Error(err)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					test.scripts[min(int(connections.Add(1)), len(test.scripts))-1](w, since)
				case strings.HasSuffix(r.URL.Path, "/events"):
					writeJSON(w, 200, wire.List[wire.EventEnvelope]{Data: []wire.EventEnvelope{{Seq: 7, Event: "x"}}})
				default:
					run := sampleRun()
					run.Lifecycle.Status.Kind = test.status[min(int(asked.Add(1)), len(test.status))-1]
					if run.Lifecycle.Status.Kind == "503" {
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					writeJSON(w, 200, run)
				}
			}))
			defer server.Close()
			client := newClient(t, server.URL, fabroapi.Options{MaxBody: 1 << 20})
			defer client.Close()
			var got []int64
			err := client.Attach(t.Context(), runID, test.since, func(event wire.EventEnvelope) error {
				got = append(got, event.Seq)
				return nil
			})
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAttachCallback: what the callback returns ends the call and comes back
// unchanged.
func TestAttachCallback(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		sse(w, 1, 5, "")
		<-r.Context().Done()
	}))
	defer server.Close()
	client := newClient(t, server.URL, fabroapi.Options{StreamTimeout: time.Minute})
	enough := errors.New("enough")
	for name, attach := range map[string]func(func(wire.EventEnvelope) error) error{
		"Attach":    func(each func(wire.EventEnvelope) error) error { return client.Attach(t.Context(), runID, 1, each) },
		"AttachAll": func(each func(wire.EventEnvelope) error) error { return client.AttachAll(t.Context(), nil, nil, each) },
	} {
		var got []int64
		err := attach(func(event wire.EventEnvelope) error {
			if got = append(got, event.Seq); len(got) == 3 {
				return enough
			}
			return nil
		})
		if err != enough || !slices.Equal(got, []int64{1, 2, 3}) {
			t.Errorf("%s: %v, %v", name, err, got)
		}
	}
}

// TestSlowCallback: what the callback takes is not counted as the server's
// silence. That the stream is open is told before its first event.
func TestSlowCallback(t *testing.T) {
	var connections atomic.Int64
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		sse(w, 1, 1, "")
		select {
		case <-release:
			sse(w, 2, 2, "")
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	const patience = 400 * time.Millisecond
	client := newClient(t, server.URL, fabroapi.Options{StreamTimeout: patience})
	var got []int64
	opened := 0
	err := client.AttachAll(t.Context(), nil, func() { opened = len(got) + 1 }, func(event wire.EventEnvelope) error {
		if got = append(got, event.Seq); event.Seq == 1 {
			<-time.After(2 * patience)
			close(release)
		}
		return nil
	})
	if err != fabroapi.ErrStreamEnded || !slices.Equal(got, []int64{1, 2}) || connections.Load() != 1 || opened != 1 {
		t.Errorf("%v, %v, %d connections, opened before event %d", err, got, connections.Load(), opened)
	}
}
