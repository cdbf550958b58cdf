package protocol

import (
	"sync"
	"time"

	"fabro-mcp/transport"
)

// maxPending is how many bytes may wait while a write is under way; whoever has
// more to say waits too. With a host that reads nothing this, and the number of
// handlers, bound what piles up.
const maxPending = 1 << 20

// output writes lines, one write at a time. Whoever comes while nobody writes
// writes its own lines and then what has gathered meanwhile: there is no goroutine
// to hand over to, and replies that come together leave together.
//
// It also guards the end of each request: what is sent for a closed request is
// dropped, so nothing can follow a reply or a cancellation.
type output struct {
	stream *transport.LineStream
	failed func() // called once, when a write has failed

	mu      sync.Mutex // protects the fields below, and request.closed
	space   sync.Cond  // signalled when pending shrinks and when writing ends
	pending []byte
	spare   []byte
	writing bool
	err     error
}

func newOutput(stream *transport.LineStream, failed func()) *output {
	o := &output{stream: stream, failed: failed}
	o.space.L = &o.mu
	return o
}

// send writes whole lines. For a request that is closed they are dropped and the
// answer is false; last closes it. r may be nil. The lines are the caller's again
// when send returns.
func (o *output) send(r *request, lines []byte, last bool) bool {
	o.mu.Lock()
	for len(o.pending) >= maxPending && o.err == nil {
		o.space.Wait()
	}
	if r != nil {
		if r.closed {
			o.mu.Unlock()
			return false
		}
		r.closed = last
	}
	if o.err != nil || len(lines) == 0 {
		o.mu.Unlock()
		return o.err == nil
	}
	if o.writing {
		o.pending = append(o.pending, lines...)
		o.mu.Unlock()
		return true
	}
	o.writing = true
	o.mu.Unlock()
	o.write(lines)
	return true
}

// join adds whole lines to what is waiting for the write that is under way; false,
// and nothing done, where no write is, or too much waits already.
func (o *output) join(lines []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing || len(o.pending) >= maxPending {
		return false
	}
	o.pending = append(o.pending, lines...)
	return true
}

// close marks a request as closed without a word; false if it was closed already.
func (o *output) close(r *request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.closed {
		return false
	}
	r.closed = true
	return true
}

// settle waits, for at most d, until everything sent so far is written.
func (o *output) settle(d time.Duration) {
	late := false
	timer := time.AfterFunc(d, func() {
		o.mu.Lock()
		late = true
		o.mu.Unlock()
		o.space.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && o.err == nil && !late {
		o.space.Wait()
	}
}

// write is entered by the one that set writing.
func (o *output) write(lines []byte) {
	err := o.stream.WriteLines(lines)
	o.mu.Lock()
	for err == nil && len(o.pending) > 0 {
		batch := o.pending
		o.pending = o.spare[:0]
		o.spare = nil
		o.space.Broadcast()
		o.mu.Unlock()
		err = o.stream.WriteLines(batch)
		o.mu.Lock()
		if cap(batch) <= maxPending {
			o.spare = batch
		}
	}
	o.writing = false
	o.space.Broadcast()
	if err != nil && o.err == nil {
		o.err = err
		o.pending = nil
		o.space.Broadcast()
		o.mu.Unlock()
		o.failed()
		return
	}
	o.mu.Unlock()
}
