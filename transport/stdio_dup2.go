//go:build unix && !linux

package transport

import "golang.org/x/sys/unix"

func replace(oldFD, newFD int) error { return unix.Dup2(oldFD, newFD) }

// hangup is what poll says of an end that is closed.
const hangup = unix.POLLHUP
