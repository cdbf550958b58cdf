package tools

import (
	"context"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// maxTaskWatches bounds the tasks whose changes are announced. Others are seen when
// the host asks.
const maxTaskWatches = 64

// watch announces the changes of a task until it has ended, or its time is up. It
// outlives the request that began it, because a host may listen instead of asking;
// it ends with the process at the latest.
func (t *gatherTasks) watch(id string, spec *taskSpec, client *fabroapi.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[id] || len(t.watched) >= maxTaskWatches {
		return
	}
	if t.watched == nil {
		t.watched = map[string]bool{}
	}
	t.watched[id] = true
	go func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.watched, id)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), max(spec.Deadline.Sub(t.host.now()), time.Second))
		defer cancel()
		t.announce(ctx, id, spec, client)
		t.host.server.TaskChanged(id)
	}()
}

// announce calls TaskChanged whenever the status line of the task changes.
func (t *gatherTasks) announce(ctx context.Context, id string, spec *taskSpec, client *fabroapi.Client) {
	runs := make([]*wire.Run, 0, len(spec.Runs))
	for _, run := range spec.Runs {
		runs = append(runs, bareRun(run))
	}
	f := newFollower(client, distinct(runs), t.host.now)
	f.start(ctx)
	defer f.close()
	const poll = defaultPoll * time.Second
	last := ""
	for {
		f.look(ctx, poll, false)
		if stored, err := t.host.tasks.load(id, t.host.now()); stored != nil || err != nil || countEnded(f.runs) == len(f.runs) || ctx.Err() != nil {
			return
		}
		if line := statusLine(f.runs); line != last {
			if last != "" {
				t.host.server.TaskChanged(id)
			}
			last = line
		}
		timer := time.NewTimer(f.nextLook(poll))
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}
