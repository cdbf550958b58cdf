//go:build unix

package embedded

import (
	"os/signal"
	"syscall"
)

// limitFileSize lets no file of this process grow beyond n bytes, as a disk that is full does.
func limitFileSize(n uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
