package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// termGrace is how long a process group has between SIGTERM and SIGKILL.
	termGrace = 2 * time.Second

	// drainGrace is how long we go on reading the output of a process that has ended while something it left behind
	// still holds the other end. What it wrote itself is in the pipe by then.
	drainGrace = 500 * time.Millisecond

	// loadedGrace is added to it when nothing of the group is left: then either the machine is too busy to read what is
	// in the pipe, or a process that left the group holds it open.
	loadedGrace = 5 * time.Second
)

// A process is what to start: argv[0] is a path or a name to look up in PATH. Both outputs may be the same writer, and
// then they are one pipe, in the order of writing.
type process struct {
	argv           []string
	dir            string
	env            []string
	stdin          []byte // nil: /dev/null
	stdout, stderr io.Writer
}

// An exit says how a process ended. code is -1 when a signal ended it.
type exit struct {
	code     int
	duration time.Duration
	stopped  bool // we ended it, because its context was done
}

// processes starts the processes of one run and sees to their end: each is the leader of a group of its own; when its
// context is done the group gets SIGTERM and after a grace SIGKILL; what a process leaves running in its group may go on
// (a server that a later stage tests) until the run ends. A process that leaves its group on purpose (setsid) is out of
// reach.
type processes struct {
	record    string // file that names the groups for KillLeftovers; "" for none
	termGrace time.Duration

	mu        sync.Mutex
	lingering []*lingering
}

// lingering is what outlived its stage.
type lingering struct {
	group   group
	readers []*os.File
	drained []<-chan struct{}
}

// run starts p and waits for its end. An error means that it could not be started; it ends the run when it says that the
// process could not be put on record, as on a full disk.
func (ps *processes) run(ctx context.Context, p process) (exit, error) {
	path, err := lookPath(p.argv[0], p.dir, p.env)
	if err != nil {
		return exit{}, err
	}
	cmd := gated(path, p.argv[1:])
	cmd.Dir, cmd.Env = p.dir, p.env
	setGroup(cmd)

	var ours, theirs []*os.File // ends of the pipes
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var readers []*os.File
	var sinks []io.Writer
	outR, outW := pipe()
	if err == nil {
		ours, theirs, readers, sinks = append(ours, outR), append(theirs, outW), append(readers, outR), append(sinks, p.stdout)
		cmd.Stdout, cmd.Stderr = outW, outW
	}
	if p.stderr != p.stdout {
		if errR, errW := pipe(); err == nil {
			ours, theirs, readers, sinks = append(ours, errR), append(theirs, errW), append(readers, errR), append(sinks, p.stderr)
			cmd.Stderr = errW
		}
	}
	var feed *os.File
	if p.stdin != nil {
		if inR, inW := pipe(); err == nil {
			theirs, ours, feed = append(theirs, inR), append(ours, inW), inW
			cmd.Stdin = inR
		}
	}
	var gate *os.File
	if needsGate {
		if gateR, gateW := pipe(); err == nil {
			theirs, ours, gate = append(theirs, gateR), append(ours, gateW), gateW
			cmd.ExtraFiles = []*os.File{gateR}
		}
	}
	began := time.Now()
	if err == nil {
		err = cmd.Start()
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return exit{}, err
	}

	g, err := newGroup(cmd)
	if err == nil {
		err = ps.note(g)
	}
	if gate != nil {
		if err == nil {
			_, err = gate.WriteString("\n")
		}
		gate.Close()
	}
	if err != nil {
		g.kill()
		_ = cmd.Wait() // killed by us; how it ended says nothing
		g.release()
		closeAll(ours)
		return exit{}, fatal("cannot take charge of a process: " + err.Error())
	}
	fed := make(chan struct{})
	if feed == nil {
		close(fed)
	} else {
		go func() {
			defer close(fed)
			// A process that does not want its input closes the pipe; that is its own affair.
			_, _ = feed.Write(p.stdin)
			feed.Close()
		}()
	}
	var drained []<-chan struct{}
	for i, r := range readers {
		done := make(chan struct{})
		drained = append(drained, done)
		go func() {
			defer close(done)
			_, _ = io.Copy(sinks[i], r) // ends with the last writer, or when we close our end
		}()
	}

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the state says it all
	}()
	var result exit
	select {
	case <-ended:
	case <-ctx.Done():
		result.stopped = true
		ps.terminate(g, ended)
		<-ended
	}
	result.duration = time.Since(began)
	result.code = cmd.ProcessState.ExitCode()
	if feed != nil {
		feed.Close()
	}
	<-fed
	ps.settle(g, readers, drained)
	return result, nil
}

// terminate ends a group: SIGTERM, and SIGKILL for what is left after the grace.
func (ps *processes) terminate(g group, ended <-chan struct{}) {
	g.terminate()
	patience := time.NewTimer(ps.termGrace)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		g.kill()
		return
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for g.alive() {
		select {
		case <-poll.C:
		case <-patience.C:
			g.kill()
			return
		}
	}
}

// settle takes leave of an ended process: its output is read to the end, or what holds it open is kept for close.
func (ps *processes) settle(g group, readers []*os.File, drained []<-chan struct{}) {
	read := allDone(drained, drainGrace)
	if !read && !g.alive() {
		read = allDone(drained, loadedGrace)
	}
	if !read || g.alive() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.lingering = append(ps.lingering, &lingering{group: g, readers: readers, drained: drained})
		return
	}
	for _, r := range readers {
		r.Close()
	}
	g.release()
}

// allDone waits until all channels are closed, and reports false when that takes too long.
func allDone(channels []<-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, done := range channels {
		select {
		case <-done:
		case <-timer.C:
			return false
		}
	}
	return true
}

// close ends everything the run's processes left behind and forgets the record.
func (ps *processes) close() {
	ps.mu.Lock()
	left := ps.lingering
	ps.lingering = nil
	ps.mu.Unlock()
	never := make(chan struct{})
	close(never)
	var wg sync.WaitGroup
	for _, l := range left {
		wg.Go(func() {
			if l.group.alive() {
				ps.terminate(l.group, never)
			}
			for _, r := range l.readers {
				r.Close()
			}
			for _, done := range l.drained {
				<-done
			}
			l.group.release()
		})
	}
	wg.Wait()
	if ps.record != "" {
		// A record that stays behind names groups that are gone, and KillLeftovers checks before it kills.
		_ = os.Remove(ps.record)
	}
}

// note writes the group into the record, before the process does anything.
func (ps *processes) note(g group) error {
	line := g.note()
	if ps.record == "" || line == "" {
		return nil
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	f, err := os.OpenFile(ps.record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
