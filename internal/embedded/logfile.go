package embedded

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
)

// Limits of the server's log.
const (
	maxLogBytes = 5 << 20 // of one file
	oldLogs     = 3       // files kept beside it: server.log.1 is the youngest
)

// logFile is a log that is rotated when it has grown. It also receives what a dying process has to say.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	f    *os.File
	size int64
}

func openLog(path string, max int64) (*logFile, error) {
	l := &logFile{path: path, max: max}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size = f, info.Size()
	// The stack of a crash belongs into the log: a detached server has no terminal.
	debug.SetCrashOutput(f, debug.CrashOptions{})
	return nil
}

// Write never fails for want of a log: a server that cannot log goes on serving.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(b)) > l.max && l.size > 0 {
		l.rotate()
	}
	if l.f != nil {
		n, _ := l.f.Write(b)
		l.size += int64(n)
	}
	return len(b), nil
}

func (l *logFile) rotate() {
	old := l.f
	for i := oldLogs; i > 1; i-- {
		os.Rename(fmt.Sprintf("%s.%d", l.path, i-1), fmt.Sprintf("%s.%d", l.path, i))
	}
	if old != nil {
		old.Close() // Windows renames no open file
	}
	l.f = nil
	os.Rename(l.path, l.path+".1")
	if err := l.open(); err != nil {
		l.size = 0
	}
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	debug.SetCrashOutput(nil, debug.CrashOptions{})
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// tail returns the last lines of what was written to a log after offset from, at most n of them.
func tail(path string, from int64, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const window = 16 << 10
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	if from > info.Size() {
		from = 0 // rotated
	}
	start := max(from, info.Size()-window)
	text := make([]byte, info.Size()-start)
	got, _ := f.ReadAt(text, start)
	lines := strings.Split(strings.TrimRight(string(text[:got]), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
