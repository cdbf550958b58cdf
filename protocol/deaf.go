package protocol

import (
	"io"
	"time"
)

// deafInterval is how often a peer that reads no answers is looked at.
const deafInterval = 100 * time.Millisecond

// watchDeaf looks after a peer that reads no answers. Nothing is read from it either,
// so that the end of its input would not be met. Where it has closed its side all the
// same, it gets the grace of any peer to take what is there, and the input ends.
func (c *conn) watchDeaf() {
	ticker := time.NewTicker(deafInterval)
	defer ticker.Stop()
	last, since := c.out.progress(), time.Now()
	for c.out.stalled() {
		select {
		case <-ticker.C:
		case <-c.inputClosed:
			return
		case <-c.gone:
			return
		}
		if now := c.out.progress(); now != last || !c.stream.HungUp() {
			last, since = now, time.Now()
		} else if time.Since(since) >= c.opts.DrainGrace {
			c.opts.Logger.Warn("the client has closed its side and reads no answers")
			c.endInput(io.EOF)
			return
		}
	}
}
