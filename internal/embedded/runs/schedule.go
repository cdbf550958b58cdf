package runs

import (
	"slices"
	"sync"

	"fabro-mcp/fabroapi/wire"
)

// scheduler decides which runnable runs execute. At most limit runs execute at once, first come, first served, with two exceptions:
//
//   - A run that waits for a person or is paused holds no place. When it goes on it goes on at once, so that for a while more than limit
//     runs may execute.
//   - A child of an executing run is counted on a level of its own, one deeper than its parent's, with limit places on each level. A
//     parent that waits for its children could otherwise keep them from ever starting.
type scheduler struct {
	m     *Manager
	limit int

	mu      sync.Mutex // guards the fields below; may be taken while a run.mu is held, never the other way round
	queue   []*queued
	holding map[*run]*place
	halted  bool
}

type queued struct {
	r      *run
	parent string // run id or ""
}

// place is what an executing run occupies.
type place struct {
	level int
	idle  bool // blocked or paused: does not count
}

func (s *scheduler) init(m *Manager, limit int) {
	s.m, s.limit, s.holding = m, limit, map[*run]*place{}
}

// add queues a runnable run; the scheduler takes over one reference to it. parent is the id of its parent or "".
func (s *scheduler) add(r *run, parent string) {
	s.mu.Lock()
	if s.halted {
		s.mu.Unlock()
		s.m.release(r)
		return
	}
	s.queue = append(s.queue, &queued{r, parent})
	s.mu.Unlock()
	s.kick()
}

// remove takes a run out of the queue again, if it is there.
func (s *scheduler) remove(r *run) {
	s.mu.Lock()
	at := slices.IndexFunc(s.queue, func(q *queued) bool { return q.r == r })
	if at >= 0 {
		s.queue = slices.Delete(s.queue, at, at+1)
	}
	s.mu.Unlock()
	if at >= 0 {
		s.m.release(r)
	}
}

// position is the place of a run in the queue, from 1; 0 when it is not there.
func (s *scheduler) position(r *run) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1 + slices.IndexFunc(s.queue, func(q *queued) bool { return q.r == r })
}

// moved hears of every change of a run's status. It is called with r.mu held.
func (s *scheduler) moved(r *run, kind string) {
	s.mu.Lock()
	p := s.holding[r]
	freed := false
	if p != nil {
		idle := kind == wire.StatusBlocked || kind == wire.StatusPaused
		freed = idle && !p.idle
		p.idle = idle
	}
	s.mu.Unlock()
	if freed {
		// Launching takes locks of runs, and the caller holds one.
		s.m.work.Add(1)
		go func() {
			defer s.m.work.Done()
			s.kick()
		}()
	}
}

// finished gives back the place of a run whose execution has ended.
func (s *scheduler) finished(r *run) {
	s.mu.Lock()
	delete(s.holding, r)
	s.mu.Unlock()
	s.kick()
}

// kick launches what may be launched.
func (s *scheduler) kick() {
	type start struct {
		r     *run
		level int
	}
	var starts []start
	s.mu.Lock()
	used := map[int]int{}
	levels := map[string]int{} // of executing runs, by id
	for r, p := range s.holding {
		levels[r.id] = p.level
		if !p.idle {
			used[p.level]++
		}
	}
	if !s.halted {
		s.queue = slices.DeleteFunc(s.queue, func(q *queued) bool {
			level := 0
			if parent, ok := levels[q.parent]; ok && q.parent != "" {
				level = parent + 1
			}
			if used[level] >= s.limit || s.holding[q.r] != nil {
				return false
			}
			used[level]++
			levels[q.r.id] = level
			s.holding[q.r] = &place{level: level}
			starts = append(starts, start{q.r, level})
			s.m.work.Add(1)
			return true
		})
	}
	s.mu.Unlock()
	for _, st := range starts {
		s.m.launch(st.r, st.level)
	}
}

// halt stops launching. Queued runs stay runnable for the next process.
func (s *scheduler) halt() {
	s.mu.Lock()
	s.halted = true
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	for _, q := range queue {
		s.m.release(q.r)
	}
}

// executing returns the runs that have a place, and how many places count.
func (s *scheduler) executing() (runs []*run, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, p := range s.holding {
		runs = append(runs, r)
		if !p.idle {
			used++
		}
	}
	return runs, used
}

// waiting is the length of the queue.
func (s *scheduler) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
