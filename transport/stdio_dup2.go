//go:build unix && !linux

package transport

import "golang.org/x/sys/unix"

func replace(oldFD, newFD int) error { return unix.Dup2(oldFD, newFD) }
