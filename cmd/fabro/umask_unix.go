//go:build unix

package main

import "syscall"

// ownerBits are the rights of a file's owner.
const ownerBits = 0o700

// keepOwnRights takes out of the umask what would keep this process from what it
// has just made: every file and directory of ours, those of SQLite and of the
// locks too, is made with the rights that its owner needs and no more. What the
// umask denies to others it goes on denying, here and in the commands of stages.
func keepOwnRights() {
	mask := syscall.Umask(ownerBits | 0o077)
	syscall.Umask(mask &^ ownerBits)
}
