//go:build linux

package transport

import "golang.org/x/sys/unix"

func replace(oldFD, newFD int) error { return unix.Dup3(oldFD, newFD, 0) }
