//go:build unix

package transport

import (
	"os"
	"syscall"
)

func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }
