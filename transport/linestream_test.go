package transport_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/sourcegraph/jsonrpc2"

	"fabro-mcp/transport"
)

var _ jsonrpc2.ObjectStream = (*transport.LineStream)(nil)

// readAll reads frames to the end; a line over the limit shows as its error text.
func readAll(t *testing.T, r io.Reader, opts ...transport.Option) (frames []string) {
	t.Helper()
	s := transport.NewLineStream(r, io.Discard, opts...)
	for {
		frame, err := s.ReadFrame()
		var long *transport.FrameTooLongError
		switch {
		case err == io.EOF:
			return frames
		case errors.As(err, &long):
			frames = append(frames, "too long: "+string(long.Head[:1]))
		case err != nil:
			t.Fatal(err)
		default:
			frames = append(frames, string(frame))
		}
	}
}

func TestReadFrame(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"last line without line feed", "a\nb", []string{"a", "b"}},
		{"carriage returns", "a\r\nb\r\n", []string{"a", "b"}},
		{"a carriage return inside stays", "a\rb\n", []string{"a\rb"}},
		{"byte-order marks", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []string{"a", "b"}},
		{"blank lines", "\n\n \t\r\na\n\n", []string{"a"}},
		{"only a mark", "\xef\xbb\xbf\n", nil},
		{"NUL and bytes that are no UTF-8", "a\x00\xff\n", []string{"a\x00\xff"}},
		{"longer than the buffer", long + "\nb\n" + long, []string{long, "b", long}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)), "error with data": iotest.DataErrReader(strings.NewReader(c.in))} {
				if diff := cmp.Diff(c.want, readAll(t, r)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestMaxFrame(t *testing.T) {
	for _, n := range []int{10, 70_000, 300_000, 5_000_000} {
		in := "a\n" + strings.Repeat("g", n) + "\nb\n" + strings.Repeat("h", n)
		limit := transport.MaxFrame(n - 1)
		if diff := cmp.Diff([]string{"a", "too long: g", "b", "too long: h"}, readAll(t, strings.NewReader(in), limit)); diff != "" {
			t.Errorf("%d bytes over the limit: %s", n, diff)
		}
		want := []string{"a", strings.Repeat("g", n), "b", strings.Repeat("h", n)}
		if got := readAll(t, strings.NewReader(in), transport.MaxFrame(n)); !cmp.Equal(want, got) {
			t.Errorf("%d bytes at the limit: %d frames", n, len(got))
		}
	}
}

// TestSkippedLineIsNotHeld reads a line far over the limit; what is held does not
// grow with it.
func TestSkippedLineIsNotHeld(t *testing.T) {
	const size = 64 << 20
	allocated := testing.AllocsPerRun(1, func() {
		r := io.MultiReader(io.LimitReader(zeros{}, size), strings.NewReader("\nb\n"))
		if diff := cmp.Diff([]string{"too long: 0", "b"}, readAll(t, r, transport.MaxFrame(1<<20))); diff != "" {
			t.Fatal(diff)
		}
	})
	if allocated > 100 {
		t.Errorf("%.0f allocations", allocated)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestReadBuffered(t *testing.T) {
	r, w := io.Pipe()
	s := transport.NewLineStream(r, io.Discard, transport.MaxFrame(100))
	if _, ok := s.ReadBuffered(); ok {
		t.Error("a frame before anything was read")
	}
	go io.WriteString(w, "a\n\n\xef\xbb\xbfb\r\n \nhalf")
	for _, want := range []string{"a", "b"} {
		frame, ok := s.ReadBuffered()
		if want == "a" {
			var err error
			if frame, err = s.ReadFrame(); err != nil {
				t.Fatal(err)
			}
			ok = true
		}
		if !ok || string(frame) != want {
			t.Errorf("got %q %v, want %q", frame, ok, want)
		}
	}
	if frame, ok := s.ReadBuffered(); ok {
		t.Errorf("half a line was returned: %q", frame)
	}
	go func() {
		io.WriteString(w, " more\n")
		w.Close()
	}()
	if frame, err := s.ReadFrame(); err != nil || string(frame) != "half more" {
		t.Errorf("%q %v", frame, err)
	}
}

// TestOwnLongFrames: a frame stays what it was, however long it and its neighbours
// are, and however much comes with one read.
func TestOwnLongFrames(t *testing.T) {
	var text strings.Builder
	var want []string
	for i, n := range []int{70_000, 90_000, 60_000, 60_000, 150_000, 10, 66_000, 65_536, 65_537, 65_535, 200_000, 80_000, 1, 90_000, 60_000, 60_000} {
		line := strings.Repeat(string(rune('a'+i)), n)
		want = append(want, line)
		text.WriteString(line + "\n")
	}
	s := transport.NewLineStream(strings.NewReader(text.String()), io.Discard)
	var owned [][]byte
	for i := range want {
		frame, ok := s.ReadBuffered()
		if !ok {
			var err error
			if frame, err = s.ReadFrame(); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		owned = append(owned, s.Own(frame))
	}
	for i := range want {
		if string(owned[i]) != want[i] {
			t.Errorf("frame %d of %d bytes was changed by those after it", i, len(want[i]))
		}
	}
}

func TestOwn(t *testing.T) {
	s := transport.NewLineStream(strings.NewReader("first\nsecond\n"+strings.Repeat("x", 100_000)+"\nlast\n"), io.Discard)
	var owned [][]byte
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			break
		}
		owned = append(owned, s.Own(frame))
	}
	if string(owned[0]) != "first" || string(owned[1]) != "second" || len(owned[2]) != 100_000 || string(owned[3]) != "last" {
		t.Errorf("owned frames changed: %.20q", owned)
	}
}

func TestReadErrorPasses(t *testing.T) {
	s := transport.NewLineStream(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(io.ErrUnexpectedEOF)), io.Discard)
	if frame, err := s.ReadFrame(); err != nil || string(frame) != "a" {
		t.Fatalf("%s %v", frame, err)
	}
	if _, err := s.ReadFrame(); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
}

// countingWriter keeps each write apart.
type countingWriter struct{ writes []string }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes = append(w.writes, string(p))
	return len(p), nil
}

func TestWriteFrames(t *testing.T) {
	w := &countingWriter{}
	s := transport.NewLineStream(strings.NewReader(""), w)
	if err := s.WriteFrames([]byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteObject(map[string]string{"k": "<a\r\nb>"}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteFrames([]byte("a\nb")); err == nil {
		t.Error("a frame with a line feed was written")
	}
	if diff := cmp.Diff([]string{"a\nb\n", "{\"k\":\"<a\\r\\nb>\"}\n"}, w.writes); diff != "" {
		t.Error(diff)
	}
	s.Close()
	if err := s.WriteFrames([]byte("c")); err != transport.ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}

func TestReadObjectClears(t *testing.T) {
	s := transport.NewLineStream(strings.NewReader("{\"a\":1,\"b\":2}\n{\"a\":3}\n"), io.Discard)
	var v map[string]int
	for range 2 {
		if err := s.ReadObject(&v); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 3}, v); diff != "" {
		t.Error(diff)
	}
}

func TestPipe(t *testing.T) {
	a, b := transport.Pipe()
	payload := bytes.Repeat([]byte("x"), 1<<20) // far more than the pipe holds
	go func() {
		a.WriteFrames(payload)
		a.CloseWrite()
	}()
	frame, err := b.ReadFrame()
	if err != nil || len(frame) != len(payload) {
		t.Fatalf("%d bytes, %v", len(frame), err)
	}
	if _, err := b.ReadFrame(); err != io.EOF {
		t.Errorf("after CloseWrite: %v", err)
	}
	if err := b.WriteFrames([]byte("back")); err != nil {
		t.Errorf("the other direction: %v", err)
	}
	if frame, err := a.ReadFrame(); err != nil || string(frame) != "back" {
		t.Errorf("%s %v", frame, err)
	}
	a.Close()
	if err := b.WriteFrames(payload); err == nil {
		t.Error("a write to a closed end succeeded")
	}
}

// stuck is a pipe in blocking mode that nobody reads: closing does not end a write.
type stuck struct{ entered, free chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	close(s.entered)
	<-s.free
	return len(p), nil
}

func TestCloseDoesNotWaitForAHangingWrite(t *testing.T) {
	w := stuck{make(chan struct{}), make(chan struct{})}
	s := transport.NewLineStream(strings.NewReader(""), w)
	written := make(chan error)
	go func() { written <- s.WriteFrames([]byte("{}")) }()
	<-w.entered
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	close(w.free)
	if err := <-written; err != nil {
		t.Errorf("the write that was under way: %v", err)
	}
	if err := s.WriteFrames([]byte("{}")); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("a write after Close: %v; want ErrClosed", err)
	}
}

// FuzzReadFrame holds the reader against the obvious way of cutting lines.
func FuzzReadFrame(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\xef\xbb\xbf{}\r\n\n", "\r\r\n", strings.Repeat("y", 66_000) + "\nz", "a\n" + strings.Repeat("b", 300) + "\n\n", "\x00\n\xff\n"} {
		f.Add([]byte(seed), uint16(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint16) {
		limit := int(size) + 1
		var want []string
		for _, line := range bytes.Split(in, []byte("\n")) {
			if len(line) > limit {
				want = append(want, "too long: "+string(line[:1]))
				continue
			}
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(bytes.Trim(line, " \t\r")) > 0 {
				want = append(want, string(line))
			}
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.HalfReader(bytes.NewReader(in))} {
			if diff := cmp.Diff(want, readAll(t, r, transport.MaxFrame(limit))); diff != "" {
				t.Error(diff)
			}
		}
	})
}
