package protocol

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"fabro-mcp/transport"
)

// spareWorkers are the goroutines beyond handlers and waiting calls: somebody must
// read, and some may be writing. When all are stuck in writing, nobody reads, and
// that is the back-pressure on a host that reads nothing.
const spareWorkers = 32

// conn serves one stream.
type conn struct {
	server *Server
	opts   *Options
	stream *transport.LineStream
	out    *output

	ctx  context.Context // parent of all handlers' contexts
	stop context.CancelCauseFunc

	workers  sync.WaitGroup
	readers  atomic.Int32 // goroutines at or in the read
	total    atomic.Int32 // all workers
	maxTotal int32

	// The reader's state. Whoever reads a line also admits it under this lock, so
	// that messages take effect in their order.
	rmu         sync.Mutex
	ended       error // why nothing more is read
	scanner     scanner
	scratch     request // for methods that are answered at once
	scratchMeta requestMeta

	session atomic.Pointer[session]

	mu       sync.Mutex // protects the fields below
	inflight openRequests
	running  int        // handlers at work
	waiting  int        // waiting calls
	queue    []*request // for a handler, oldest first
	open     int        // requests admitted and not yet finished
	asks     map[string]chan answer
	lastAsk  int
	draining bool
	idle     chan struct{} // closed when draining and nothing is open

	events eventQueue

	inputClosed chan struct{} // closed at the end of input
	readError   error         // set before inputClosed is closed
	broken      chan struct{} // closed when a write failed
	gone        chan struct{} // closed when serve is at its end

	lead lead
}

func newConn(s *Server, stream *transport.LineStream) *conn {
	c := &conn{
		server: s, opts: &s.opts, stream: stream,
		inflight:    newOpenRequests(),
		asks:        make(map[string]chan answer),
		idle:        make(chan struct{}),
		inputClosed: make(chan struct{}),
		broken:      make(chan struct{}),
		gone:        make(chan struct{}),
	}
	c.lead.wake = make(chan struct{}, 1)
	c.maxTotal = int32(s.opts.MaxHandlers + s.opts.MaxWaiting + spareWorkers)
	c.ctx, c.stop = context.WithCancelCause(context.Background())
	c.out = newOutput(stream, func() { close(c.broken) }, c.watchDeaf)
	c.scratch.conn = c
	c.events.conn = c
	return c
}

// serve runs until the stream ends, see [Server.Serve].
func (c *conn) serve(ctx context.Context) error {
	defer c.stop(ErrShuttingDown)
	c.spawnReader()
	c.workers.Add(1)
	go c.standBy()
	var result error
	clean, patience := false, afterStop
	select {
	case <-c.inputClosed:
		if c.readError != io.EOF {
			c.opts.Logger.Warn("reading failed", "error", c.readError)
			result = c.readError
		}
		patience = c.opts.DrainGrace
		if c.drain(c.opts.DrainGrace, false) {
			clean = true
		}
	case <-ctx.Done():
		c.endInput(context.Cause(ctx))
		c.drain(c.opts.StopGrace, true)
	case <-c.broken:
	}
	clean = c.out.settle(patience) && clean
	close(c.gone)
	select {
	case <-c.broken:
		result = ErrPeerGone
	default:
	}
	c.dropListeners()
	if s := c.session.Load(); s != nil {
		s.close()
	}
	c.stop(ErrShuttingDown)
	c.stream.Close()
	if clean {
		// Everything is answered: no worker can be stuck in a handler or in a write.
		c.workers.Wait()
	}
	return result
}

// endInput notes that no more messages will be taken.
func (c *conn) endInput(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.inputClosed:
	default:
		c.readError = err
		close(c.inputClosed)
	}
}

// afterStop is what handlers get to return once their context has ended.
const afterStop = 50 * time.Millisecond

// drain lets open requests finish for at most grace, then cancels them, and last
// answers for those that still say nothing. It reports whether all finished by
// themselves. say tells listeners of the end; at the end of input nobody is there
// to be told.
func (c *conn) drain(grace time.Duration, say bool) bool {
	deadline := time.Now().Add(grace)
	if say {
		c.sayGoodbye(grace)
	} else {
		c.dropListeners()
	}
	c.mu.Lock()
	c.draining = true
	if c.open == 0 {
		c.noteIdleLocked()
	}
	c.mu.Unlock()
	wait := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-c.idle:
			return true
		case <-c.broken:
			return false
		case <-timer.C:
			return false
		}
	}
	if wait(time.Until(deadline)) {
		return true
	}
	c.stop(ErrShuttingDown)
	if wait(afterStop) {
		return true
	}
	c.mu.Lock()
	left := c.inflight.all()
	c.mu.Unlock()
	// A write may hang for ever; the process has to end all the same.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, r := range left {
			e := &Error{Code: CodeInternal, Message: "The server ended before this request was finished"}
			c.reply(r, appendErrorLine(nil, r.id, e))
		}
	}()
	timer := time.NewTimer(afterStop)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return false
}

