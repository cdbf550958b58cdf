package tools

import (
	"context"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

const (
	// maxParallel bounds the requests that one call has under way.
	maxParallel = 8
	// followedPoll is how often a run is looked at although its event stream is
	// followed: a stream can be silent without being alive.
	followedPoll = time.Minute
	// reattachAfter is the wait before a broken event stream is tried again; until
	// then the run is polled.
	reattachAfter = 5 * time.Second
)

// follower keeps the last known state of some runs. Event streams wake it; where
// there is none it polls. One goroutine owns it; the readers of streams only mark
// runs and wake that goroutine.
type follower struct {
	client *fabroapi.Client
	runs   []*followed // each run once
	wake   chan struct{}
	now    func() time.Time

	wg   sync.WaitGroup // the readers of event streams
	stop context.CancelFunc
}

// followed is one run.
type followed struct {
	id        string
	run       *wire.Run // last known state; nil until the first look
	questions []wire.Question
	gone      bool // deleted meanwhile
	err       error
	told      bool      // the host knows of err
	looked    time.Time // of the last try
	answered  map[string]bool

	mu     sync.Mutex // protects what the reader of the stream writes
	marked bool       // something happened since the last look
	alive  bool       // the stream is being followed
	stage  string     // the stage that started last, "" when it has ended
}

// bareRun stands for a run of which only the id is known, which tells when it was
// created.
func bareRun(id string) *wire.Run {
	run := &wire.Run{ID: id}
	if parsed, err := ulid.ParseStrict(id); err == nil {
		run.Timestamps.CreatedAt = ulid.Time(parsed.Time())
	}
	return run
}

// newFollower follows runs of which a state is known already.
func newFollower(client *fabroapi.Client, runs []*wire.Run, now func() time.Time) *follower {
	f := &follower{client: client, wake: make(chan struct{}, 1), now: now}
	for _, run := range runs {
		f.runs = append(f.runs, &followed{id: run.ID, run: run, marked: true, answered: map[string]bool{}})
	}
	return f
}

// start begins to read the event streams of the runs that have not ended. close
// ends that and waits for the readers.
func (f *follower) start(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	for _, w := range f.runs {
		if w.ended() {
			continue
		}
		f.wg.Add(1)
		go func() {
			defer f.wg.Done()
			f.read(ctx, w)
		}()
	}
}

func (f *follower) close() {
	if f.stop != nil {
		f.stop()
	}
	f.wg.Wait()
}

// read follows the event stream of one run until it ends, and begins again when it
// breaks.
func (f *follower) read(ctx context.Context, w *followed) {
	for {
		err := f.attach(ctx, w)
		w.set(func() { w.alive, w.marked = false, true })
		f.poke()
		if err == nil || isRefusal(err) || ctx.Err() != nil {
			return // the run has ended, or this server has no stream for it
		}
		timer := time.NewTimer(reattachAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// attach follows the stream from the present last event on. The state is read once
// more when that event is known, so that nothing between the two is missed.
func (f *follower) attach(ctx context.Context, w *followed) error {
	next, err := f.client.NextSeq(ctx, w.id)
	if err != nil {
		return err
	}
	w.set(func() { w.alive, w.marked = true, true })
	f.poke()
	return f.client.Attach(ctx, w.id, next, func(event wire.EventEnvelope) error {
		if w.note(&event) {
			f.poke()
		}
		return nil
	})
}

// note takes what an event says; it reports whether the state must be read again.
func (w *followed) note(event *wire.EventEnvelope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	label := event.NodeLabel
	if label == "" {
		label = event.NodeID
	}
	switch event.Event {
	case wire.EventStageStarted:
		w.stage = label
		return true
	case wire.EventStageCompleted, wire.EventStageFailed:
		if w.stage == label {
			w.stage = ""
		}
		return false
	}
	switch wire.Category(event.Event) {
	case "run", "interview":
		w.marked = true
		return true
	}
	return false
}

func (w *followed) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// ended reports whether nothing more can happen to the run.
func (w *followed) ended() bool {
	return w.gone || w.run != nil && w.run.Lifecycle.Status.Terminal()
}

// look reads the state of the runs that may have changed: those marked by an
// event, and those not looked at for a poll interval. all looks at every run that
// has not ended. A failure keeps the last known state.
func (f *follower) look(ctx context.Context, poll time.Duration, all bool) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, w := range f.runs {
		if w.ended() {
			continue
		}
		due := all
		w.set(func() {
			interval := poll
			if w.alive {
				interval = max(poll, followedPoll)
			}
			due = due || w.marked || f.now().Sub(w.looked) >= interval
			w.marked = false
		})
		if !due {
			continue
		}
		group.Go(func() error {
			w.read(ctx, f.client)
			w.looked = f.now()
			return nil
		})
	}
	group.Wait() // the functions return no error
}

// lookAnew reads runs of which only the id is known. One that is gone is no error.
func (f *follower) lookAnew(ctx context.Context) error {
	f.look(ctx, 0, true)
	for _, w := range f.runs {
		if w.err != nil {
			return w.err
		}
	}
	return ctx.Err()
}

// read looks at one run, and at its questions when it waits for a person.
func (w *followed) read(ctx context.Context, client *fabroapi.Client) {
	run, err := client.GetRun(ctx, w.id)
	if isGone(err) {
		w.gone, w.questions, w.err = true, nil, nil
		return
	}
	if err != nil {
		w.fail(ctx, err)
		return
	}
	var questions []wire.Question
	if run.Lifecycle.Status.Kind == wire.StatusBlocked {
		if questions, err = client.Questions(ctx, w.id); err != nil && !isGone(err) {
			w.fail(ctx, err)
			return
		}
	}
	w.run, w.err, w.questions = run, nil, questions
}

// fail keeps the error and sees to it that the run is looked at again.
func (w *followed) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.err = err
	}
}

// open are the questions that nobody has answered yet, as far as this call knows.
func (w *followed) open() []wire.Question {
	var out []wire.Question
	for _, q := range w.questions {
		if !w.answered[q.ID] {
			out = append(out, q)
		}
	}
	return out
}

// answer keeps that this call has passed on an answer; the run is read again.
func (w *followed) answer(question string) {
	w.answered[question] = true
	w.set(func() { w.marked = true })
}

// goesOn reports whether a blocked run has no open question any more: it is about
// to leave that state.
func (w *followed) goesOn() bool {
	return w.run.Lifecycle.Status.Kind == wire.StatusBlocked && len(w.open()) == 0
}

// waitsForPerson reports whether only a person can move the run on.
func (w *followed) waitsForPerson() bool {
	switch w.run.Lifecycle.Status.Kind {
	case wire.StatusBlocked, wire.StatusPending, wire.StatusPaused, wire.StatusSubmitted:
		return true
	}
	return false
}

// currentStage is the stage that runs, as far as the events told.
func (w *followed) currentStage() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage
}

// nextLook is the time until a run must be polled.
func (f *follower) nextLook(poll time.Duration) time.Duration {
	next := followedPoll
	for _, w := range f.runs {
		if w.ended() {
			continue
		}
		interval := poll
		w.set(func() {
			if w.alive {
				interval = max(poll, followedPoll)
			}
		})
		next = min(next, interval-f.now().Sub(w.looked))
	}
	return max(next, 0)
}
