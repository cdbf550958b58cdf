package runner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// fitting is how a frame relates to a target.
type fitting uint8

const (
	other    fitting = iota // about something else
	near                    // the right kind, but it does not fit
	mismatch                // the reply that was asked for, and it does not fit
	fits
)

// look compares one frame with a target.
func (p *player) look(f *arrived, t *transcript.Target, id *strictjson.Value, vars transcript.Vars) (fitting, transcript.Captures) {
	subject := func(member string, bad fitting) (fitting, transcript.Captures) {
		v := f.Value
		if member != "" {
			v = v.Get(member)
		}
		if t.Pattern == nil {
			return fits, nil
		}
		wrong, captures := t.Pattern.Match(v, vars)
		if len(wrong) > 0 {
			return bad, nil
		}
		return fits, captures
	}
	isReply := f.Kind == judge.Result || f.Kind == judge.Error
	switch t.Kind {
	case transcript.TargetResult, transcript.TargetError, transcript.TargetReply:
		if !isReply {
			return other, nil
		}
		unreadable := f.ID == nil || f.ID.Is(strictjson.Null)
		if t.Missing {
			if !unreadable {
				return other, nil
			}
		} else if unreadable || judge.Key(f.ID) != judge.Key(id) {
			return other, nil
		}
		if t.Exact && string(f.ID.Raw) != string(id.Raw) {
			return mismatch, nil
		}
		bad := mismatch
		if t.Missing {
			bad = near // there may be several errors without an id
		}
		switch {
		case t.Kind == transcript.TargetReply:
			return subject("", bad)
		case t.Kind == transcript.TargetResult && f.Kind == judge.Result:
			return subject("result", bad)
		case t.Kind == transcript.TargetError && f.Kind == judge.Error:
			if !hasCode(t, f.Value.Get("error")) {
				return bad, nil
			}
			return subject("error", bad)
		}
		return bad, nil
	case transcript.TargetNotification:
		if f.Kind != judge.Notification || f.Method != t.Method {
			return other, nil
		}
		return subject("params", near)
	case transcript.TargetRequest:
		if f.Kind != judge.Request || f.Method != t.Method {
			return other, nil
		}
		return subject("params", near)
	case transcript.TargetFrame:
		if f.Value == nil {
			return other, nil
		}
		return subject("", near)
	}
	return other, nil
}

// search finds the first untaken frame from index on that fits, or the reply
// that should have; nearest is the last one of the right kind otherwise.
func (p *player) search(w *peer, t *transcript.Target, id *strictjson.Value, from int) (index int, how fitting, captures transcript.Captures) {
	index = -1
	for i := from; i < len(w.frames); i++ {
		if w.frames[i].taken {
			continue
		}
		switch how, captures := p.look(w.frames[i], t, id, scope{p, w}); how {
		case fits, mismatch:
			return i, how, captures
		case near:
			index = i
		}
	}
	if index >= 0 {
		return index, near, nil
	}
	return -1, other, nil
}

// take marks a frame as taken and keeps what was captured.
func (p *player) take(w *peer, index int, t *transcript.Target, captures transcript.Captures) {
	f := w.frames[index]
	f.taken = true
	for name, v := range captures {
		p.vars[name] = v
	}
	if t.As != "" {
		w.asked[t.As] = f.ID
	}
}

// expectation is an expect step being waited for.
type expectation struct {
	step   *transcript.Step
	w      *peer
	target *transcript.Target
	id     *strictjson.Value
	should bool
	after  *expectation // inside ordered: the frame must come after that one's
	index  int          // the frame that was taken
	done   bool
}

func (p *player) expectationOf(s *transcript.Step, w *peer, op *transcript.Expect) (*expectation, error) {
	e := &expectation{step: s, w: w, target: &op.Target, should: op.Should, index: -1}
	if op.Target.ID != nil {
		id, err := p.value(w, op.Target.ID)
		if err != nil {
			return nil, err
		}
		e.id = id
	}
	if op.Target.Kind == transcript.TargetWitness {
		e.id = p.askWitness(w)
		e.target = &transcript.Target{Kind: transcript.TargetReply}
	}
	return e, nil
}

