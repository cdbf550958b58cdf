//go:build unix

package hosts

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// locker locks the directory itself: no further file is needed in a place that
// belongs to the host, and none in one that belongs to all users.
func locker(path string) *flock.Flock {
	return flock.New(filepath.Dir(path), flock.SetFlag(os.O_RDONLY))
}

func release(l *flock.Flock) error { return l.Unlock() }
