package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/embedded/store"
)

// keepAlive is how often a stream without events shows that it lives.
const keepAlive = 15 * time.Second

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	q, err := pageQuery(r)
	if err != nil {
		return err
	}
	return s.eventPage(w, r, id, q)
}

func (s *Server) stageEvents(w http.ResponseWriter, r *http.Request) error {
	id, stage, err := s.knownStage(r)
	if err != nil {
		return err
	}
	q, err := pageQuery(r)
	if err != nil {
		return err
	}
	q.Stage, q.Desc, q.Before = stage, false, 0
	return s.eventPage(w, r, id, q)
}

func pageQuery(r *http.Request) (q runs.PageQuery, err error) {
	limit, err := number(r, "limit", wire.DefaultEventLimit, 1, wire.MaxEventLimit)
	if err != nil {
		return q, err
	}
	q.Limit = int(limit)
	query := r.URL.Query()
	switch query.Get("order") {
	case "", "asc":
	case "desc":
		q.Desc = true
	default:
		return q, bad("order must be asc or desc, not %q.", query.Get("order"))
	}
	switch {
	case !q.Desc && query.Get("before_seq") != "":
		return q, bad("before_seq requires order=desc.")
	case q.Desc && query.Get("since_seq") != "":
		return q, bad("since_seq cannot be combined with order=desc; use before_seq instead.")
	}
	if q.Since, err = number(r, "since_seq", 1, 1, store.MaxSeq); err != nil {
		return q, err
	}
	q.Before, err = number(r, "before_seq", 0, 1, store.MaxSeq)
	return q, err
}

// eventPage writes a page without decoding the events in it.
func (s *Server) eventPage(w http.ResponseWriter, r *http.Request, id string, q runs.PageQuery) error {
	page, more, err := s.m.Events(r.Context(), id, q)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(`{"data":[`)
	for i, ev := range page {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(ev.JSON)
	}
	fmt.Fprintf(&b, `],"meta":{"has_more":%t}}`, more)
	return write(w, http.StatusOK, "application/json", b.Bytes())
}

// lifted are the properties that may be long, in the order in which one of them is lifted out of an event, with the kind it is shown as.
var lifted = []struct{ property, kind string }{
	{"text", "text"}, {"output", "tool_output"}, {"arguments", "tool_arguments"}, {"error", "error"}, {"details", "details"},
}

func (s *Server) eventDetail(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	limit, err := number(r, "max_content_length", 20000, 1, 200000)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return bad("Invalid event sequence number.")
	}
	page, _, err := s.m.Events(r.Context(), id, runs.PageQuery{Since: seq, Limit: 1})
	if err != nil {
		return err
	}
	if len(page) == 0 || page[0].Seq != seq {
		return &runs.Refusal{Status: http.StatusNotFound, Code: wire.CodeEventNotFound, Detail: "Event not found."}
	}
	var e wire.EventEnvelope
	var properties map[string]json.RawMessage
	if err := json.Unmarshal(page[0].JSON, &e); err != nil {
		return err
	}
	if err := json.Unmarshal(e.Properties, &properties); err != nil {
		return err
	}
	d := wire.EventDetail{MaxContentLength: int(limit), Redacted: bytes.Contains(e.Properties, []byte("[REDACTED]")),
		Event: wire.EventHead{Seq: e.Seq, ID: e.ID, TS: e.TS, RunID: e.RunID, Event: e.Event, Actor: e.Actor, SessionID: e.SessionID, NodeID: e.NodeID,
			NodeLabel: e.NodeLabel, StageID: e.StageID, ToolCallID: e.ToolCallID}}
	for _, l := range lifted {
		raw, present := properties[l.property]
		if !present || string(raw) == "null" {
			continue
		}
		value := string(raw)
		var text string
		if json.Unmarshal(raw, &text) == nil {
			value = text
		}
		value, d.Truncated = cut(value, int(limit))
		d.Content = &wire.EventContent{Kind: l.kind, Value: value}
		delete(properties, l.property)
		break
	}
	if d.Properties, err = json.Marshal(properties); err != nil {
		return err
	}
	return respond(w, http.StatusOK, d)
}

// cut shortens text to at most n bytes at the border of a character.
func cut(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}

// stream is a server-sent event stream. Its methods may be called from several goroutines.
type stream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

// openStream answers with the header of a stream and keeps the connection alive until end is called.
func openStream(w http.ResponseWriter) (s *stream, end func(), err error) {
	s = &stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	if err := s.flush(); err != nil {
		return nil, nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.write([]byte(":\n\n"))
				s.flush()
			}
		}
	}()
	return s, func() { close(stop); <-done }, nil
}

func (s *stream) send(event []byte) error {
	b := make([]byte, 0, len(event)+8)
	b = append(append(append(b, "data: "...), event...), '\n', '\n')
	return s.write(b)
}

func (s *stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	return s.err
}

func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}

func (s *Server) attachRun(w http.ResponseWriter, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	since, err := number(r, "since_seq", 0, 1, store.MaxSeq)
	if err != nil {
		return err
	}
	if _, err := s.m.Get(r.Context(), id); err != nil {
		return err
	}
	out, end, err := openStream(w)
	if err != nil {
		return nil
	}
	defer end()
	err = s.m.Follow(r.Context(), id, since, func(ev runs.Event) error { return out.send(ev.JSON) }, out.flush)
	if err != nil && r.Context().Err() == nil {
		s.log.Warn("a stream of events ended early", "run", id, "error", err)
		panic(http.ErrAbortHandler) // the reader must see that this is not the end
	}
	out.flush()
	return nil
}

func (s *Server) attachAll(w http.ResponseWriter, r *http.Request) error {
	var ids []string
	for _, list := range r.URL.Query()["run_id"] {
		for id := range strings.SplitSeq(list, ",") {
			if id = strings.TrimSpace(id); id != "" {
				ids = append(ids, id)
			}
		}
	}
	watcher := s.m.Watch(ids...)
	defer watcher.Close()
	out, end, err := openStream(w)
	if err != nil {
		return nil
	}
	defer end()
	for {
		select {
		case ev := <-watcher.Events:
			text := ev.JSON
			if ev.Partial {
				page, _, err := s.m.Events(r.Context(), ev.RunID, runs.PageQuery{Since: ev.Seq, Limit: 1})
				if err != nil || len(page) == 0 {
					continue // the run was deleted meanwhile
				}
				text = page[0].JSON
			}
			if out.send(text) != nil {
				return nil
			}
			if len(watcher.Events) == 0 && out.flush() != nil {
				return nil
			}
		case <-r.Context().Done():
			return nil
		}
	}
}