// sayGoodbye ends the listeners with a word, which a peer that reads nothing does not
// get.
func (c *conn) sayGoodbye(grace time.Duration) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		c.closeListeners()
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-said:
	case <-c.broken:
	case <-timer.C:
	}
}

// begin and end count what is open, so that the end of input can wait for it.
func (c *conn) begin() {
	c.mu.Lock()
	c.open++
	c.mu.Unlock()
}

func (c *conn) end() {
	c.mu.Lock()
	c.endLocked()
	c.mu.Unlock()
}

func (c *conn) endLocked() {
	if c.open--; c.open == 0 && c.draining {
		c.noteIdleLocked()
	}
}

func (c *conn) noteIdleLocked() {
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// take registers a request and finds out what becomes of it now: run it, leave it
// (it is queued, or dropped for its id), or refuse it.
func (c *conn) take(r *request, effort effort) (run bool, refuse *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inflight.add(r) {
		c.opts.Logger.Warn("dropped a request whose id is still in use", "id", clip(string(r.id)))
		return false, nil
	}
	switch {
	case c.draining:
		refuse = errEnding
	case effort == waiting && c.waiting >= c.opts.MaxWaiting:
		refuse = errBusy
	case effort == waiting:
		c.waiting++
		r.slot = &c.waiting
		run = true
	case c.running < c.opts.MaxHandlers:
		c.running++
		r.slot = &c.running
		run = true
	case len(c.queue) >= c.opts.MaxQueued:
		refuse = errBusy
	default:
		r.queued = true
		c.queue = append(c.queue, r)
	}
	if refuse != nil {
		c.inflight.remove(r)
		return false, refuse
	}
	r.ctx.conn = c
	c.open++
	return run, nil
}

// run answers one request and returns the next one that was waiting for a handler.
// The handler's place is given on only after the reply is written: a host that
// reads slowly slows the handlers down instead of filling memory.
func (c *conn) run(w *worker, r *request) *request {
	if !c.perform(w, r) {
		return nil
	}
	return c.answer(r, w.out, false)
}

// perform runs the handler of a request and leaves the response in w; false means
// that the request stays open.
func (c *conn) perform(w *worker, r *request) (answered bool) {
	if cap(w.out) > 1<<20 {
		w.out = nil
	}
	w.out = w.out[:0]
	if r.queued && c.isClosed(r) {
		return true
	}
	var start time.Time
	if w.count++; w.count%sampled == 1 {
		start = time.Now()
	}
	w.out = r.respond(w.out)
	if r.stays {
		return false
	}
	if !start.IsZero() && r.slot != &c.waiting {
		c.lead.sample(time.Since(start))
	}
	r.x.flush()
	return true
}

func (c *conn) isClosed(r *request) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return r.closed
}

// spawnRun runs a request in a goroutine of its own.
func (c *conn) spawnRun(r *request) {
	c.workers.Add(1)
	go func() {
		defer c.workers.Done()
		var w worker
		for r != nil {
			r = c.run(&w, r)
		}
	}()
}

// answer sends the response of a request that a handler has finished, and returns
// the next one that was waiting for a handler. With lead the caller leads: the
// response goes out with what the leader flushes next.
func (c *conn) answer(r *request, line []byte, lead bool) (next *request) {
	if lead && r.batch == nil {
		// Nobody reads meanwhile, so that the id need not be free before the response
		// is on its way.
		c.out.hold(r, line, true)
	} else {
		c.forget(r)
		c.write(r, line)
	}
	r.ctx.end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(r)
	if r.slot == &c.running && len(c.queue) > 0 {
		next = c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		next.slot, r.slot = r.slot, nil
		return next
	}
	c.releaseLocked(r)
	return nil
}

// reply sends the response of a request outside of its handler. It does nothing
// where the request is closed.
func (c *conn) reply(r *request, line []byte) {
	c.forget(r)
	c.write(r, line)
	r.ctx.end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(r)
}

// forget frees the id of a request: before the response goes out, since the peer may
// use it again as soon as it has that.
func (c *conn) forget(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inflight.remove(r)
}

func (c *conn) write(r *request, line []byte) {
	if r.batch != nil {
		r.batch.add(c, r, line)
	} else {
		c.out.send(r, line, true)
	}
}

// closeLocked takes a request off the books.
func (c *conn) closeLocked(r *request) {
	c.inflight.remove(r)
	if !r.finished {
		r.finished = true
		c.endLocked()
	}
}

// release gives back what a request counts among.
func (c *conn) release(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseLocked(r)
}

func (c *conn) releaseLocked(r *request) {
	if r.slot != nil {
		*r.slot--
		r.slot = nil
	}
}

// cancelRequest serves notifications/cancelled: from here on nothing is sent for
// that id. The cause is ErrCancelled, in either form.
func (c *conn) cancelRequest(id []byte, cause error) {
	c.mu.Lock()
	r := c.inflight.find(id)
	if r != nil {
		c.inflight.remove(r)
	}
	c.mu.Unlock()
	if r == nil || !c.out.close(r) {
		return
	}
	c.opts.Logger.Debug("a request was cancelled", "id", clip(string(id)), "cause", cause)
	r.ctx.end(cause)
	c.endListener(r)
}
