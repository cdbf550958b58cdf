//go:build unix

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// guard is a shell that leads the process group of one child and waits for the
// end of a pipe that only the harness holds. When the harness dies, by
// whatever means, the pipe ends and the guard kills the group, itself included.
// Leading the group before the child exists leaves no moment in which the
// child is unguarded.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	done chan struct{}
}

func newGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", `trap "" INT TERM HUP QUIT; read _; kill -KILL 0`)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &guard{cmd: cmd, pipe: pipe, done: make(chan struct{})}
	go func() { cmd.Wait(); close(g.done) }()
	return g, nil
}

// adopt makes the child a member of the guard's group.
func (g *guard) adopt(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.cmd.Process.Pid}
}

func (g *guard) started(*exec.Cmd) error { return nil }

// kill kills the group; closing the pipe would do so too, a little later. The
// guard is not reaped before the signal was sent, so its group id is its own.
func (g *guard) kill() {
	select {
	case <-g.done:
	default:
		syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	}
	g.pipe.Close()
	<-g.done
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "PIPE": syscall.SIGPIPE,
}

func sendSignal(p *os.Process, name string) error {
	sig, ok := signals[name]
	if !ok {
		return fmt.Errorf("unknown signal %q", name)
	}
	return p.Signal(sig)
}

func stateOf(ps *os.ProcessState) State {
	if ps == nil {
		return State{Code: -1}
	}
	s := State{Code: ps.ExitCode(), CPU: ps.UserTime() + ps.SystemTime()}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		s.Signal = strings.TrimPrefix(ws.Signal().String(), "SIG")
		for name, sig := range signals {
			if sig == ws.Signal() {
				s.Signal = name
			}
		}
	}
	return s
}
