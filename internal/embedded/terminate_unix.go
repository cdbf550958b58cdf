//go:build unix

package embedded

import "syscall"

// terminate asks a process to end. The caller has seen that the lock is held, so the pid of the record is not a stranger's.
func terminate(pid int) {
	if pid > 1 {
		syscall.Kill(pid, syscall.SIGTERM)
	}
}
