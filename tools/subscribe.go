package tools

import (
	"context"
	"errors"
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
	id := ""
	if a.kind != "runs" {
		run, err := client.ResolveRun(ctx, a.id)
		if err != nil {
			return nil, r.host.readError(uri, err)
		}
		id = run.ID
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &watch{client: client, runID: id, changed: make(chan struct{}, 1), relevant: relevantEvents(a)}
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

// follow reads the event stream; while there is none it compares what lists show.
func (w *watch) follow(ctx context.Context) {
	last := w.fingerprint(ctx)
	for ctx.Err() == nil {
		each := func(e wire.EventEnvelope) error {
			if w.relevant(e.Event) {
				w.mark()
			}
			return nil
		}
		var err error
		if w.runID == "" {
			err = w.client.AttachAll(ctx, nil, each)
		} else {
			err = w.client.Attach(ctx, w.runID, 0, each)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(watchPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if now := w.fingerprint(ctx); now != last {
			last = now
			w.mark()
		}
	}
}

// fingerprint is something that changes when the resource does, as far as one
// cheap request tells.
func (w *watch) fingerprint(ctx context.Context) string {
	if w.runID == "" {
		page, err := w.client.ListRuns(ctx, fabroapi.ListRunsOptions{Limit: recentRuns})
		if err != nil {
			return ""
		}
		s := ""
		for i := range page.Data {
			s += runMark(&page.Data[i])
		}
		return s
	}
	run, err := w.client.GetRun(ctx, w.runID)
	if err != nil {
		return ""
	}
	return runMark(run)
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
