package fabroapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// stopError carries what a callback returned out of the machinery that retries.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// ErrStreamEnded is returned by AttachAll when the server ended the stream.
// Events may have been missed.
var ErrStreamEnded = errors.New("the event stream ended")

// attachFailures is how many connections in a row may bring no event before
// Attach gives up.
const attachFailures = 5

// maxIdleReattach bounds the wait between two connections to a run that is not
// active, whose stream the server ends at once.
const maxIdleReattach = 15 * time.Second

// NextSeq is the sequence number that the next event of a run will have.
func (c *Client) NextSeq(ctx context.Context, id string) (int64, error) {
	page, err := c.Events(ctx, id, EventsOptions{Desc: true, Limit: 1})
	if err != nil || len(page.Data) == 0 {
		return 1, err
	}
	return page.Data[0].Seq + 1, nil
}

// Attach hands every event of a run to each, in order and without gaps, from
// sequence number since on (inclusive), until the run has ended. Since 0 or less
// means only events that follow the present last one. A broken connection is
// resumed after the last event seen; a run that has not started is waited for.
//
// Attach returns nil when the run has ended, what each returned, or why it gave
// up. Events that a server writes after the end of a run (of its sandbox) are
// not delivered.
func (c *Client) Attach(ctx context.Context, id string, since int64, each func(wire.EventEnvelope) error) error {
	if err := needID("run id", id); err != nil {
		return err
	}
	next := since
	if next <= 0 {
		var err error
		if next, err = c.NextSeq(ctx, id); err != nil {
			return err
		}
	}
	failures, idle, ended := 0, 0, false
	for {
		before := next
		err := c.stream(ctx, runPath(id, "attach")+"?since_seq="+strconv.FormatInt(next, 10), nil, func(event wire.EventEnvelope) error {
			if event.Seq < next {
				return nil
			}
			next = event.Seq + 1
			ended = wire.TerminalEvent(event.Event)
			return each(event)
		})
		var stop *stopError
		if errors.As(err, &stop) {
			return stop.err
		}
		if ctx.Err() != nil {
			return err
		}
		if next > before {
			failures, idle = 0, 0
		}
		var run *wire.Run
		if err == nil {
			// An orderly end: the run has ended, or it is not active (any more, or yet).
			run, err = c.GetRun(ctx, id)
		}
		if err != nil {
			failures++
			if failures >= attachFailures || !resumable(err) {
				return err
			}
			if !sleep(ctx, c.pause(err, failures)) {
				return ctx.Err()
			}
			continue
		}
		switch terminal := run.Lifecycle.Status.Terminal(); {
		case terminal && (ended || next == before):
			return nil
		case terminal || ended:
			// It ended between the stream and the question, or was resumed since.
			continue
		}
		idle++
		if !sleep(ctx, min(c.opts.Backoff(idle), maxIdleReattach)) {
			return ctx.Err()
		}
	}
}

// resumable reports whether attaching again may help.
func resumable(err error) bool {
	var api *APIError
	if errors.As(err, &api) {
		return api.Status == http.StatusTooManyRequests || api.Status >= 500
	}
	return errors.Is(err, ErrUnreachable)
}

// AttachAll hands the events of the given runs, or of all runs, to each as they
// happen. There is no replay: when the stream breaks, events are lost, so
// AttachAll does not resume but returns (never nil). Opened, where not nil, is
// called when the stream is there: what the caller reads from then on misses
// nothing.
func (c *Client) AttachAll(ctx context.Context, ids []string, opened func(), each func(wire.EventEnvelope) error) error {
	path := "/attach"
	if len(ids) > 0 {
		path += "?run_id=" + url.QueryEscape(strings.Join(ids, ","))
	}
	err := c.stream(ctx, path, opened, each)
	var stop *stopError
	switch {
	case err == nil:
		return ErrStreamEnded
	case errors.As(err, &stop):
		return stop.err
	}
	return err
}

// stream reads one connection of server-sent events to its end.
func (c *Client) stream(ctx context.Context, path string, opened func(), each func(wire.EventEnvelope) error) error {
	r := request{method: http.MethodGet, path: wire.APIPrefix + path, accept: "text/event-stream", stream: true}
	return c.attempts(ctx, r, func(resp *http.Response) error {
		if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(strings.ToLower(kind), "text/event-stream") {
			return c.notJSON(r, resp, fmt.Errorf("it is no event stream but %q", cleanText(kind, 100)))
		}
		if opened != nil {
			opened()
		}
		err := readEvents(resp.Body, int(c.opts.MaxBody), func(data []byte) error {
			var event wire.EventEnvelope
			if err := json.Unmarshal(data, &event); err != nil {
				return c.notJSON(r, resp, err)
			}
			if event.Event == "" {
				return c.notJSON(r, resp, errors.New("it is no event: it has no name"))
			}
			if err := each(event); err != nil {
				return &stopError{err}
			}
			return nil
		})
		return err
	})
}

// readEvents calls data with the text of each "data:" line. In Fabro's streams
// each such line is one JSON document; comments, "event:" and "id:" lines carry
// nothing. A last line that the stream does not finish is dropped: it is half of
// a document.
func readEvents(body io.Reader, max int, data func([]byte) error) error {
	reader := bufio.NewReaderSize(body, 32<<10)
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(line)+len(part) > max {
			return errTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			line = append(line, part...)
			continue
		}
		whole := part
		if len(line) > 0 {
			line = append(line, part...)
			whole = line
		}
		text, ok := bytes.CutPrefix(bytes.TrimRight(whole, "\r\n"), []byte("data:"))
		if ok {
			if text = bytes.TrimSpace(text); len(text) > 0 {
				if err := data(text); err != nil {
					return err
				}
			}
		}
		line = line[:0]
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}