// askWitness sends a cheap request whose reply proves that the server has read
// everything before it.
func (p *player) askWitness(w *peer) *strictjson.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.witness++
	id := fmt.Sprintf(`"mcp-conformance-witness-%d"`, p.witness)
	v, _ := strictjson.Parse([]byte(id))
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)
	if transcript.Modern(p.rev) {
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"server/discover","params":{"_meta":%s}}`, id, p.metaFor(w))
	}
	p.writeLocked(w, []byte(frame+"\n"))
	return v
}

func (p *player) expect(s *transcript.Step, w *peer, op *transcript.Expect) error {
	e, err := p.expectationOf(s, w, op)
	if err != nil {
		return err
	}
	if op.Maybe {
		p.lock(func() {
			if i, how, captures := p.search(w, e.target, e.id, 0); how == fits {
				p.take(w, i, e.target, captures)
				return
			}
			p.maybes = append(p.maybes, &pending{step: s, w: w, target: e.target, id: e.id})
		})
		return nil
	}
	return p.await([]*expectation{e}, p.timeout)
}

// group waits for several expectations under one timeout.
func (p *player) group(steps []transcript.Step, ordered bool) error {
	var all []*expectation
	var collect func([]transcript.Step) error
	collect = func(steps []transcript.Step) error {
		for i := range steps {
			s := &steps[i]
			if p.skipped(s) {
				continue
			}
			switch op := s.Op.(type) {
			case *transcript.Repeat:
				for n := op.From; n <= op.To; n++ {
					p.setVar(op.Var, number(n))
					if err := collect(op.Steps); err != nil {
						return err
					}
				}
			case *transcript.When:
				branch := op.Else
				if slices.Contains(op.Revisions, p.rev) {
					branch = op.Then
				}
				if err := collect(branch); err != nil {
					return err
				}
			case *transcript.Expect:
				w, err := p.running(s.Process)
				if err != nil {
					return err
				}
				if op.Maybe {
					if err := p.expect(s, w, op); err != nil {
						return err
					}
					continue
				}
				e, err := p.expectationOf(s, w, op)
				if err != nil {
					return err
				}
				if ordered && len(all) > 0 {
					e.after = all[len(all)-1]
				}
				all = append(all, e)
			}
		}
		return nil
	}
	if err := collect(steps); err != nil {
		return err
	}
	return p.await(all, p.timeout)
}

// awaitOne waits for one frame and returns it; nil after a warning.
func (p *player) awaitOne(s *transcript.Step, w *peer, t *transcript.Target, id *strictjson.Value, timeout time.Duration) (*arrived, error) {
	e := &expectation{step: s, w: w, target: t, id: id, index: -1}
	if err := p.await([]*expectation{e}, timeout); err != nil || !e.done {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.frames[e.index], nil
}

// await waits until all expectations are met. A reply that does not fit fails
// at once; so does everything that waits for a process that has ended.
func (p *player) await(all []*expectation, timeout time.Duration) error {
	waiting := p.startWait(all, timeout)
	var wrong *expectation // a reply that does not fit
	done := func() bool {
		open, gone := 0, 0
		for _, e := range all {
			if e.done {
				continue
			}
			from := 0
			if e.after != nil {
				if !e.after.done {
					open++
					continue
				}
				if e.after.w == e.w {
					from = e.after.index + 1
				}
			}
			i, how, captures := p.search(e.w, e.target, e.id, from)
			switch how {
			case fits:
				p.take(e.w, i, e.target, captures)
				e.index, e.done = i, true
				continue
			case mismatch:
				e.index = i
				wrong = e
				return true
			}
			open++
			if e.w.exited || e.w.proc == nil {
				gone++
			}
		}
		return open == 0 || gone == open
	}
	for {
		wrong = nil
		if _, err := p.wait(waiting.bound, done); err != nil {
			return err
		}
		if wrong == nil {
			break
		}
		if err := p.misfit(wrong); err != nil {
			return err
		}
		wrong.done = true // reported as a warning
	}
	missing := slices.DeleteFunc(slices.Clone(all), func(e *expectation) bool { return e.done })
	waiting.end(all, missing)
	var failed error
	for _, e := range missing {
		failed = errors.Join(failed, p.missed(e, waiting))
	}
	return stopOnly(failed)
}

// stopOnly keeps joined errStops one.
func stopOnly(err error) error {
	if errors.Is(err, errStop) {
		return errStop
	}
	return err
}

func (p *player) expectExit(s *transcript.Step, w *peer, op *transcript.ExpectExit) error {
	bound := p.timeout
	if op.Within > 0 {
		bound = op.Within
	}
	ended, err := p.wait(bound, func() bool { return w.exited })
	if err != nil {
		return err
	}
	if !ended {
		return p.fail(s, w, fmt.Sprintf("the process did not end within %v", bound), nil, op.Should)
	}
	if op.Codes == nil && op.Signals == nil {
		return nil
	}
	if w.state.Signal != "" && slices.Contains(op.Signals, w.state.Signal) || w.state.Signal == "" && slices.Contains(op.Codes, w.state.Code) {
		return nil
	}
	message := fmt.Sprintf("the process ended with %s; expected %s", w.state, strings.TrimPrefix(s.Text, "expect "))
	if tail := lastLines(w.stderr, 3); tail != "" {
		message += "; its last words: " + tail
	}
	return p.fail(s, w, message, nil, op.Should)
}

func (p *player) expectStderr(s *transcript.Step, w *peer, op *transcript.ExpectStderr) error {
	re := regexp.MustCompile(op.Regexp) // the parser compiled it before
	if op.Not {
		p.mu.Lock()
		found := re.Find(w.stderr)
		p.mu.Unlock()
		if found == nil {
			return nil
		}
		return p.fail(s, w, fmt.Sprintf("standard error holds %q", abbreviate(string(found), 200)), nil, op.Should)
	}
	ok, err := p.wait(p.timeout, func() bool { return re.Match(w.stderr) || w.exited })
	if err != nil {
		return err
	}
	p.mu.Lock()
	ok = ok && re.Match(w.stderr)
	tail := lastLines(w.stderr, 3)
	p.mu.Unlock()
	if ok {
		return nil
	}
	return p.fail(s, w, fmt.Sprintf("standard error has no match for /%s/; its last words: %s", op.Regexp, tail), nil, op.Should)
}
