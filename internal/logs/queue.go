package logs

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	queueBytes = 256 << 10              // what may wait for a slow reader
	closeWait  = 100 * time.Millisecond // how long Close waits for one
)

// Queue is a writer that never blocks: lines wait in memory for the real writer,
// up to a bound, and are dropped beyond it. A note says how many were.
type Queue struct {
	w    io.Writer
	done chan struct{}

	mu      sync.Mutex // protects the fields below
	wake    *sync.Cond
	waiting [][]byte
	size    int
	dropped int
	closed  bool
}

// NewQueue starts the goroutine that writes to w; Close ends it.
func NewQueue(w io.Writer) *Queue {
	q := &Queue{w: w, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write queues one line. It reports success also for a line that is dropped:
// a log is no reason to fail.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.size+len(line) > queueBytes {
		q.dropped++
		return len(line), nil
	}
	q.waiting = append(q.waiting, append([]byte(nil), line...))
	q.size += len(line)
	q.wake.Signal()
	return len(line), nil
}

// Close stops taking lines and waits a moment for those that are queued. A
// reader that reads nothing keeps the writing goroutine, not the caller.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.wake.Signal()
	q.mu.Unlock()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	}
}

func (q *Queue) run() {
	defer close(q.done)
	for {
		q.mu.Lock()
		for len(q.waiting) == 0 && !q.closed {
			q.wake.Wait()
		}
		lines, dropped, closed := q.waiting, q.dropped, q.closed
		q.waiting, q.size, q.dropped = nil, 0, 0
		q.mu.Unlock()
		if dropped > 0 {
			lines = append(lines, fmt.Appendf(nil, "(%d log lines were dropped: nobody read them in time)\n", dropped))
		}
		for _, line := range lines {
			if _, err := q.w.Write(line); err != nil {
				break // a closed pipe: whatever follows has no reader either
			}
		}
		if closed && len(lines) == 0 {
			return
		}
	}
}
