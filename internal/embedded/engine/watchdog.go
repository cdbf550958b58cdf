package engine

import (
	"context"
	"fmt"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// defaultStall is the stall_timeout of a graph that sets none.
const defaultStall = 1800 * time.Second

// watch starts the stall watchdog of a run: without any event for the graph's stall_timeout the run is ended, however
// busy its command may be. Only the run's own walk has one. The returned function waits for its end.
func (w *walk) watch(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	limit, ok := w.graph.Attrs.Duration("stall_timeout")
	if !ok {
		limit = defaultStall
	}
	if limit <= 0 || w.scope != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.r.guard(ctx, limit, end)
	}()
	return func() { cancel(); <-done }
}

// guard waits for the silence that ends the run. It counts anew while a person is asked or the run is paused.
func (r *runner) guard(ctx context.Context, limit time.Duration, end context.CancelCauseFunc) {
	left := limit
	for {
		if r.sleep(ctx, left) != nil {
			return
		}
		now := r.clock.Now()
		if r.asking() || r.spec.Control.paused() {
			r.lastEvent.Store(now.UnixNano())
		}
		idle := time.Duration(now.UnixNano() - r.lastEvent.Load())
		if left = limit - idle; left > 0 {
			continue
		}
		seconds := int64(idle / time.Second)
		node, _ := r.current.Load().(string)
		err := r.append(ctx, Event{
			Name: "watchdog.timeout", NodeID: node, Actor: wire.System(wire.SystemWatchdog),
			Properties: struct {
				Idle int64 `json:"idle_seconds"`
			}{seconds},
		})
		if err == nil {
			err = fatal(fmt.Sprintf("stall watchdog: node %q had no activity for %ds", node, seconds))
		}
		end(err)
		return
	}
}
