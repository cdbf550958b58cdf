package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/plain"
)

// maxEventPages bounds the pages of 1,000 events that one call reads; a filter that
// matches little then returns a cursor to go on from.
const maxEventPages = 25

type eventRow struct {
	EventID   string `json:"event_id"`
	Sequence  int64  `json:"sequence"`
	Event     any    `json:"event"` // the envelope, or the beginning of its JSON text
	Truncated bool   `json:"truncated"`
}

type eventsResult struct {
	RunID      string     `json:"run_id"`
	Action     string     `json:"action"`
	Events     []eventRow `json:"events"`
	NextCursor *int64     `json:"next_cursor"`
}

const eventsSchema = `{"type":"object","properties":{"run_id":{"type":"string"},"action":{"type":"string"},` +
	`"events":{"type":"array","items":{"type":"object","properties":{"event_id":{"type":"string"},"sequence":{"type":"integer","minimum":1},` +
	`"event":{"type":["object","string"],"description":"The event; a string holding the beginning of its JSON when truncated"},"truncated":{"type":"boolean"}},` +
	`"required":["event_id","sequence","event","truncated"]}},` +
	`"next_cursor":{"type":["integer","null"],"description":"Pass as after for the next page; null at the end"}},` +
	`"required":["run_id","action","events","next_cursor"]}`

func (p *eventsParams) run(ctx context.Context, r *request) (*reply, error) {
	client, run, err := r.resolveOne(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	s := &eventScan{p: p, desc: p.Direction == "desc", want: p.pageSize(), skip: int(p.Offset.Value)}
	if err := s.read(ctx, client, run.ID); err != nil {
		return nil, err
	}
	out := eventsResult{RunID: run.ID, Action: p.Action, Events: []eventRow{}, NextCursor: s.next}
	for i := range s.found {
		row, err := p.row(&s.found[i])
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, row)
	}
	return &reply{text: p.text(run, s), structured: out, links: linksTo(run, "events")}, nil
}

// eventScan reads events in the wanted direction and stops as soon as it knows the
// page and whether more follows.
type eventScan struct {
	p       *eventsParams
	desc    bool
	want    int
	skip    int
	found   []wire.EventEnvelope
	next    *int64
	ids     map[string]bool // still to be found; nil without event_ids
	partial bool            // maxEventPages was reached
	end     int64           // sequence number after the last event, when the end was seen
}

func (s *eventScan) read(ctx context.Context, client *fabroapi.Client, id string) error {
	if s.want == 0 {
		return nil
	}
	if s.p.EventIDs.Set {
		s.ids = map[string]bool{}
		for _, wanted := range s.p.EventIDs.Value {
			s.ids[wanted] = true
		}
	}
	options := fabroapi.EventsOptions{Desc: s.desc, Limit: s.pageLimit()}
	if s.p.After.Value > 0 {
		if s.desc {
			options.BeforeSeq = s.p.After.Value
		} else {
			options.SinceSeq = s.p.After.Value
		}
	}
	for range maxEventPages {
		page, err := client.Events(ctx, id, options)
		if err != nil {
			return err
		}
		for i := range page.Data {
			if s.take(&page.Data[i]) {
				return nil
			}
		}
		if len(page.Data) == 0 {
			return nil
		}
		last := page.Data[len(page.Data)-1].Seq
		if !page.Meta.HasMore {
			if !s.desc {
				s.end = last + 1
			}
			return nil
		}
		if s.desc {
			if options.BeforeSeq = last; last <= 1 {
				return nil
			}
		} else {
			options.SinceSeq = last + 1
		}
	}
	s.partial = true
	cursor := options.SinceSeq
	if s.desc {
		cursor = options.BeforeSeq
	}
	s.next = &cursor
	return nil
}

// pageLimit asks for no more than needed where every event counts, one over to
// learn whether more follows.
func (s *eventScan) pageLimit() int {
	if s.filtered() {
		return wire.MaxEventLimit
	}
	return min(s.want+s.skip+1, wire.MaxEventLimit)
}

func (s *eventScan) filtered() bool {
	p := s.p
	return p.EventIDs.Set || p.EventTypes.Set || p.Categories.Set || p.CreatedAfter.Set || p.CreatedBefore.Set || p.Action == "search"
}

