//go:build unix

package runs

import (
	"syscall"
	"time"
)

// cpuTime is what this process has computed so far: other than the time on the clock it does not depend on what else the machine does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
