package protocol

import (
	"sync/atomic"
	"time"
)

// Leader and follower. One goroutine, the leader, reads; it holds rmu. What it has
// read it also answers, and there are two ways:
//
//   - eagerly: it gives up the lead first, and another goroutine reads on while it
//     works. That costs a switch of goroutines for each request.
//   - lazily: it keeps the lead while it works, so that a short request costs no
//     more than in a loop without any concurrency, and answers that come together
//     leave in one write. If it is not done after a moment, the goroutine that
//     stands by takes the lead from it and lets another one read.
//
// Either way somebody reads at all times but for that moment.

const (
	// eagerAfter is how long requests may take on average to be answered lazily.
	eagerAfter = 25 * time.Microsecond
	// sampled is how many requests are taken into the average: one of so many.
	sampled = 8
	// maxSample bounds what one slow request does to the average.
	maxSample = time.Millisecond
	// tick is how often the one standing by looks. It takes the lead when it meets
	// the same work twice.
	tick = 200 * time.Microsecond
	// idleTicks without any work send it to sleep.
	idleTicks = 10
	// maxIdle is how many goroutines may queue up to read; more end themselves.
	maxIdle = 2
	// maxHeld is how much is held back before it is written, in bytes.
	maxHeld = 32 << 10
)

// lead says who may read.
type lead struct {
	// state is odd while the leader works lazily. Whoever makes it even, the leader
	// or the one standing by, has the lead.
	state   atomic.Uint64
	average atomic.Int64 // of the time a request takes, in nanoseconds
	asleep  atomic.Bool
	wake    chan struct{}
}

// begin is called by the leader before it works lazily, end with what begin returned
// afterwards: false means that it has lost the lead meanwhile.
func (l *lead) begin() uint64 {
	busy := l.state.Add(1)
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		l.wake <- struct{}{}
	}
	return busy
}

func (l *lead) end(busy uint64) bool { return l.state.CompareAndSwap(busy, busy+1) }

// sample takes the time of a request into the average.
func (l *lead) sample(d time.Duration) {
	old := l.average.Load()
	l.average.Store(old + (int64(min(d, maxSample))-old)/8)
}

// worker is the state of one goroutine of the loop.
type worker struct {
	out   []byte   // lines to be written
	next  *request // to be run
	eager bool     // next will wait for something
	count uint     // of requests it ran
}

// spawnReader starts a worker. The caller holds rmu or is the first.
func (c *conn) spawnReader() {
	c.readers.Add(1)
	c.total.Add(1)
	c.workers.Add(1)
	go c.work()
}

// work is the loop of all that read and answer.
func (c *conn) work() {
	defer c.workers.Done()
	var w worker
	for {
		c.rmu.Lock()
		for {
			leads, err := c.leadOn(&w)
			if err != nil {
				c.ended = err
				c.rmu.Unlock()
				c.endInput(err)
				c.out.flush()
				return
			}
			if !leads {
				break
			}
		}
		for r := w.next; r != nil; {
			r = c.run(&w, r)
		}
		if !c.queueUp() {
			c.total.Add(-1)
			return
		}
	}
}

// queueUp counts a worker among those that are about to read, if there is need for
// one more. It must never be counted and then go: whoever gives up the lead relies on
// the count.
func (c *conn) queueUp() bool {
	for {
		n := c.readers.Load()
		if n >= maxIdle {
			return false
		}
		if c.readers.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leadOn takes one message and sees to it. The caller holds rmu, and still does
// afterwards if the answer is true. If it is false the lead is another's, and what
// is left to do is in w. The error is that of the input.
func (c *conn) leadOn(w *worker) (leads bool, err error) {
	w.next, w.out = nil, w.out[:0]
	if c.ended != nil {
		return false, c.ended
	}
	if c.out.held() > maxHeld && !c.flushLazily() {
		return false, nil
	}
	frame, ok := c.stream.ReadBuffered()
	if !ok {
		// Before it waits for input the leader writes what was held back.
		if c.out.held() > 0 && !c.flushLazily() {
			return false, nil
		}
		frame, err = c.stream.ReadFrame()
	}
	if err == nil {
		c.admit(w, frame)
	} else if err = c.refuse(w, err); err != nil {
		return false, err
	}
	if len(w.out) > 0 {
		c.out.hold(nil, w.out, false)
	}
	if w.next == nil {
		return true, nil
	}
	if w.eager || c.lead.average.Load() > int64(eagerAfter) {
		c.handOver()
		return false, nil
	}
	return c.runLazily(w), nil
}

// flushLazily writes what is held; how long that takes is up to the peer. It reports
// whether the caller still leads.
func (c *conn) flushLazily() bool {
	busy := c.lead.begin()
	c.out.flush()
	return c.lead.end(busy)
}

// runLazily answers a request, and what was queued behind it, for as long as the
// caller leads; what is left then is in w.
func (c *conn) runLazily(w *worker) (leads bool) {
	for w.next != nil {
		r := w.next
		busy := c.lead.begin()
		answered := c.perform(w, r)
		leads = c.lead.end(busy)
		if answered {
			w.next = c.answer(r, w.out, leads)
		} else {
			w.next = nil
		}
		if !leads {
			return false
		}
	}
	return true
}

// handOver gives the lead up: the caller holds rmu, or has just taken it from the
// one that does.
func (c *conn) handOver() {
	somebody := c.readers.Add(-1) > 0
	if !somebody && c.total.Load() < c.maxTotal {
		c.spawnReader()
		somebody = true
	}
	c.rmu.Unlock()
	if !somebody {
		// Nobody reads until a worker is free, so nobody flushes either.
		c.out.flush()
	}
}

// standBy takes the lead from a leader whose work takes long. It sleeps while there
// is nothing to watch.
func (c *conn) standBy() {
	defer c.workers.Done()
	timer := time.NewTimer(tick)
	defer timer.Stop()
	var last uint64
	idle := 0
	for {
		select {
		case <-timer.C:
		case <-c.gone:
			return
		}
		now := c.lead.state.Load()
		switch {
		case now != last:
			last, idle = now, 0
		case now%2 == 1:
			if c.lead.end(now) {
				// Where one is slow, the next ones may be.
				c.lead.sample(maxSample)
				c.handOver()
			}
		default:
			idle++
		}
		if idle > idleTicks {
			idle = 0
			c.lead.asleep.Store(true)
			if c.lead.state.Load() != last {
				// Something began before it could know whom to wake.
				if !c.lead.asleep.CompareAndSwap(true, false) {
					<-c.lead.wake
				}
			} else {
				select {
				case <-c.lead.wake:
				case <-c.gone:
					return
				}
			}
		}
		timer.Reset(tick)
	}
}
