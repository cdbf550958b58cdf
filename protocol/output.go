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
	deaf   func() // called in a goroutine of its own when somebody has to wait for space; it ends when stalled says so

	mu      sync.Mutex // protects the fields below, and request.closed
	space   sync.Cond  // signalled when pending shrinks and when writing ends
	pending []byte
	spare   []byte
	writing bool
	writes  int // that have ended
	waiting int // for space
	watched bool
	err     error
}

func newOutput(stream *transport.LineStream, failed, deaf func()) *output {
	o := &output{stream: stream, failed: failed, deaf: deaf}
	o.space.L = &o.mu
	return o
}

// send writes whole lines. For a request that is closed they are dropped and the
// answer is false; last closes it. r may be nil. The lines are the caller's again
// when send returns.
func (o *output) send(r *request, lines []byte, last bool) bool {
	o.mu.Lock()
	if len(lines) > 0 && !(r != nil && r.closed) { // somebody who says nothing need not wait
		o.awaitSpaceLocked()
	}
	if !o.admitLocked(r, last) {
		o.mu.Unlock()
		return false
	}
	switch {
	case o.err != nil || len(lines) == 0:
		defer o.mu.Unlock()
		return o.err == nil
	case o.writing:
		o.pending = append(o.pending, lines...)
		o.mu.Unlock()
	case len(o.pending) > 0:
		o.pending = append(o.pending, lines...)
		o.writing = true
		o.writeLocked(nil)
	default:
		o.writing = true
		o.mu.Unlock()
		err := o.stream.WriteLines(lines)
		o.mu.Lock()
		o.writes++
		o.writeLocked(err)
	}
	return true
}

// hold is send without the write: the lines go out with the next flush or send. The
// reader uses it, which flushes before it waits for input.
func (o *output) hold(r *request, lines []byte, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaitSpaceLocked()
	if o.admitLocked(r, last) && o.err == nil {
		o.pending = append(o.pending, lines...)
	}
}

// awaitSpaceLocked keeps pending bounded while a write is under way.
func (o *output) awaitSpaceLocked() {
	for len(o.pending) >= maxPending && o.writing && o.err == nil {
		if !o.watched {
			o.watched = true
			go o.deaf()
		}
		o.waiting++
		o.space.Wait()
		o.waiting--
	}
}

// stalled reports whether somebody waits for space. The one that watches calls it
// until it is false.
func (o *output) stalled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watched = o.waiting > 0
	return o.watched
}

// progress grows with each write that ends.
func (o *output) progress() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes
}

// held is how much waits to be flushed.
func (o *output) held() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return 0 // the writer takes it along
	}
	return len(o.pending)
}

// flush writes what is held.
func (o *output) flush() {
	o.mu.Lock()
	if o.writing || len(o.pending) == 0 {
		o.mu.Unlock()
		return
	}
	o.writing = true
	o.writeLocked(nil)
}

func (o *output) admitLocked(r *request, last bool) bool {
	if r == nil {
		return true
	}
	if r.closed {
		return false
	}
	r.closed = last
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

// settle writes what is held and waits, for at most d, until all is written. It
// reports whether nobody is writing any more.
func (o *output) settle(d time.Duration) bool {
	go o.flush() // it may hang
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
	for (o.writing || len(o.pending) > 0) && o.err == nil && !late {
		o.space.Wait()
	}
	return !o.writing
}

// writeLocked is entered by the one that set writing, with the error of what it has
// written itself. It writes what is pending until nothing is, and unlocks.
func (o *output) writeLocked(err error) {
	for err == nil && len(o.pending) > 0 {
		batch := o.pending
		o.pending = o.spare[:0]
		o.spare = nil
		o.space.Broadcast()
		o.mu.Unlock()
		err = o.stream.WriteLines(batch)
		o.mu.Lock()
		o.writes++
		if cap(batch) <= maxPending {
			o.spare = batch
		}
	}
	o.writing = false
	broken := err != nil && o.err == nil
	if broken {
		o.err = err
		o.pending = nil
	}
	o.space.Broadcast()
	o.mu.Unlock()
	if broken {
		o.failed()
	}
}
