package hosts

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// locker locks a file in the user's own temporary directory, as directories cannot
// be locked.
func locker(path string) *flock.Flock {
	return flock.New(filepath.Join(os.TempDir(), fmt.Sprintf("fabro-hosts-%x.lock", sha256.Sum256([]byte(path)))))
}

// release removes the file too; one that somebody else has open stays, and is
// removed by the last of them.
func release(l *flock.Flock) error {
	err := l.Unlock()
	os.Remove(l.Path())
	return err
}