// take looks at one event; it reports whether the scan is over.
func (s *eventScan) take(e *wire.EventEnvelope) bool {
	// Events are stored in order; clockSlack allows for clocks that were set.
	if after := s.p.CreatedAfter; s.desc && after.Set && e.TS.Before(after.Value.Add(-clockSlack)) {
		return true
	}
	if before := s.p.CreatedBefore; !s.desc && before.Set && e.TS.After(before.Value.Add(clockSlack)) {
		return true
	}
	if !s.matches(e) {
		return false
	}
	if s.skip > 0 {
		s.skip--
		return false
	}
	if len(s.found) == s.want {
		cursor := s.found[len(s.found)-1].Seq
		if !s.desc {
			cursor++
		}
		s.next = &cursor
		return true
	}
	s.found = append(s.found, *e)
	if s.ids != nil {
		delete(s.ids, e.ID)
		return len(s.ids) == 0
	}
	return false
}

func (s *eventScan) matches(e *wire.EventEnvelope) bool {
	p := s.p
	switch {
	case p.EventIDs.Set && !slices.Contains(p.EventIDs.Value, e.ID):
		return false
	case p.EventTypes.Set && !slices.Contains(p.EventTypes.Value, e.Event):
		return false
	case p.Categories.Set && !slices.Contains(p.Categories.Value, wire.Category(e.Event)):
		return false
	case p.CreatedAfter.Set && e.TS.Before(p.CreatedAfter.Value), p.CreatedBefore.Set && e.TS.After(p.CreatedBefore.Value):
		return false
	}
	if p.Action != "search" {
		return true
	}
	text, err := envelopeText(e)
	return err == nil && strings.Contains(text, p.Query)
}

// envelopeText is the compact JSON of an event.
func envelopeText(e *wire.EventEnvelope) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return "", fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// row is an event in the result, cut to max_content_length bytes.
func (p *eventsParams) row(e *wire.EventEnvelope) (eventRow, error) {
	row := eventRow{EventID: e.ID, Sequence: e.Seq}
	text, err := envelopeText(e)
	if err != nil {
		return row, err
	}
	limit := int(p.MaxContent.Value)
	if len(text) <= limit {
		row.Event = json.RawMessage(text)
		return row, nil
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	row.Event, row.Truncated = text[:limit], true
	return row, nil
}

// text lists the events, a line each, as text of the run.
func (p *eventsParams) text(run *wire.Run, s *eventScan) string {
	page := &plain.Page{Rest: "Ask for a smaller page (first), or for single events with action details and event_ids."}
	order := "oldest first"
	if s.desc {
		order = "newest first"
	}
	page.Line("%s (%s): %s, %s.", run.ID, run.Lifecycle.Status, plural.Count(len(s.found), "event"), order)
	var b strings.Builder
	for i := range s.found {
		b.WriteString(eventLine(&s.found[i], p.Action == "details"))
		b.WriteByte('\n')
	}
	page.Quote("Events", b.String())
	switch {
	case s.partial:
		page.Line(`Only %d events were looked at. Go on with "after":%d.`, maxEventPages*wire.MaxEventLimit, *s.next)
	case s.next != nil:
		page.Line(`More follow: the same call with "after":%d.`, *s.next)
	case s.end > 0 && !run.Lifecycle.Status.Terminal():
		page.Line(`That is all so far; what happens later: "after":%d.`, s.end)
	}
	if len(s.ids) > 0 {
		missing := make([]string, 0, len(s.ids))
		for id := range s.ids {
			missing = append(missing, id)
		}
		slices.Sort(missing)
		page.Line("Not found: %s", plain.Clip(strings.Join(missing, ", "), 1000))
	}
	return page.String()
}

// eventLine shows an event in a line; whole adds all of its properties.
func eventLine(e *wire.EventEnvelope, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s %s", e.Seq, e.TS.UTC().Format(time.RFC3339), plain.Line(e.Event, 80))
	if e.StageID != "" {
		b.WriteString(" " + plain.Line(e.StageID, 80))
	} else if e.NodeID != "" {
		b.WriteString(" " + plain.Line(e.NodeID, 80))
	}
	most := 200
	if whole {
		fmt.Fprintf(&b, " (id %s)", e.ID)
		most = 8000
	}
	if properties := string(e.Properties); properties != "{}" && properties != "" {
		b.WriteString(" " + plain.Line(properties, most))
	}
	return b.String()
}
