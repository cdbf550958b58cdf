package tools

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/internal/embedded/store"
)

// counter counts the requests of an API client by its log.
type counter struct {
	slog.Handler
	n atomic.Int64
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "fabro request" {
		c.n.Add(1)
	}
	return nil
}

// TestScale puts 10,000 runs and a run with 100,000 events on the embedded server:
// searches and the last page of events take a handful of requests.
func TestScale(t *testing.T) {
	const runs, events = scaleRuns, scaleEvents
	site := newSite(t)
	requests := &counter{Handler: slog.DiscardHandler}
	site.log = slog.New(requests)
	cfg := site.config(t)

	stop := site.serve(t)
	first := open(t, cfg, rev2607, nil).create(`{"workflow":"gate.fabro","start":false,"labels":{"kind":"common"}}`)
	stop()
	ids := multiply(t, site, first, runs, events)
	t.Cleanup(site.serve(t))

	s := open(t, cfg, rev2607, nil)
	call := func(what, tool, arguments string, most int64, into any) string {
		t.Helper()
		before := requests.n.Load()
		began := time.Now()
		r := s.call(tool, arguments)
		r.structured(into)
		n := requests.n.Load() - before
		t.Logf("%s: %d request(s), %v", what, n, time.Since(began).Round(time.Millisecond))
		if n > most {
			t.Errorf("%s: %d requests", what, n)
		}
		return r.text()
	}
	var found searchResult
	call("first page", nameSearch, `{}`, 1, &found)
	if len(found.Runs) != 20 || found.Runs[0].RunID != ids[runs-1] {
		t.Errorf("%d runs, first %s", len(found.Runs), found.Runs[0].RunID)
	}
	call("second page", nameSearch, `{"after":"`+*found.NextCursor+`"}`, 1, &found)
	call("by status and label", nameSearch, `{"status":["submitted"],"labels":{"kind":"common"},"first":100}`, 2, &found)
	if len(found.Runs) != 100 {
		t.Errorf("%d runs", len(found.Runs))
	}
	found = searchResult{}
	call("in an old window", nameSearch, `{"created_before":"`+created(ids[100])+`","created_after":"`+created(ids[51])+`","first":100}`, 12, &found)
	// The bounds are whole seconds, the runs a fraction later: 51 to 99.
	if len(found.Runs) != 49 || found.NextCursor != nil {
		t.Errorf("%d runs, cursor %v", len(found.Runs), found.NextCursor)
	}
	found = searchResult{}
	call("a cursor from elsewhere", nameSearch, `{"after":"`+ids[runs/2]+`","first":1}`, 12, &found)
	if len(found.Runs) != 1 || found.Runs[0].RunID != ids[runs/2-1] {
		t.Errorf("%v", found.ids())
	}

	var log eventsResult
	call("last page of events", nameEvents, `{"action":"list","direction":"desc","first":200,"run_id":"`+first+`"}`, 3, &log)
	if len(log.Events) != 200 || log.Events[0].Sequence != events {
		t.Errorf("%d events, first %d", len(log.Events), log.Events[0].Sequence)
	}
	call("last page of one type", nameEvents, `{"action":"list","direction":"desc","event_types":["run.created"],"after":50,"run_id":"`+first+`"}`, 3, &log)
	if len(log.Events) != 1 {
		t.Errorf("%d events", len(log.Events))
	}
}

func created(id string) string {
	return ulid.Time(ulid.MustParse(id).Time()).UTC().Format(time.RFC3339)
}

// multiply copies a run in the store until there are many, one second apart, and
// gives the original many events. It returns all ids, oldest first; the original is
// the newest.
func multiply(t *testing.T, site *site, id string, runs, events int) []string {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(site.server.StorageDir, "embedded", "fabro.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	row, err := db.Run(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	records, err := db.Events(ctx, row.Num, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	at := ulid.Time(ulid.MustParse(id).Time())
	for i := range runs - 1 {
		copied := *row
		copied.Created = at.Add(-time.Duration(runs-i) * time.Second)
		copied.Updated = copied.Created
		copied.ID = ulid.MustNew(ulid.Timestamp(copied.Created), strings.NewReader(fmt.Sprintf("%010d", i))).String()
		copied.Doc = rewritten(row.Doc, row.ID, copied.ID, row.Created, copied.Created)
		own := make([]store.Record, len(records))
		for j, r := range records {
			r.Body = rewritten(r.Body, row.ID, copied.ID, row.Created, copied.Created)
			own[j] = r
		}
		if err := db.Create(&copied, own); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, copied.ID)
	}
	last := records[len(records)-1]
	for at := last.Seq + 1; at <= int64(events); {
		var batch []store.Record
		for ; at <= int64(events) && len(batch) < 1000; at++ {
			body := fmt.Appendf(nil, `{"seq":%d,"id":"e%d","ts":%q,"run_id":%q,"event":"run.notice","properties":{"level":"info","message":"event %d"}}`,
				at, at, row.Created.Add(time.Duration(at)*time.Millisecond).UTC().Format(time.RFC3339Nano), row.ID, at)
			batch = append(batch, store.Record{Seq: at, Name: "run.notice", Body: body})
		}
		if err := db.Append(row.Num, batch, &store.Row{Num: row.Num, Updated: row.Updated}); err != nil {
			t.Fatal(err)
		}
	}
	return append(ids, row.ID)
}

func rewritten(text []byte, oldID, newID string, oldTime, newTime time.Time) []byte {
	text = bytes.ReplaceAll(text, []byte(oldID), []byte(newID))
	// The second is enough: the fraction that follows it stays.
	const second = "2006-01-02T15:04:05"
	return bytes.ReplaceAll(text, []byte(oldTime.UTC().Format(second)), []byte(newTime.UTC().Format(second)))
}
