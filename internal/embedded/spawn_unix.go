//go:build unix

package embedded

import (
	"os"
	"strconv"
	"syscall"
)

// rootDir is where a server works: no directory of a person is kept busy by it.
const rootDir = "/"

// detached gives a server a session of its own: it does not end with our terminal or process group.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// closeOnExec marks every descriptor of this process but the standard ones. Go marks its own; a host may have left us
// some of its pipes, which must not stay open in a server that outlives it.
func closeOnExec() {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				syscall.CloseOnExec(fd)
			}
		}
		return
	}
}
