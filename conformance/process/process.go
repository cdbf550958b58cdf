// Package process runs the server under test: a child whose standard input is
// written without ever blocking the caller, whose standard output is read as
// raw lines, and which never outlives the harness, however that ends.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	Command []string // argv; Command[0] is looked up in PATH
	Env     []string // nil: the harness's own environment
	Dir     string   // "": the harness's own directory
	OnLine  func(Line)
	OnErr   func([]byte) // a piece of standard error, as read
	OnExit  func(State)  // after the last line
}

// Line is one line of standard output, without its newline.
type Line struct {
	At         time.Time
	Data       []byte
	Terminated bool // false only for a last line without newline
	TooLong    bool // the rest of a line over MaxLine was thrown away
}

// MaxLine is the longest line that is kept whole.
const MaxLine = 256 << 20

// State is how the process ended.
type State struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // such as TERM
	CPU    time.Duration
}

func (s State) String() string {
	if s.Signal != "" {
		return "killed by SIG" + s.Signal
	}
	return fmt.Sprintf("exit code %d", s.Code)
}

// Process is a running child. All methods are safe for concurrent use.
type Process struct {
	Started time.Time

	cmd    *exec.Cmd
	guard  *guard
	stdin  *queue
	stdout io.ReadCloser

	out, err reader // of standard output and standard error

	gate    gate
	readers sync.WaitGroup
	outRead chan struct{} // closed when standard output is read no more
	done    chan struct{}

	mu    sync.Mutex // protects the fields below
	state State
}

// Start starts the child. Nothing survives a cancelled ctx.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if len(spec.Command) == 0 {
		return nil, errors.New("no command given")
	}
	guard, err := newGuard()
	if err != nil {
		return nil, fmt.Errorf("starting the guard process: %w", err)
	}
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	guard.adopt(cmd)
	stdin, err1 := cmd.StdinPipe()
	// Plain pipes: cmd.Wait must not close them before the last line is read,
	// and a grandchild that holds them open must not hold us up.
	outR, outW, err2 := os.Pipe()
	errR, errW, err3 := os.Pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		guard.kill()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	err = cmd.Start()
	outW.Close()
	errW.Close()
	if err != nil {
		outR.Close()
		errR.Close()
		guard.kill()
		return nil, fmt.Errorf("starting %s: %w", spec.Command[0], err)
	}
	p := &Process{Started: time.Now(), cmd: cmd, guard: guard, stdin: newQueue(stdin), stdout: outR, outRead: make(chan struct{}), done: make(chan struct{})}
	if err := guard.started(cmd); err != nil {
		p.stdin.shut()
		cmd.Process.Kill()
	}
	p.gate.open()
	p.out.Reader, p.err.Reader = outR, errR
	p.readers.Add(2)
	lines, handedOut := newBacklog(), make(chan struct{})
	go func() {
		defer p.readers.Done()
		defer lines.end()
		defer close(p.outRead)
		p.readLines(&p.out, lines.add)
	}()
	go func() {
		defer close(handedOut)
		lines.handOut(spec.OnLine)
	}()
	go func() { defer p.readers.Done(); readErr(&p.err, spec.OnErr) }()
	stop := context.AfterFunc(ctx, p.Kill)
	go func() {
		defer stop()
		p.wait(outR, errR, handedOut, spec.OnExit)
	}()
	return p, nil
}

// drainGrace is how long a reader may find nothing to read after the child
// ended: a grandchild may hold the pipe open for ever. Time spent on lines that
// were read does not count, so nothing that was written is lost to a slow judge.
const drainGrace = 3 * time.Second

// drain waits until both readers met the end, or found nothing for drainGrace.
func (p *Process) drain(drained <-chan struct{}) {
	exited := time.Now().UnixNano()
	tick := time.NewTicker(drainGrace / 10)
	defer tick.Stop()
	for {
		select {
		case <-drained:
			return
		case <-tick.C:
		}
		idle := true
		for _, r := range []*reader{&p.out, &p.err} {
			since := r.since.Load()
			idle = idle && (since == over || since > 0 && time.Now().UnixNano()-max(since, exited) > int64(drainGrace))
		}
		if idle {
			return
		}
	}
}

// reader notes since when a read has been waiting: 0 while what was read is
// being handled, over after the end.
type reader struct {
	io.Reader
	since atomic.Int64
}

const over = -1

func (r *reader) Read(b []byte) (int, error) {
	r.since.Store(time.Now().UnixNano())
	n, err := r.Reader.Read(b)
	r.since.Store(0)
	if err != nil {
		r.since.Store(over)
	}
	return n, err
}

