// Package transport carries frames: JSON texts, one a line, over a pair of byte
// streams. It knows nothing of JSON-RPC or MCP.
//
//   - [LineStream] reads and writes frames on any io.Reader and io.Writer.
//   - [Stdio] is the stream of a server process: its own standard input and
//     output, guarded against everything else that prints.
//   - [Pipe] is a pair of streams in memory, [Command] a child process as a stream.
//   - [WatchExecutable] and [WatchParent] tell a server that it should end.
//
// A frame never contains a line feed. On the way in, a carriage return before the
// line feed and a byte-order mark at the start of a line are taken off, blank
// lines are skipped, and a last line without a line feed counts as a frame. On
// the way out a frame and its line feed are always one write.
//
//	stream := transport.NewLineStream(r, w)
//	for {
//		frame, err := stream.ReadFrame()
//		if err != nil { … }
//		stream.WriteFrames(answer(frame))
//	}
package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
)

// DefaultMaxFrame is the longest frame that is read unless [MaxFrame] says
// otherwise, in bytes.
const DefaultMaxFrame = 64 << 20

const readBuffer = 64 << 10

var bom = []byte{0xEF, 0xBB, 0xBF}

// A FrameTooLongError reports a line over the limit. The line has been skipped to
// its end, and reading can go on.
type FrameTooLongError struct {
	Limit int    // the limit, in bytes
	Head  []byte // the first bytes of the line, for guessing whose it was
}

func (e *FrameTooLongError) Error() string {
	return fmt.Sprintf("a message is longer than the limit of %d bytes", e.Limit)
}

// ErrClosed is returned by operations on a stream after Close.
var ErrClosed = errors.New("transport: stream is closed")

// LineStream reads and writes frames. One goroutine may read while any number
// write. It satisfies jsonrpc2.ObjectStream.
type LineStream struct {
	r        io.Reader
	maxFrame int

	// The reader's state: unread bytes are buf[start:end].
	buf        []byte
	start, end int
	readErr    error
	unshared   bool // the last frame has memory of its own

	wmu     sync.Mutex // serialises writes; protects the fields below
	w       io.Writer
	scratch []byte

	closed  atomic.Bool // set before closers run, which a hanging write may outlast
	closers []io.Closer
	once    sync.Once
}

// An Option changes a LineStream while it is made.
type Option func(*LineStream)

// MaxFrame sets the longest frame that is read, in bytes without the line feed.
// Zero or less leaves the default.
func MaxFrame(n int) Option {
	return func(s *LineStream) {
		if n > 0 {
			s.maxFrame = n
		}
	}
}

// OnClose adds something that Close closes.
func OnClose(c io.Closer) Option {
	return func(s *LineStream) { s.closers = append(s.closers, c) }
}

// NewLineStream returns a stream of frames over r and w. Close closes what
// [OnClose] named, and nothing else.
func NewLineStream(r io.Reader, w io.Writer, opts ...Option) *LineStream {
	s := &LineStream{r: r, w: w, maxFrame: DefaultMaxFrame}
	for _, o := range opts {
		o(s)
	}
	return s
}

// SetMaxFrame changes the longest frame that is read. It must not be called while
// a read is under way.
func (s *LineStream) SetMaxFrame(n int) {
	if n > 0 {
		s.maxFrame = n
	}
}

// ReadFrame returns the next frame. It is valid until the next call; [LineStream.Own], before
// that, makes it the caller's. The error is io.EOF at the orderly end of input and a
// *[FrameTooLongError] for a line over the limit, after which reading goes on.
func (s *LineStream) ReadFrame() ([]byte, error) {
	for {
		s.unshared = false
		line, err := s.readLine()
		if err != nil {
			return nil, err
		}
		if line = trim(line); !blank(line) {
			return line, nil
		}
	}
}

// Own returns the frame that was read last so that it stays valid: as it is where it
// has memory of its own (most long ones have), a copy otherwise.
func (s *LineStream) Own(frame []byte) []byte {
	if s.unshared {
		return frame
	}
	return append(make([]byte, 0, len(frame)), frame...)
}

// ReadBuffered returns the next frame if it has been read already, as a whole; it
// never waits. The frame is valid until the next call.
func (s *LineStream) ReadBuffered() (frame []byte, ok bool) {
	s.unshared = false
	for {
		i := bytes.IndexByte(s.buf[s.start:s.end], '\n')
		if i < 0 || i > s.maxFrame {
			return nil, false
		}
		line := trim(s.buf[s.start : s.start+i])
		s.start += i + 1
		if !blank(line) {
			return line, true
		}
	}
}

// HungUp reports whether the other side has closed the input, even where bytes that
// it sent before are still to be read: somebody who has stopped reading would not
// meet the end. Streams that cannot tell say false.
func (s *LineStream) HungUp() bool {
	h, ok := s.r.(interface{ hungUp() bool })
	return ok && h.hungUp()
}

