package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"fabro-mcp/internal/workflow"
)

// errTimeout is the cause with which a deadline ends its context.
var errTimeout = errors.New("handler timed out")

// A deadline ends a stage whose node has a timeout. Its clock stands still while a person is asked something within the
// stage: that is not the stage's time. The nil deadline never ends anything.
type deadline struct {
	limit time.Duration
	clock Clock
	end   context.CancelCauseFunc
	outer *deadline
	done  chan struct{} // closed when the goroutine that waits has ended

	mu      sync.Mutex
	left    time.Duration
	since   time.Time
	holders int
	changed chan struct{} // has room for one: holders went from or to zero
	fired   bool
}

type deadlineKey struct{}

// limit puts the node's timeout on ctx. Commands and human gates see to their timeouts themselves.
func (s *stage) limit(ctx context.Context) (context.Context, *deadline) {
	kind := s.node.Handler()
	timeout, ok := s.node.Attrs.Duration("timeout")
	if !ok || timeout <= 0 || kind == workflow.HandlerCommand || kind == workflow.HandlerHuman {
		return ctx, nil
	}
	outer, _ := ctx.Value(deadlineKey{}).(*deadline)
	ctx, end := context.WithCancelCause(ctx)
	d := &deadline{
		limit: timeout, left: timeout, clock: s.r.clock, end: end, outer: outer, since: s.r.clock.Now(),
		done: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	go d.wait(ctx)
	return context.WithValue(ctx, deadlineKey{}, d), d
}

func (d *deadline) wait(ctx context.Context) {
	defer close(d.done)
	for {
		d.mu.Lock()
		left, held := d.left-d.clock.Now().Sub(d.since), d.holders > 0
		d.mu.Unlock()
		var fires <-chan time.Time
		stop := func() {}
		if !held {
			fires, stop = d.clock.Timer(left)
		}
		select {
		case <-fires:
			d.mu.Lock()
			d.fired = d.holders == 0
			fired := d.fired
			d.mu.Unlock()
			if fired {
				d.end(errTimeout)
				return
			}
		case <-d.changed:
			stop()
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// holdDeadlines stops the clocks of all stages that ctx belongs to until the returned function is called.
func holdDeadlines(ctx context.Context) (release func()) {
	innermost, _ := ctx.Value(deadlineKey{}).(*deadline)
	for d := innermost; d != nil; d = d.outer {
		d.hold(1)
	}
	return func() {
		for d := innermost; d != nil; d = d.outer {
			d.hold(-1)
		}
	}
}

func (d *deadline) hold(by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if d.holders == 0 {
		d.left -= now.Sub(d.since)
	}
	d.holders += by
	d.since = now
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *deadline) expired() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

func (d *deadline) stop() {
	if d != nil {
		d.end(nil)
		<-d.done
	}
}

// withTimeout ends the context with errTimeout when d has passed on the clock. The returned function must be called.
func (r *runner) withTimeout(ctx context.Context, d time.Duration) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.sleep(ctx, d) == nil {
			end(errTimeout)
		}
	}()
	return ctx, func() { end(nil); <-done }
}
