package runner

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/transcript"
)

// patience is what the waits of one run have taught. A server that is silent about
// one thing would cost a whole timeout in each case that asks for it; after
// fullWaits in vain, further waits for the same are shorter. They are never shorter
// than a tenth of the timeout, nor than lateFactor times the longest wait that was
// met in this run, so that a slow server gets the time that it has shown to need.
type patience struct {
	mu      sync.Mutex // protects the fields below
	inVain  map[string]int
	cut     map[string]int // waits that were shortened
	longest time.Duration  // wait that was met
}

const (
	fullWaits  = 2
	shortPart  = 10
	lateFactor = 10
)

func newPatience() *patience { return &patience{inVain: map[string]int{}, cut: map[string]int{}} }

// bound is how long to wait for any of the things that are asked for.
func (s *patience) bound(full time.Duration, things []string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(things) == 0 || slices.ContainsFunc(things, func(t string) bool { return s.inVain[t] < fullWaits }) {
		return full
	}
	short := min(full, max(full/shortPart, lateFactor*s.longest))
	if short < full {
		for _, t := range things {
			s.cut[t]++
		}
	}
	return short
}

// met notes that what was waited for came.
func (s *patience) met(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, after)
}

// failed notes that nothing came in a wait that was not shortened.
func (s *patience) failed(things []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range things {
		s.inVain[t]++
	}
}

// shortened lists what was not waited for in full, for the report.
func (s *patience) shortened() []report.ShortWaits {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []report.ShortWaits
	for thing, n := range s.cut {
		out = append(out, report.ShortWaits{For: thing, Waits: n, After: fullWaits})
	}
	slices.SortFunc(out, func(a, b report.ShortWaits) int { return cmp.Compare(a.For, b.For) })
	return out
}

// waited times one wait for several expectations.
type waited struct {
	p      *player
	began  time.Time
	full   time.Duration
	bound  time.Duration
	things []string
	first  bool // a process among them has not said a word: it may be starting
}

func (p *player) startWait(all []*expectation, full time.Duration) waited {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := waited{p: p, began: time.Now(), full: full}
	for _, e := range all {
		if !e.done {
			w.things = append(w.things, thing(e))
			w.first = w.first || len(e.w.frames) == 0
		}
	}
	w.bound = p.cfg.patience.bound(full, w.things)
	if w.first {
		w.bound += p.cfg.slack
		w.full += p.cfg.slack
	}
	return w
}

// end takes the lesson of the wait: what is missing has not come although its process lives.
func (w waited) end(missing []*expectation) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	var things []string
	for _, e := range missing {
		if !e.w.exited {
			things = append(things, thing(e))
		}
	}
	switch {
	case len(missing) == 0 && !w.first:
		w.p.cfg.patience.met(time.Since(w.began))
	case w.bound == w.full && time.Since(w.began) >= w.full:
		w.p.cfg.patience.failed(slices.Compact(slices.Sorted(slices.Values(things))))
	}
}

// String says how long was waited.
func (w waited) String() string {
	text := w.bound.Round(10 * time.Millisecond).String()
	if w.bound < w.full {
		text += fmt.Sprintf(" (not %v, since nothing came for the same in %d full waits before)", w.full.Round(10*time.Millisecond), fullWaits)
	}
	return text
}

// thing names what an expectation is for, so that two are the same where a server
// that is silent about one will be silent about the other. The caller holds the mutex.
func thing(e *expectation) string {
	switch t := e.target; {
	case t.Missing:
		return "an error without an id"
	case t.Kind == transcript.TargetFrame:
		return "a message of any kind"
	case t.Method != "":
		return string(t.Kind) + " " + t.Method
	default:
		return "the reply to " + e.w.judge.About(e.id)
	}
}
