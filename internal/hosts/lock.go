package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lockWait bounds how long one writer waits for the others.
const lockWait = 10 * time.Second

// lock keeps other processes of this program off the file, whose directory must
// exist. Nothing is left behind when the lock is given up.
func lock(path string) (unlock func() error, err error) {
	l := locker(path)
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	_, err = l.TryLockContext(ctx, 20*time.Millisecond)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("another process has been changing %s for %s; try again", path, lockWait)
	case err != nil:
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() error { return release(l) }, nil
}
