package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// closeGrace is how long [Child.Close] waits after each step: end of input, then a
// request to terminate, then a kill.
const closeGrace = 2 * time.Second

// Child is a child process that speaks frames on its standard streams.
type Child struct {
	*LineStream
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
	err    error // of Wait; valid once exited is closed
}

// Command starts cmd and returns it as a stream. Its Stdin and Stdout must not be
// set; Stderr is the caller's. The child is killed when ctx ends.
func Command(ctx context.Context, cmd *exec.Cmd, opts ...Option) (*Child, error) {
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("transport: the child's standard input and output belong to the stream")
	}
	// Own pipes rather than StdoutPipe: Wait would close that one while replies
	// are still unread.
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = inR, outW
	err = cmd.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		return nil, err
	}
	c := &Child{cmd: cmd, stdin: inW, exited: make(chan struct{})}
	c.LineStream = NewLineStream(outR, inW, append(opts[:len(opts):len(opts)], OnClose(outR))...)
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	return c, nil
}

// CloseWrite closes the child's standard input, which asks it to finish.
func (c *Child) CloseWrite() error { return c.stdin.Close() }

// Exited is closed when the child has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Wait waits for the child's end and returns what exec.Cmd.Wait returned.
func (c *Child) Wait() error {
	<-c.exited
	return c.err
}

// ProcessState tells how the child ended; nil while it runs.
func (c *Child) ProcessState() *os.ProcessState {
	select {
	case <-c.exited:
		return c.cmd.ProcessState
	default:
		return nil
	}
}

// Pid is the child's process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Close ends the child as the stdio transport lays down: its input is closed, and
// if it does not end within two seconds it is asked to terminate, then killed. It
// returns the error of Wait, if any.
func (c *Child) Close() error {
	c.stdin.Close()
	steps := []func(){func() { terminate(c.cmd.Process) }, func() { c.cmd.Process.Kill() }}
	for _, step := range steps {
		timer := time.NewTimer(closeGrace)
		select {
		case <-c.exited:
			timer.Stop()
			c.LineStream.Close()
			return c.err
		case <-timer.C:
			step()
		}
	}
	<-c.exited
	c.LineStream.Close()
	return c.err
}
