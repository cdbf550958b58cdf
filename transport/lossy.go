package transport

import (
	"fmt"
	"io"
	"sync"
)

// LossyWriter passes writes on to a slow writer without ever waiting for it: what
// does not fit is dropped and counted. It keeps logging to a standard error that
// nobody reads from stopping the protocol.
type LossyWriter struct {
	queue chan []byte
	done  chan struct{}

	mu      sync.Mutex // protects the fields below
	dropped int
	closed  bool
}

// NewLossyWriter returns a writer that keeps at most n pending writes for w.
func NewLossyWriter(w io.Writer, n int) *LossyWriter {
	l := &LossyWriter{queue: make(chan []byte, n), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for p := range l.queue {
			if d := l.takeDropped(); d > 0 {
				fmt.Fprintf(w, "(log lines dropped because nobody reads them: %d)\n", d)
			}
			w.Write(p)
		}
	}()
	return l
}

func (l *LossyWriter) takeDropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.dropped
	l.dropped = 0
	return d
}

// Write takes p or drops it. It never fails.
func (l *LossyWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(p), nil
	}
	select {
	case l.queue <- append([]byte(nil), p...):
	default:
		l.dropped++
	}
	return len(p), nil
}

// Close takes no more and returns a channel that is closed when everything
// pending has been passed on, which may be never.
func (l *LossyWriter) Close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	return l.done
}
