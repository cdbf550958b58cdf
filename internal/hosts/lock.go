package hosts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockWait bounds how long one writer waits for the others.
const lockWait = 10 * time.Second

// lock keeps other processes of this program off the file. Its own file is in
// the temporary directory: the host's folder is no place to leave one behind.
func lock(path string) (unlock func() error, err error) {
	name := fmt.Sprintf("fabro-hosts-%d-%x.lock", os.Getuid(), sha256.Sum256([]byte(path)))
	l := flock.New(filepath.Join(os.TempDir(), name), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ok, err := l.TryLockContext(ctx, 20*time.Millisecond)
	if err != nil || !ok {
		return nil, fmt.Errorf("another process is changing %s: %w", path, err)
	}
	return l.Unlock, nil
}
