package runner

import (
	"fmt"
	"math"
	"time"

	"fabro-mcp/conformance/transcript"
)

// never demands absence: until its witness came, or to the end.
func (p *player) never(s *transcript.Step, w *peer, op *transcript.Never) error {
	one := &pending{step: s, w: w, target: &op.Target}
	if op.Target.ID != nil {
		id, err := p.value(w, op.Target.ID)
		if err != nil {
			return err
		}
		one.id = id
	}
	if op.Until == nil {
		p.lock(func() { p.nevers = append(p.nevers, one) })
		return nil
	}
	e, err := p.expectationOf(s, w, &transcript.Expect{Target: *op.Until})
	if err != nil {
		return err
	}
	// What must not come may keep the witness from coming: it is reported as soon as it is
	// there. What is there before the witness came first.
	waiting, early := p.startWait([]*expectation{e}, p.timeout), false
	if _, err := p.wait(waiting.bound, func() bool {
		_, how, _ := p.search(e.w, e.target, e.id, 0)
		met := how == fits || how == mismatch
		early = !met && p.forbiddenLocked(one, len(w.frames)) != nil
		return met || early || e.w.exited
	}); err != nil {
		return err
	}
	if early {
		if err := p.absent(one, math.MaxInt, op.Should); err != nil {
			return err
		}
	}
	if err := p.await([]*expectation{e}, max(0, p.timeout-time.Since(waiting.began))); err != nil || !e.done || early {
		return err
	}
	return p.absent(one, e.index, op.Should)
}

// forbiddenLocked returns the first frame before the limit that fits what must not come.
func (p *player) forbiddenLocked(one *pending, limit int) *arrived {
	for _, f := range one.w.frames[one.from:min(limit, len(one.w.frames))] {
		if f.taken {
			continue
		}
		if how, _ := p.look(f, one.target, one.id, scope{p, one.w}); how == fits {
			return f
		}
	}
	return nil
}

// absent fails when a frame before the limit fits.
func (p *player) absent(one *pending, limit int, should bool) error {
	p.mu.Lock()
	seen := p.forbiddenLocked(one, limit)
	p.mu.Unlock()
	if seen == nil {
		return nil
	}
	return p.fail(one.step, one.w, fmt.Sprintf("there must be no %s, but this came: %s", p.showTarget(one.target, one.id, one.w), abbreviate(string(seen.Raw), 300)), nil, should)
}
