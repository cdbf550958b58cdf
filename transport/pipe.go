package transport

import (
	"io"
	"sync"
)

// pipeCapacity is what one direction of a [Pipe] holds before a write waits, the
// same as a pipe of the usual kernels.
const pipeCapacity = 64 << 10

// Pipe returns two streams in memory: what is written to one is read from the
// other. Each direction holds 64 KiB, then writes wait. Closing a stream ends the
// input of the other one and makes its writes fail.
func Pipe(opts ...Option) (*LineStream, *LineStream) {
	ab, ba := newHalf(), newHalf()
	a := NewLineStream(ba, ab, append(opts[:len(opts):len(opts)], OnClose(halves{ba, ab}))...)
	b := NewLineStream(ab, ba, append(opts[:len(opts):len(opts)], OnClose(halves{ab, ba}))...)
	return a, b
}

// CloseWrite ends the input of the other side of a [Pipe] while this side goes on
// reading, as closing a child's standard input does. Other streams are left alone.
func (s *LineStream) CloseWrite() error {
	if h, ok := s.w.(interface{ closeWrite() }); ok {
		h.closeWrite()
	}
	return nil
}

// halves are the two directions of one end: the first is read, the second written.
type halves [2]*half

func (h halves) Close() error {
	h[0].closeRead()
	h[1].closeWrite()
	return nil
}

// half is one direction of a pipe.
type half struct {
	mu          sync.Mutex // protects the fields below
	changed     sync.Cond
	buf         []byte
	off         int
	writeClosed bool
	readClosed  bool
}

func newHalf() *half {
	h := &half{}
	h.changed.L = &h.mu
	return h
}

func (h *half) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.off == len(h.buf) {
		if h.readClosed {
			return 0, ErrClosed
		}
		if h.writeClosed {
			return 0, io.EOF
		}
		h.changed.Wait()
	}
	n := copy(p, h.buf[h.off:])
	if h.off += n; h.off == len(h.buf) {
		h.buf, h.off = h.buf[:0], 0
	}
	h.changed.Broadcast()
	return n, nil
}

func (h *half) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := 0
	for done < len(p) {
		if h.readClosed || h.writeClosed {
			return done, io.ErrClosedPipe
		}
		room := pipeCapacity - (len(h.buf) - h.off)
		if room <= 0 {
			h.changed.Wait()
			continue
		}
		n := min(room, len(p)-done)
		h.buf = append(h.buf, p[done:done+n]...)
		done += n
		h.changed.Broadcast()
	}
	return done, nil
}

func (h *half) hungUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writeClosed
}

func (h *half) closeWrite() {
	h.mu.Lock()
	h.writeClosed = true
	h.mu.Unlock()
	h.changed.Broadcast()
}

func (h *half) closeRead() {
	h.mu.Lock()
	h.readClosed = true
	h.buf, h.off = nil, 0
	h.mu.Unlock()
	h.changed.Broadcast()
}
