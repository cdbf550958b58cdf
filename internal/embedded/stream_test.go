package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// frames reads the events of a stream until it ends or ctx does.
func frames(body io.Reader, each func(e wire.EventEnvelope) bool) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e wire.EventEnvelope
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		if !each(e) {
			return nil
		}
	}
}

// A stream shows the same events as the log, the stored ones first, and ends with the run.
func TestAttach(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	id := s.start(p, oneGate)
	q := p.question(id)
	resp, err := p.request(context.Background(), "GET", "/runs/"+id+"/attach?since_seq=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	var streamed []wire.EventEnvelope
	answered := false
	err = frames(resp.Body, func(e wire.EventEnvelope) bool {
		streamed = append(streamed, e)
		if e.Event == "run.blocked" && !answered {
			answered = true
			p.answer(id, q.ID, wire.AnswerOfOption("Y"))
		}
		return true
	})
	if err != io.EOF {
		t.Fatalf("the stream ended with %v", err)
	}
	log := p.log(id)
	end := slices.IndexFunc(log, func(e wire.EventEnvelope) bool { return wire.TerminalEvent(e.Event) })
	if diff := cmp.Diff(log[:end+1], streamed); diff != "" {
		t.Errorf("streamed and stored events differ: %s", diff)
	}
	// Of an ended run: the rest that is stored, and no waiting.
	for _, path := range []string{fmt.Sprintf("/attach?since_seq=%d", len(log)), "/attach"} {
		resp, err := p.request(context.Background(), "GET", "/runs/"+id+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := frames(resp.Body, func(e wire.EventEnvelope) bool { n++; return true }); err != io.EOF {
			t.Errorf("%s: %v", path, err)
		}
		resp.Body.Close()
		if want := strings.Count(path, "="); n != want {
			t.Errorf("%s: %d events, want %d", path, n, want)
		}
	}
	p.refuse(404, "Run not found.", "GET", "/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/attach", nil)
}

// The stream of all runs shows what happens from now on, with complete events, and can be narrowed to some runs.
func TestAttachAll(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	quiet := s.create(p, oneCommand)
	loud := s.create(p, oneCommand)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, query := range []string{"", "?run_id=" + loud} {
		resp, err := p.request(ctx, "GET", "/attach"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		id := loud
		if query == "" {
			id = s.create(p, oneCommand)
		} else {
			p.call(200, "PATCH", "/runs/"+quiet, `{"title":"Not shown"}`, nil)
		}
		p.call(200, "POST", "/runs/"+id+"/start", nil, nil)
		var seen []wire.EventEnvelope
		if err := frames(resp.Body, func(e wire.EventEnvelope) bool {
			if e.RunID == quiet {
				t.Errorf("an event of a run that was not asked for: %s", e.Event)
			}
			if e.RunID == id {
				seen = append(seen, e)
			}
			return !wire.TerminalEvent(e.Event)
		}); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		log := p.log(id)
		if diff := cmp.Diff(log[seen[0].Seq-1:][:len(seen)], seen); diff != "" {
			t.Errorf("streamed and stored events differ: %s", diff)
		}
	}
}

// Many answer at once: one is taken.
func TestAnsweredTogether(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	for range 5 {
		id := s.start(p, oneGate)
		q := p.question(id)
		const people = 8
		statuses := make(chan int, people)
		for range people {
			go func() {
				status, _, _ := p.try("POST", "/runs/"+id+"/questions/"+q.ID+"/answer", wire.AnswerOfOption("Y"))
				statuses <- status
			}()
		}
		count := map[int]int{}
		for range people {
			count[<-statuses]++
		}
		if count[http.StatusNoContent] != 1 || count[http.StatusConflict] != people-1 {
			t.Errorf("answers: %v", count)
		}
		p.ended(id)
	}
}

// Ended runs that are old are removed, whether a server lives or not; others stay.
func TestPrune(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	ended, waiting := s.start(p, oneCommand), s.create(p, oneCommand)
	p.ended(ended)
	var answer struct {
		DryRun bool `json:"dry_run"`
		Total  int  `json:"total_count"`
	}
	p.call(200, "POST", "/system/prune/runs", `{"older_than":"1h"}`, &answer)
	if !answer.DryRun || answer.Total != 0 {
		t.Errorf("%+v", answer)
	}
	p.call(200, "POST", "/system/prune/runs", `{}`, &answer)
	if !answer.DryRun || answer.Total != 1 {
		t.Errorf("%+v", answer)
	}
	p.refuse(400, "older_than: \"soon\" is not a duration…", "POST", "/system/prune/runs", `{"older_than":"soon"}`)
	ctx := context.Background()
	if r, err := Prune(ctx, s.cfg, time.Hour); err != nil || r.Runs != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := Prune(ctx, s.cfg, time.Nanosecond); err != nil || r.Runs != 1 || r.Bytes == 0 {
		t.Errorf("%+v %v", r, err)
	}
	p.refuse(404, "Run not found.", "GET", "/runs/"+ended, nil)
	p.run(waiting)
	again := s.start(p, oneCommand)
	p.ended(again)
	if err := Stop(ctx, s.cfg); err != nil {
		t.Fatal(err)
	}
	if r, err := Prune(ctx, s.cfg, time.Nanosecond); err != nil || r.Runs != 1 {
		t.Errorf("without a server: %+v %v", r, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.cfg.runsDir(), "*")); err != nil || len(left) != 0 {
		t.Errorf("directories left: %v %v", left, err)
	}
	p = s.connect()
	p.run(waiting)
	if _, err := Prune(ctx, s.cfg, 0); err == nil {
		t.Error("pruned everything")
	}
	// The retention of the settings is looked after from the start on.
	old := s.start(p, oneCommand)
	p.ended(old)
	if err := Stop(ctx, s.cfg); err != nil {
		t.Fatal(err)
	}
	s.settings("[runs]\nretention = \"1ms\"\n")
	p = s.connect()
	for status := 0; status != http.StatusNotFound; {
		var err error
		if status, _, err = p.try("GET", "/runs/"+old, nil); err != nil {
			t.Fatal(err)
		}
	}
	var list wire.List[wire.Run]
	p.call(http.StatusOK, "GET", "/runs?include_archived=true", nil, &list)
	if len(list.Data) != 1 {
		t.Errorf("%d runs left", len(list.Data))
	}
}
