//go:build unix

package transport

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeStdio moves descriptors 0 and 1 to numbers that no child inherits, and puts
// /dev/null and standard error in their place.
func takeStdio() (in, out *os.File, err error) {
	// A closed reader shows as an error of the write, not as the death of the
	// process. Caught rather than ignored: children would inherit the ignoring.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	inFD, err := dupAbove(0)
	if err != nil {
		return nil, nil, err
	}
	outFD, err := dupAbove(1)
	if err != nil {
		unix.Close(inFD)
		return nil, nil, err
	}
	null, err := devNull()
	if err == nil {
		err = replace(int(null.Fd()), 0)
	}
	if err == nil {
		if err = replace(2, 1); err != nil {
			err = replace(int(null.Fd()), 1) // standard error is closed
		}
	}
	if err != nil {
		unix.Close(inFD)
		unix.Close(outFD)
		return nil, nil, err
	}
	null.Close()
	return os.NewFile(uintptr(inFD), "stdin"), os.NewFile(uintptr(outFD), "stdout"), nil
}

func dupAbove(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}

// hungUp asks the system whether the other end of a pipe or socket is closed.
func hungUp(f *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: hangup}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&hangup != 0
}
