// Package record sits between a client and a server, passes every byte on
// unchanged, and writes a transcript of what it saw: what the client sent as it
// was sent, what the server answered as expectations, captures for what the
// server made up and the client gave back, matchers for what cannot be the same
// twice, and no secrets.
package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Config says what to record.
type Config struct {
	Command []string
	Stdin   io.Reader // the client's side
	Stdout  io.Writer
	Stderr  io.Writer
	Title   string
	Redact  []string           // further texts that must not be written
	Write   func([]byte) error // called with the whole transcript, more than once; the last call holds
	Signals <-chan os.Signal   // passed on to the server
}

// entry is one line that passed, or an event of the process.
type entry struct {
	at   time.Duration
	dir  byte // '>' to the server, '<' from it, 'e' end of input, 'x' exit
	data []byte
	code int
}

type recorder struct {
	cfg   Config
	start time.Time

	mu       sync.Mutex // guards the fields below
	entries  []entry
	signaled bool // the client did not let the server leave by itself
}

func (r *recorder) add(dir byte, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entry{at: time.Since(r.start), dir: dir, data: bytes.Clone(data)})
}

// Run passes everything through until the server ends, and returns its exit
// code. The transcript is written when the client ends the input or a signal
// comes, and again when the server has left: a client may kill us in between.
func Run(ctx context.Context, cfg Config) (int, error) {
	if len(cfg.Command) == 0 {
		return 0, errors.New("no command given")
	}
	r := &recorder{cfg: cfg, start: time.Now()}
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Stderr = cfg.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 0, err
	}
	go r.fromClient(in)
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.fromServer(out)
	}()
	ended := make(chan struct{})
	go r.signals(ctx, cmd, ended)
	<-served
	err := cmd.Wait()
	close(ended)
	r.mu.Lock()
	last := entry{at: time.Since(r.start), dir: 'x', code: cmd.ProcessState.ExitCode()}
	if r.signaled {
		last.code = -1
	}
	r.entries = append(r.entries, last)
	r.mu.Unlock()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), r.save()
}

func (r *recorder) signals(ctx context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	for {
		select {
		case sig := <-r.cfg.Signals:
			r.mu.Lock()
			r.signaled = true
			r.mu.Unlock()
			_ = r.save() // the last call reports what could not be written
			_ = cmd.Process.Signal(sig)
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return
		case <-ended:
			return
		}
	}
}

// fromClient passes bytes on at once and notes lines as they become complete.
func (r *recorder) fromClient(to io.WriteCloser) {
	rest := r.copy(r.cfg.Stdin, to, '>')
	if len(rest) > 0 {
		r.add('>', rest)
	}
	r.add('e', nil)
	to.Close()
	_ = r.save()
}

func (r *recorder) fromServer(from io.Reader) {
	if rest := r.copy(from, r.cfg.Stdout, '<'); len(rest) > 0 {
		r.add('<', rest)
	}
}

// copy passes bytes on and returns an unterminated last line. A line is noted
// before it is passed on, so that an answer never precedes its question.
func (r *recorder) copy(from io.Reader, to io.Writer, dir byte) []byte {
	buf := make([]byte, 64<<10)
	var line []byte
	broken := false
	for {
		n, err := from.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			head, tail, found := bytes.Cut(rest, []byte("\n"))
			line = append(line, head...)
			if rest = tail; found {
				r.add(dir, line)
				line = line[:0]
			}
		}
		if n > 0 && !broken {
			if _, werr := to.Write(buf[:n]); werr != nil {
				broken = true // the peer is gone; the rest is still recorded
			}
		}
		if err != nil {
			return line
		}
	}
}

func (r *recorder) save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := compose(r.entries, r.cfg)
	if err != nil {
		return fmt.Errorf("composing the transcript: %w", err)
	}
	return r.cfg.Write(text)
}