func (p *Process) wait(out, stderr io.Closer, handedOut <-chan struct{}, onExit func(State)) {
	err := p.cmd.Wait()
	state := stateOf(p.cmd.ProcessState)
	if err != nil && p.cmd.ProcessState == nil {
		state = State{Code: -1}
	}
	p.gate.open() // a script that stopped reading still gets the rest
	drained := make(chan struct{})
	go func() { p.readers.Wait(); close(drained) }()
	p.drain(drained)
	out.Close()
	stderr.Close()
	<-drained
	<-handedOut
	p.stdin.shut()
	p.mu.Lock()
	p.state = state
	p.mu.Unlock()
	if onExit != nil {
		onExit(state)
	}
	close(p.done)
}

// Write queues bytes for standard input; a full pipe holds up nobody. Each
// call is one write to the pipe, in order.
func (p *Process) Write(data []byte) { p.stdin.add(data) }

// CloseStdin ends the input after what is queued has been written.
func (p *Process) CloseStdin() { p.stdin.end() }

// CloseStdout closes our end of standard output. When it returns the child can no
// longer write there: the descriptor of a file lives on while a read of it waits,
// and in another child that has been forked and not yet executed.
func (p *Process) CloseStdout() {
	p.gate.open()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	p.stdout.Close()
	<-p.outRead
}

// SetReading stops or resumes reading standard output.
func (p *Process) SetReading(on bool) {
	if on {
		p.gate.open()
	} else {
		p.gate.shut()
	}
}

// Signal sends a signal named TERM, INT, HUP, KILL, STOP or CONT.
func (p *Process) Signal(name string) error { return sendSignal(p.cmd.Process, name) }

// Done is closed after the process ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// State is valid after Done.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill kills the child and everything it started, at once.
func (p *Process) Kill() { p.guard.kill() }

// Close ends the input, waits up to grace for the child to leave, and kills
// what is left of it.
func (p *Process) Close(grace time.Duration) {
	p.CloseStdin()
	p.gate.open()
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.Kill()
	<-p.done
}

// readLines hands on each line. It reads only while the gate is open.
func (p *Process) readLines(r io.Reader, on func(Line)) {
	buf := make([]byte, 64<<10)
	var line []byte
	tooLong := false
	emit := func(terminated bool) {
		if on != nil {
			on(Line{time.Now(), bytes.Clone(line), terminated, tooLong})
		}
		line, tooLong = line[:0], false
		if cap(line) > 1<<20 {
			line = nil
		}
	}
	for {
		p.gate.wait()
		n, err := r.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			head, tail, found := bytes.Cut(rest, []byte("\n"))
			if len(line)+len(head) > MaxLine {
				tooLong = true
			} else {
				line = append(line, head...)
			}
			if rest = tail; found {
				emit(true)
			}
		}
		if err != nil {
			if len(line) > 0 {
				emit(false)
			}
			return
		}
	}
}

func readErr(r io.Reader, on func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && on != nil {
			on(bytes.Clone(buf[:n]))
		}
		if err != nil {
			return
		}
	}
}

// gate lets readers pass only while it is open.
type gate struct {
	mu   sync.Mutex // protects pass
	pass chan struct{}
}

func (g *gate) channel() chan struct{} {
	if g.pass == nil {
		g.pass = make(chan struct{})
	}
	return g.pass
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.channel():
	default:
		close(g.pass)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.channel():
		g.pass = make(chan struct{})
	default:
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	c := g.channel()
	g.mu.Unlock()
	<-c
}

// queue writes to a pipe in the background, one write a piece.
type queue struct {
	w io.WriteCloser

	mu     sync.Mutex // protects the fields below
	wake   *sync.Cond
	pieces [][]byte
	ended  bool // close after the last piece
	dead   bool // write nothing more
}

func newQueue(w io.WriteCloser) *queue {
	q := &queue{w: w}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

func (q *queue) add(data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pieces = append(q.pieces, data)
	q.wake.Signal()
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wake.Signal()
}

// shut gives up what is queued; a write in progress fails.
func (q *queue) shut() {
	q.mu.Lock()
	q.dead = true
	q.wake.Signal()
	q.mu.Unlock()
	q.w.Close()
}

func (q *queue) run() {
	defer q.w.Close()
	for {
		q.mu.Lock()
		for len(q.pieces) == 0 && !q.ended && !q.dead {
			q.wake.Wait()
		}
		if q.dead || len(q.pieces) == 0 {
			q.mu.Unlock()
			return
		}
		piece := q.pieces[0]
		q.pieces = q.pieces[1:]
		q.mu.Unlock()
		if piece == nil { // a gap, so that the reader meets a split message
			time.Sleep(splitGap)
			continue
		}
		if _, err := q.w.Write(piece); err != nil {
			return
		}
	}
}

// splitGap is the time between two pieces of a split message.
const splitGap = 5 * time.Millisecond

// Gap makes the next write a read of its own for the child, as far as a pipe
// allows.
func (p *Process) Gap() { p.stdin.add(nil) }
