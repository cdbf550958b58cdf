//go:build linux

package transport

import "golang.org/x/sys/unix"

func replace(oldFD, newFD int) error { return unix.Dup3(oldFD, newFD, 0) }

// hangup is what poll says of an end that is closed, and of a socket that is closed
// in one direction.
const hangup = unix.POLLHUP | unix.POLLRDHUP
