package protocol

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of one request. Most handlers never ask it for
// anything, so that what makes it a context of the standard library is made when
// somebody does.
type requestContext struct {
	parent context.Context // nil: the request was not taken

	mu     sync.Mutex // protects the fields below
	made   context.Context
	cancel context.CancelCauseFunc
	ended  bool
	cause  error
}

// end cancels the context. The first cause counts.
func (c *requestContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.cause = true, cause
	if c.cancel != nil {
		c.cancel(cause)
	}
}

func (c *requestContext) standard() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made, c.cancel = context.WithCancelCause(c.parent)
		if c.ended {
			c.cancel(c.cause)
		}
	}
	return c.made
}

// The methods of context.Context.

func (c *requestContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }
func (c *requestContext) Done() <-chan struct{}       { return c.standard().Done() }
func (c *requestContext) Err() error                  { return c.standard().Err() }
func (c *requestContext) Value(key any) any           { return c.standard().Value(key) }
