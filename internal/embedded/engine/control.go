package engine

import (
	"context"
	"sync"
)

// A Control holds a run back. Pausing takes effect between two nodes or attempts; a command that runs is not suspended.
// Safe for concurrent use.
type Control struct {
	mu       sync.Mutex
	gate     chan struct{} // nil: go on; closed when the pause ends
	recorded bool          // run.paused has been appended by somebody else
}

// NewControl returns a control that lets the run go on.
func NewControl() *Control { return &Control{} }

// Pause asks the run to hold at the next boundary. The engine appends run.paused there.
func (c *Control) Pause() { c.pause(false) }

// PausedAlready is Pause for a run whose run.paused is in the journal already, as for a run that waits for a person.
func (c *Control) PausedAlready() { c.pause(true) }

func (c *Control) pause(recorded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate == nil {
		c.gate = make(chan struct{})
		c.recorded = recorded
	}
}

// Unpause lets the run go on. The caller appends run.unpaused.
func (c *Control) Unpause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate != nil {
		close(c.gate)
		c.gate = nil
	}
}

func (c *Control) paused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate != nil
}

// hold waits while the run is paused, and calls paused first if the pause is not on record yet.
func (c *Control) hold(ctx context.Context, paused func() error) error {
	for {
		c.mu.Lock()
		gate, recorded := c.gate, c.recorded
		c.recorded = true
		c.mu.Unlock()
		if gate == nil {
			return nil
		}
		if !recorded {
			if err := paused(); err != nil {
				return err
			}
		}
		select {
		case <-gate:
		case <-ctx.Done():
			return errAborted
		}
	}
}
