package tools

import (
	"context"
	"strings"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
)

const (
	// watchPoll is how often a subscribed resource is looked at where the server's
	// event stream cannot be followed.
	watchPoll = 10 * time.Second
	// settle collects the events of one moment into one notification.
	settle = 200 * time.Millisecond
)

// WatchResource follows what a subscribed resource shows and announces changes
// until stop is called. Only runs and the list of runs change by themselves; other
// resources may be subscribed to and stay silent.
func (r *resources) WatchResource(ctx context.Context, uri string) (stop func(), err error) {
	a, ok := parseURI(uri)
	if !ok {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	switch a.kind {
	case "server", "workflows", "workflow":
		return func() {}, nil
	}
	client, err := r.host.client(ctx)
	if err != nil {
		return nil, r.host.readError(uri, err)
	}
	w := &watch{client: client, changed: make(chan struct{}, 1), relevant: relevantEvents(a)}
	if err := w.begin(ctx, a.id); err != nil {
		return nil, r.host.readError(uri, err)
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.announce(watching, func() { r.host.server.ResourceUpdated(uri) })
	}()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		w.follow(watching)
	}()
	return func() {
		cancel()
		<-followed
		<-done
	}, nil
}

// relevantEvents says which events change a resource.
func relevantEvents(a address) func(event string) bool {
	categories := map[string]bool{}
	switch a.kind {
	case "events", "state":
		return func(string) bool { return true }
	case "run", "runs":
		categories = map[string]bool{"run": true, "interview": true, "pull_request": true}
	case "questions":
		categories = map[string]bool{"interview": true}
	case "log":
		categories = map[string]bool{"stage": true, "command": true}
	case "artifacts":
		categories = map[string]bool{"artifact": true}
	}
	return func(event string) bool { return categories[wire.Category(event)] || wire.TerminalEvent(event) }
}

// watch follows one run, or all.
type watch struct {
	client   *fabroapi.Client
	runID    string // "" is all runs
	changed  chan struct{}
	relevant func(event string) bool

	next int64  // of one run: the sequence number of the first event not yet seen
	last string // the fingerprint of what was seen
}

// begin reads where the run that a selector means, or all runs, stand. Whatever
// happens from then on is announced, however long it takes until the event stream
// is open.
func (w *watch) begin(ctx context.Context, selector string) (err error) {
	if selector == "" {
		w.last, err = w.fingerprint(ctx)
		return err
	}
	run, err := w.client.ResolveRun(ctx, selector)
	if err != nil {
		return err
	}
	w.runID, w.last = run.ID, runMark(run)
	w.next, err = w.client.NextSeq(ctx, run.ID)
	return err
}

func (w *watch) mark() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// announce turns marks into notifications, several of one moment into one.
func (w *watch) announce(ctx context.Context, notify func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		timer := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		select {
		case <-w.changed:
		default:
		}
		notify()
	}
}

// follow reads the event stream; while there is none it compares what can be read.
func (w *watch) follow(ctx context.Context) {
	for {
		w.stream(ctx)
		timer := time.NewTimer(watchPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		w.compare(ctx)
	}
}

// stream follows the event stream until it ends, however it does. That of a run
// goes on where the one before ended. That of all runs begins with the present, so
// what happened before it was open is compared.
func (w *watch) stream(ctx context.Context) {
	each := func(e wire.EventEnvelope) error {
		if w.runID != "" {
			w.next = e.Seq + 1
		}
		if w.relevant(e.Event) {
			w.mark()
		}
		return nil
	}
	if w.runID == "" {
		w.client.AttachAll(ctx, nil, func() { w.compare(ctx) }, each)
		return
	}
	w.client.Attach(ctx, w.runID, w.next, each)
}

// compare marks a change that no event told. What cannot be read is no change.
func (w *watch) compare(ctx context.Context) {
	if now, err := w.fingerprint(ctx); err == nil && now != w.last {
		w.last = now
		w.mark()
	}
}

// fingerprint is something that changes when the resource does, as far as one
// cheap request tells.
func (w *watch) fingerprint(ctx context.Context) (string, error) {
	if w.runID != "" {
		run, err := w.client.GetRun(ctx, w.runID)
		if err != nil {
			return "", err
		}
		return runMark(run), nil
	}
	page, err := w.client.ListRuns(ctx, fabroapi.ListRunsOptions{Limit: recentRuns})
	if err != nil {
		return "", err
	}
	var marks strings.Builder
	for i := range page.Data {
		marks.WriteString(runMark(&page.Data[i]))
	}
	return marks.String(), nil
}

func runMark(run *wire.Run) string {
	s := run.ID + run.Lifecycle.Status.String()
	if run.Lifecycle.Archived {
		s += "archived"
	}
	if at := run.Timestamps.LastEventAt; at != nil {
		s += at.String()
	}
	return s
}
