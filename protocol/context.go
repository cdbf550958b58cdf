package protocol

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of one request. Most handlers never ask it for
// anything: what makes it a context of the standard library is made when somebody
// does.
type requestContext struct {
	conn *conn // whose context is the parent; nil: the request was not taken

	mu    sync.Mutex // protects the fields below
	made  *madeContext
	ended bool
}

type madeContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// end cancels the context. The first cause counts.
func (c *requestContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if c.made == nil && cause != nil {
		c.makeLocked()
	}
	if c.made != nil {
		c.made.cancel(cause)
	}
}

func (c *requestContext) standard() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.makeLocked()
		if c.ended {
			c.made.cancel(nil)
		}
	}
	return c.made
}

func (c *requestContext) makeLocked() {
	c.made = new(madeContext)
	c.made.Context, c.made.cancel = context.WithCancelCause(c.conn.ctx)
}

// The methods of context.Context.

func (c *requestContext) Deadline() (time.Time, bool) { return c.conn.ctx.Deadline() }
func (c *requestContext) Done() <-chan struct{}       { return c.standard().Done() }
func (c *requestContext) Err() error                  { return c.standard().Err() }
func (c *requestContext) Value(key any) any           { return c.standard().Value(key) }
