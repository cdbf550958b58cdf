package runner

import (
	"fmt"
	"strings"

	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// repliesStillDue waits for the reply to every call that no step took. All
// share one timeout, so a hung server costs it once.
func (p *player) repliesStillDue() error {
	var due []*expectation
	p.mu.Lock()
	for _, name := range p.order {
		w := p.peers[name]
		if w.proc == nil || w.signaled || w.deaf {
			continue
		}
		for _, id := range w.calls {
			if !w.ignored[judge.Key(id)] && w.judge.Waiting(id) {
				due = append(due, &expectation{step: nil, w: w, target: &transcript.Target{Kind: transcript.TargetReply}, id: id, index: -1})
			}
		}
	}
	p.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	answered := func() bool {
		for _, e := range due {
			if e.w.judge.Waiting(e.id) && !e.w.exited {
				return false
			}
		}
		return true
	}
	waiting := p.startWait(due, p.timeout)
	if _, err := p.wait(waiting.bound, answered); err != nil {
		return err
	}
	byPeer := map[*peer][]*strictjson.Value{}
	var missing []*expectation
	p.mu.Lock()
	for _, e := range due {
		if e.w.judge.Waiting(e.id) {
			missing = append(missing, e)
			byPeer[e.w] = append(byPeer[e.w], e.id)
		}
	}
	p.mu.Unlock()
	waiting.end(due, missing)
	for w, ids := range byPeer {
		p.unanswered(w, ids, waiting)
	}
	return nil
}

// unanswered reports requests that got no reply, all in one finding.
func (p *player) unanswered(w *peer, ids []*strictjson.Value, waiting waited) {
	var open []string
	ended := fmt.Sprintf(" within %s", waiting)
	p.lock(func() {
		open = w.judge.Open()
		if w.exited {
			ended = ", and the server ended (" + w.state.String() + ")"
		}
	})
	list := strings.Join(open, ", ")
	s := &transcript.Step{Pos: transcript.Pos{Line: 1, Column: 1}, Text: "(the end of the transcript)", Rules: []string{"jsonrpc.response.exactly-one"}}
	_ = p.fail(s, w, fmt.Sprintf("%d of the calls got no reply%s; unanswered: %s", len(ids), ended, abbreviate(list, 400)), nil, false)
}

// atTheEnd judges what only the whole can show.
func (p *player) atTheEnd() {
	p.mu.Lock()
	for _, one := range p.maybes {
		if i, how, captures := p.search(one.w, one.target, one.id, 0); how == fits {
			p.take(one.w, i, one.target, captures)
		}
	}
	p.mu.Unlock()
	for _, one := range p.nevers {
		should := one.step.Op.(*transcript.Never).Should
		_ = p.absent(one, len(one.w.frames), should) // nothing is left to stop
	}
}
