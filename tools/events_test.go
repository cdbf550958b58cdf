package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

func (r *eventsResult) sequences() []int64 {
	out := []int64{}
	for _, e := range r.Events {
		out = append(out, e.Sequence)
	}
	return out
}

// manyEvents is a run with n events: stage.started and stage.completed in turn, one
// of them with a marker.
func manyEvents(api *fakeAPI, n int) *fakeRun {
	run := api.add(wire.StatusRunning)
	api.mu.Lock()
	defer api.mu.Unlock()
	run.events = nil
	for i := range n {
		name := "stage.started"
		if i%2 == 1 {
			name = "stage.completed"
		}
		e := wire.EventEnvelope{Seq: int64(i + 1), ID: fmt.Sprintf("e%d", i+1), TS: run.Timestamps.CreatedAt.Add(time.Duration(i) * time.Minute), RunID: run.ID, Event: name, NodeID: "build"}
		if i == n-3 {
			e.Properties = json.RawMessage(`{"note":"needle \u001b[31mred"}`)
		}
		run.events = append(run.events, e)
	}
	return run
}

func TestEvents(t *testing.T) {
	api := newFakeAPI(t)
	run := manyEvents(api, 10)
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	next := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name, more string
		want       []int64
		cursor     *int64
	}{
		{"list", `"action":"list"`, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil},
		{"page", `"action":"list","first":3`, []int64{1, 2, 3}, next(4)},
		{"next page", `"action":"list","first":3,"after":4`, []int64{4, 5, 6}, next(7)},
		{"last page, exactly", `"action":"list","first":3,"after":8`, []int64{8, 9, 10}, nil},
		{"beyond the end", `"action":"list","after":11`, []int64{}, nil},
		{"limit is another name", `"action":"list","limit":2`, []int64{1, 2}, next(3)},
		{"first goes before limit", `"action":"list","limit":2,"first":1`, []int64{1}, next(2)},
		{"offset", `"action":"list","offset":8`, []int64{9, 10}, nil},
		{"nothing wanted", `"action":"list","first":0`, []int64{}, nil},
		{"newest first", `"action":"list","direction":"desc","first":3`, []int64{10, 9, 8}, next(8)},
		{"newest first, next page", `"action":"list","direction":"desc","first":3,"after":8`, []int64{7, 6, 5}, next(5)},
		{"newest first, last page", `"action":"list","direction":"desc","first":5,"after":5`, []int64{4, 3, 2, 1}, nil},
		{"types", `"action":"list","event_types":["stage.completed"],"first":2`, []int64{2, 4}, next(5)},
		{"no types", `"action":"list","event_types":[]`, []int64{}, nil},
		{"categories", `"action":"list","categories":["run"]`, []int64{}, nil},
		{"search", `"action":"search","query":"needle"`, []int64{8}, nil},
		{"search newest first", `"action":"search","query":"stage.started","direction":"desc","first":2`, []int64{9, 7}, next(7)},
		{"details", `"action":"details","event_ids":["e3","e5","none"]`, []int64{3, 5}, nil},
		{"time window", `"action":"list","created_after":"2026-05-11T20:02:00Z","created_before":"2026-05-11T20:04:00Z"`, []int64{3, 4, 5}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got eventsResult
			s.call(nameEvents, `{"run_id":"`+run.ID+`",`+c.more+`}`).structured(&got)
			if diff := cmp.Diff(c.want, got.sequences()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.cursor, got.NextCursor); diff != "" {
				t.Errorf("cursor (-want +got)\n%s", diff)
			}
		})
	}
	r := s.call(nameEvents, `{"action":"details","event_ids":["e8","none"],"run_id":"`+run.ID+`"}`)
	if !strings.Contains(r.text(), "> #8") || strings.Contains(r.text(), "\x1b") || !strings.Contains(r.text(), "Not found: none") {
		t.Error(r.text())
	}
}

func TestEventsCut(t *testing.T) {
	api := newFakeAPI(t)
	run := manyEvents(api, 1)
	run.events[0].Properties, _ = json.Marshal(map[string]string{"text": strings.Repeat("ü", 1000)})
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	var got eventsResult
	s.call(nameEvents, `{"action":"list","max_content_length":301,"run_id":"`+run.ID+`"}`).structured(&got)
	text, cut := got.Events[0].Event.(string)
	if !cut || !got.Events[0].Truncated || len(text) > 301 || len(text) < 299 || !strings.HasPrefix(text, `{"seq":1,`) {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// TestEventsRequests counts the requests on a run with very many events.
func TestEventsRequests(t *testing.T) {
	api := newFakeAPI(t)
	run := manyEvents(api, 30_000)
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	for _, c := range []struct {
		more string
		most int
	}{
		{`"action":"list"`, 2},
		{`"action":"list","direction":"desc","first":200`, 2},
		{`"action":"list","event_types":["stage.completed"],"direction":"desc"`, 2},
		{`"action":"search","query":"needle","direction":"desc","first":1`, 26},
		{`"action":"details","event_ids":["e29999"],"direction":"desc"`, 2},
	} {
		api.seen()
		s.call(nameEvents, `{"run_id":"`+run.ID+`",`+c.more+`}`)
		if n := len(api.seen()); n > c.most {
			t.Errorf("%s: %d requests", c.more, n)
		}
	}
	var got eventsResult
	r := s.call(nameEvents, `{"run_id":"`+run.ID+`","action":"search","query":"needle"}`)
	r.structured(&got)
	if len(got.Events) != 0 || got.NextCursor == nil || *got.NextCursor != 25_001 || !strings.Contains(r.text(), "Only 25000 events were looked at") {
		t.Errorf("%+v\n%s", got, r.text())
	}
}

// TestStructuredIsClean: what a run wrote loses its terminal sequences in the
// structured value, too.
func TestStructuredIsClean(t *testing.T) {
	api := newFakeAPI(t)
	run := manyEvents(api, 3)
	run.Goal = "\x1b[31mred\x1b[0m\u202e"
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	for _, c := range []struct{ tool, arguments string }{{nameEvents, `{"action":"list","run_id":"` + run.ID + `"}`}, {nameGet, `{"run_id":"` + run.ID + `"}`}, {nameSearch, `{}`}} {
		var got json.RawMessage
		s.call(c.tool, c.arguments).structured(&got)
		if strings.Contains(string(got), `\u001b`) || strings.Contains(string(got), `\u202e`) || !strings.Contains(string(got), "red") {
			t.Errorf("%s: %s", c.tool, got)
		}
	}
}
