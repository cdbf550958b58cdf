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
// fullWaits in vain, further waits for the same are shorter. Where the server has
// answered such a thing elsewhere, only a step that was waited for in vain before, at
// another revision, is cut: a busy machine must not turn a late answer into a finding.
// No wait is shorter than a tenth of the timeout, nor than lateFactor times the longest
// wait that was met in this run, so that a slow server gets the time it has shown to need.
type patience struct {
	mu       sync.Mutex     // protects the fields below
	inVain   map[string]int // full waits, by thing and by step
	answered map[string]bool
	cut      map[string]int // waits that were shortened, and in vain
	longest  time.Duration  // wait that was met
}

const (
	fullWaits  = 2
	shortPart  = 10
	lateFactor = 10
)

// hope is one thing that is waited for: what it is, and which step waits.
type hope struct{ thing, step string }

func newPatience() *patience {
	return &patience{inVain: map[string]int{}, answered: map[string]bool{}, cut: map[string]int{}}
}

// bound is how long to wait for any of the things that are hoped for.
func (s *patience) bound(full time.Duration, hopes []hope) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	mayCome := func(h hope) bool {
		return s.inVain[h.thing] < fullWaits || s.answered[h.thing] && s.inVain[h.step] == 0
	}
	if len(hopes) == 0 || slices.ContainsFunc(hopes, mayCome) {
		return full
	}
	return min(full, max(full/shortPart, lateFactor*s.longest))
}

// met notes that what was hoped for came, and after what time where that says something.
func (s *patience) met(hopes []hope, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, after)
	for _, h := range hopes {
		s.answered[h.thing] = true
	}
}

// failed notes that nothing came, in a wait that was shortened or not.
func (s *patience) failed(hopes []hope, short bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, h := range hopes {
		for _, key := range []string{h.thing, h.step} {
			switch {
			case seen[key]:
			case !short:
				s.inVain[key]++
			case key == h.thing:
				s.cut[key]++
			}
			seen[key] = true
		}
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
	p     *player
	began time.Time
	full  time.Duration
	bound time.Duration
	first bool // a process among them has not said a word: it may be starting
}

func (p *player) startWait(all []*expectation, full time.Duration) waited {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := waited{p: p, began: time.Now(), full: full}
	open := slices.DeleteFunc(slices.Clone(all), func(e *expectation) bool { return e.done })
	w.first = slices.ContainsFunc(open, func(e *expectation) bool { return len(e.w.frames) == 0 })
	w.bound = p.cfg.patience.bound(full, p.hopes(open))
	if w.first {
		w.bound += p.cfg.slack
		w.full += p.cfg.slack
	}
	return w
}

// end takes the lesson of the wait: what came, and what is missing although its process lives.
func (w waited) end(all, missing []*expectation) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	came := slices.DeleteFunc(slices.Clone(all), func(e *expectation) bool { return slices.Contains(missing, e) })
	silent := slices.DeleteFunc(slices.Clone(missing), func(e *expectation) bool { return e.w.exited })
	took := time.Duration(0)
	if len(missing) == 0 && !w.first {
		took = time.Since(w.began)
	}
	w.p.cfg.patience.met(w.p.hopes(came), took)
	if time.Since(w.began) >= w.bound {
		w.p.cfg.patience.failed(w.p.hopes(silent), w.bound < w.full)
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

// hopes names what the expectations are for, so that two are the same where a server that
// is silent about one will be silent about the other. The caller holds the mutex.
func (p *player) hopes(all []*expectation) []hope {
	out := make([]hope, 0, len(all))
	for _, e := range all {
		h := hope{step: p.t.Path + " " + string(e.target.Kind)}
		if e.step != nil {
			h.step = fmt.Sprintf("%s:%s", p.t.Path, e.step.Pos)
		}
		switch t := e.target; {
		case t.Missing:
			h.thing = "an error without an id"
		case t.Kind == transcript.TargetFrame:
			h.thing = "a message of any kind"
		case t.Method != "":
			h.thing = string(t.Kind) + " " + t.Method
		default:
			h.thing = "the reply to " + e.w.judge.About(e.id)
		}
		out = append(out, h)
	}
	return out
}
