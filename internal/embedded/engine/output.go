package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	// DefaultMaxOutput bounds the output of one stage that is kept, in bytes. What comes after it is counted and
	// dropped, except for the last part.
	DefaultMaxOutput = 8 << 20

	// keptTail is how much of the end of an output is held in memory, and written behind a capped log.
	keptTail = 64 << 10

	// failureTail is how much of the end of an output a failure message quotes.
	failureTail = 4096
)

// maxNodeName is how long the name of a node may be in a path, in bytes; file systems take 255 for the whole name.
const maxNodeName = 200

// StageLogPath is where the live output of a stage is found: <runDir>/runtime/stages/<node>@<ordinal>/output.log, the
// node percent-encoded (a very long one cut, with a hash of the whole) and the ordinal in four digits. The id has the
// form node@ordinal.
func StageLogPath(runDir, stageID string) string {
	node, ordinal := stageID, 1
	if at := strings.LastIndexByte(stageID, '@'); at >= 0 {
		if n, err := strconv.Atoi(stageID[at+1:]); err == nil {
			node, ordinal = stageID[:at], n
		}
	}
	name := url.PathEscape(node)
	if len(name) > maxNodeName {
		sum := sha256.Sum256([]byte(node))
		name = name[:maxNodeName-34] + "~" + hex.EncodeToString(sum[:16])
	}
	return filepath.Join(runDir, "runtime", "stages", fmt.Sprintf("%s@%04d", name, ordinal), "output.log")
}

// output collects what one execution of a stage writes: live into the stage's log file, its end in memory. A second
// attempt appends to the same file. Writers may go on after close; what they write is dropped.
type output struct {
	mu     sync.Mutex
	file   *os.File
	start  int64 // where this execution begins in the file
	max    int64
	total  int64 // bytes written to it, kept or not
	tail   []byte
	err    error // the first error of the file
	closed bool
}

func openOutput(path string, limit int64) (*output, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the stage's log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the stage's log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot open the stage's log: %w", err)
	}
	return &output{file: file, start: info.Size(), max: limit}, nil
}

// Write never fails: a process must not be stopped by the state of our disk in the middle of a line. The error is
// reported by finish.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	if room := o.max - o.total; room > 0 && o.err == nil {
		_, o.err = o.file.Write(p[:min(int64(len(p)), room)])
	}
	o.total += int64(len(p))
	if len(p) >= keptTail {
		o.tail = append(o.tail[:0], p[len(p)-keptTail:]...)
	} else {
		if len(o.tail)+len(p) > 2*keptTail {
			o.tail = append(o.tail[:0], o.tail[len(o.tail)-keptTail:]...)
		}
		o.tail = append(o.tail, p...)
	}
	return len(p), nil
}

// finish ends the collection and returns the text as far as it was kept, and the count of all bytes.
func (o *output) finish() (text string, total int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	defer o.file.Close()
	if o.total > o.max && o.err == nil {
		tail := o.lastLocked(keptTail)
		_, o.err = fmt.Fprintf(o.file, "\n[output capped: %d bytes in all, the first %d above, the last %d below]\n%s",
			o.total, o.max, len(tail), tail)
	}
	if o.err != nil {
		return "", o.total, fmt.Errorf("cannot write the stage's log: %w", o.err)
	}
	if o.total <= int64(len(o.tail)) {
		return strings.ToValidUTF8(string(o.tail), "\uFFFD"), o.total, nil
	}
	info, err := o.file.Stat()
	if err != nil {
		return "", o.total, fmt.Errorf("cannot read the stage's log: %w", err)
	}
	kept := make([]byte, info.Size()-o.start)
	if _, err := o.file.ReadAt(kept, o.start); err != nil {
		return "", o.total, fmt.Errorf("cannot read the stage's log: %w", err)
	}
	return strings.ToValidUTF8(string(kept), "\uFFFD"), o.total, nil
}

// close ends the collection without a look at the text.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return errors.Join(o.err, o.file.Close())
}

// last returns the last n bytes of the output as text.
func (o *output) last(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lastLocked(n)
}

func (o *output) lastLocked(n int) string {
	tail := o.tail
	if len(tail) > n {
		tail = tail[len(tail)-n:]
		for len(tail) > 0 && tail[0]&0xC0 == 0x80 {
			tail = tail[1:]
		}
	}
	return strings.ToValidUTF8(string(tail), "\uFFFD")
}

// tailWriter keeps the end of what is written to it, and passes all of it on.
type tailWriter struct {
	also *output
	mu   sync.Mutex
	tail []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail = append(t.tail, p...)
	if len(t.tail) > 2*failureTail {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-failureTail:]...)
	}
	return t.also.Write(p)
}

func (t *tailWriter) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.tail[max(len(t.tail)-failureTail, 0):]), "\uFFFD")
}

// headWriter keeps the beginning of what is written to it and counts the rest.
type headWriter struct {
	max   int
	mu    sync.Mutex
	head  []byte
	total int64
}

func (h *headWriter) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = append(h.head, p[:min(len(p), h.max-len(h.head))]...)
	h.total += int64(len(p))
	return len(p), nil
}

func (h *headWriter) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := strings.ToValidUTF8(string(h.head), "\uFFFD")
	if h.total > int64(len(h.head)) {
		text += fmt.Sprintf("\n[capped: %d bytes in all]", h.total)
	}
	return text
}