// trim takes a byte-order mark and a carriage return off a line.
func trim(line []byte) []byte {
	line = bytes.TrimPrefix(line, bom)
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// readLine returns the bytes before the next line feed.
func (s *LineStream) readLine() ([]byte, error) {
	if s.buf == nil {
		s.buf = make([]byte, readBuffer)
	}
	scanned := 0
	for {
		if i := bytes.IndexByte(s.buf[s.start+scanned:s.end], '\n'); i >= 0 {
			line := s.buf[s.start : s.start+scanned+i]
			s.start += scanned + i + 1
			if len(line) > s.maxFrame {
				return nil, s.tooLong(line)
			}
			return line, nil
		}
		scanned = s.end - s.start
		if s.readErr != nil {
			line := s.buf[s.start:s.end]
			s.start = s.end
			if len(line) > 0 && s.readErr == io.EOF {
				if len(line) > s.maxFrame {
					return nil, s.tooLong(line)
				}
				return line, nil
			}
			return nil, s.readErr
		}
		if s.start > 0 && s.end == len(s.buf) {
			s.end = copy(s.buf, s.buf[s.start:s.end])
			s.start = 0
		}
		if s.end == len(s.buf) {
			return s.readLong()
		}
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.readErr = err
	}
}

// readLong reads on when a line fills the whole buffer. The parts are collected
// and joined once, so that no more than twice the line is ever held.
func (s *LineStream) readLong() ([]byte, error) {
	parts := [][]byte{append([]byte(nil), s.buf[:s.end]...)}
	size := s.end
	s.start, s.end = 0, 0
	next := 4 * readBuffer
	for {
		if size > s.maxFrame {
			head := parts[0]
			parts = nil
			err := s.skipLine()
			if err != nil && err != io.EOF {
				return nil, err
			}
			return nil, s.tooLong(head)
		}
		part := make([]byte, next)
		n, found := 0, false
		var err error
		for n < len(part) && err == nil && !found {
			var m int
			m, err = s.r.Read(part[n:])
			found = bytes.IndexByte(part[n:n+m], '\n') >= 0
			n += m
		}
		if next < 4<<20 {
			next *= 2
		}
		s.readErr = err
		part = part[:n]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			s.keep(part[i+1:])
			parts, size = append(parts, part[:i]), size+i
			if size > s.maxFrame {
				return nil, s.tooLong(parts[0])
			}
			s.unshared = true
			return bytes.Join(parts, nil), nil
		}
		parts, size = append(parts, part), size+n
		if err != nil {
			if err == io.EOF && size <= s.maxFrame {
				s.unshared = true
				return bytes.Join(parts, nil), nil
			}
			if err == io.EOF {
				return nil, s.tooLong(parts[0])
			}
			return nil, err
		}
	}
}

// keep puts bytes that were read beyond a line back in front of the buffer.
func (s *LineStream) keep(rest []byte) {
	if len(rest) > len(s.buf) {
		s.buf = make([]byte, len(rest)+readBuffer)
	}
	s.start, s.end = 0, copy(s.buf, rest)
}

// skipLine drops input up to and including the next line feed.
func (s *LineStream) skipLine() error {
	for {
		if i := bytes.IndexByte(s.buf[s.start:s.end], '\n'); i >= 0 {
			s.start += i + 1
			return nil
		}
		s.start, s.end = 0, 0
		if s.readErr != nil {
			return s.readErr
		}
		s.end, s.readErr = s.r.Read(s.buf)
	}
}

func (s *LineStream) tooLong(head []byte) error {
	const keep = 4 << 10
	if len(head) > keep {
		head = head[:keep]
	}
	return &FrameTooLongError{Limit: s.maxFrame, Head: append([]byte(nil), head...)}
}

// WriteFrames writes the frames, each followed by a line feed, in one write.
func (s *LineStream) WriteFrames(frames ...[]byte) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	buf := s.scratch[:0]
	for _, f := range frames {
		if bytes.IndexByte(f, '\n') >= 0 {
			return errors.New("transport: a frame contains a line feed")
		}
		buf = append(append(buf, f...), '\n')
	}
	if cap(buf) <= 1<<20 {
		s.scratch = buf
	} else {
		s.scratch = nil
	}
	return s.writeLocked(buf)
}

// WriteLines writes bytes that are whole lines already, each ending in its line
// feed, in one write.
func (s *LineStream) WriteLines(lines []byte) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	return s.writeLocked(lines)
}

func (s *LineStream) writeLocked(p []byte) error {
	if s.closed.Load() {
		return ErrClosed
	}
	_, err := s.w.Write(p)
	return err
}

// WriteObject marshals obj and writes it as one frame.
func (s *LineStream) WriteObject(obj any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(obj); err != nil {
		return err
	}
	return s.WriteLines(b.Bytes())
}

// ReadObject reads one frame and unmarshals it into v, which must be a pointer.
// What v held before is cleared: encoding/json would otherwise merge the two.
func (s *LineStream) ReadObject(v any) error {
	frame, err := s.ReadFrame()
	if err != nil {
		return err
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv.Elem().SetZero()
	}
	return json.Unmarshal(frame, v)
}

// Close closes what [OnClose] named. A write that is under way is not waited for:
// closing ends it where the system can do that, and elsewhere (a pipe in blocking
// mode that nobody reads) the end of the process does.
func (s *LineStream) Close() error {
	var errs []error
	s.once.Do(func() {
		s.closed.Store(true)
		for _, c := range s.closers {
			errs = append(errs, c.Close())
		}
	})
	return errors.Join(errs...)
}
