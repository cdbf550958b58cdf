//go:build unix

package engine

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// needsGate: a started process waits until its group is on record, so that no moment exists in which a killed daemon
// leaves a process behind that nobody knows of.
const needsGate = true

// gated returns a command that runs path with args as soon as a line arrives on descriptor 3, and ends at once if that
// descriptor is closed without one.
func gated(path string, args []string) *exec.Cmd {
	const wait = `IFS= read -r _ <&3 || exit 126; exec 3<&-; exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", wait, "fabro", path}, args...)...)
}

// lookPath finds a program in the PATH of the environment it will have, which need not be our own. A name with a slash
// is looked for from the directory it will run in.
func lookPath(name, dir string, env []string) (string, error) {
	executable := func(path string) bool {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		info, err := os.Stat(path)
		return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
	}
	if strings.Contains(name, "/") {
		if executable(name) {
			return name, nil
		}
		return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	search := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = value
		}
	}
	for _, folder := range filepath.SplitList(search) {
		if path := filepath.Join(cmp.Or(folder, "."), name); executable(path) {
			if !strings.Contains(path, "/") {
				path = "./" + path
			}
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// A group is a process group and what tells it apart from a later one with the same number.
type group struct {
	id      int
	started string // the leader's start time, as the system counts it; "" if unknown
	session int    // 0 if unknown
}

func newGroup(cmd *exec.Cmd) (group, error) {
	g := group{id: cmd.Process.Pid}
	if m, ok := look(g.id); ok {
		g.started, g.session = m.started, m.session
	}
	return g, nil
}

// alive reports whether a process of the group is running. Ended ones that nobody has collected do not count.
func (g group) alive() bool {
	if syscall.Kill(-g.id, 0) == syscall.ESRCH {
		return false
	}
	members, known := membersOf(g.id)
	if !known {
		return true
	}
	for _, m := range members {
		if m.ended || (g.session != 0 && m.session != g.session) {
			continue
		}
		if m.pid == g.id && m.started != g.started {
			return false // somebody else's leader has our number now
		}
		return true
	}
	return false
}

func (g group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) } // gone already is fine

func (g group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

func (g group) release() {}

func (g group) note() string {
	started := g.started
	if started == "" {
		started = "-"
	}
	return fmt.Sprintf("%d %d %s", g.id, g.session, started)
}

func notedGroup(line string) (group, bool) {
	var g group
	if n, err := fmt.Sscanf(line, "%d %d %s", &g.id, &g.session, &g.started); n != 3 || err != nil {
		return group{}, false
	}
	// Without a start time nothing would tell our group from a later one: rather leave it.
	return g, g.id > 1 && g.id != os.Getpid() && g.started != "-"
}

// A member is one process of a group.
type member struct {
	pid, session int
	started      string
	ended        bool
}
