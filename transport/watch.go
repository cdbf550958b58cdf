package transport

import (
	"context"
	"os"
	"time"
)

// watchInterval is how often the watchers look.
const watchInterval = time.Second

// WatchExecutable returns a channel that is closed when the file at path is
// missing or has become another file than it is now: an upgrade put a new program
// in its place, and a long-lived server should end so that its host starts the
// new one. It looks once a second until ctx ends. The error says why the file
// cannot be watched.
func WatchExecutable(ctx context.Context, path string) (<-chan struct{}, error) {
	first, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	same := func() bool {
		now, err := os.Stat(path)
		return err == nil && os.SameFile(first, now)
	}
	return watch(ctx, watchInterval, same), nil
}

// WatchParent returns a channel that is closed when the process's parent is no
// longer the one it has now: the host died while something else holds the pipe
// open, so that the end of input will never come. A process whose parent is
// process 1 from the start (a container) is never told.
func WatchParent(ctx context.Context) <-chan struct{} {
	first := os.Getppid()
	if first <= 1 {
		return make(chan struct{})
	}
	return watch(ctx, watchInterval, func() bool { return os.Getppid() == first })
}

// watch closes the channel it returns when holds turns false.
func watch(ctx context.Context, every time.Duration, holds func() bool) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !holds() {
					close(gone)
					return
				}
			}
		}
	}()
	return gone
}
