package process

import "sync"

// maxBacklog is how many bytes of lines may wait to be handed out before the pipe is
// left to fill up: no server may fill our memory.
const maxBacklog = 64 << 20

// backlog keeps lines between the reader of a pipe and whoever looks at them. The pipe
// is emptied at once, whatever looking at a line costs: a server that is about to end
// must not be kept from writing its last replies by the judge of the first.
type backlog struct {
	mu    sync.Mutex // protects the fields below
	moved *sync.Cond
	lines []Line
	size  int // bytes in lines
	ended bool
}

func newBacklog() *backlog {
	b := &backlog{}
	b.moved = sync.NewCond(&b.mu)
	return b
}

// add appends a line; it waits while too much is there.
func (b *backlog) add(l Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size > maxBacklog {
		b.moved.Wait()
	}
	b.lines, b.size = append(b.lines, l), b.size+len(l.Data)
	b.moved.Broadcast()
}

// end says that no line follows.
func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.moved.Broadcast()
}

// handOut hands each line to on, in order, until the last.
func (b *backlog) handOut(on func(Line)) {
	for {
		b.mu.Lock()
		for len(b.lines) == 0 && !b.ended {
			b.moved.Wait()
		}
		lines := b.lines
		b.lines, b.size = nil, 0
		b.moved.Broadcast()
		b.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		if on == nil {
			continue
		}
		for _, l := range lines {
			on(l)
		}
	}
}
