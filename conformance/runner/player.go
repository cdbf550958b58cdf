package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// player plays one transcript at one revision.
type player struct {
	ctx     context.Context
	cfg     *Config
	t       *transcript.Transcript
	rev     string
	c       *report.Case
	timeout time.Duration
	tmp     string
	env     []string // of processes started later
	dir     string
	finally []deferred

	mu      sync.Mutex // guards everything below, the peers' fields and c.Findings
	peers   map[string]*peer
	order   []string
	vars    map[string]*strictjson.Value
	changed chan struct{} // closed and replaced whenever something arrives
	maybes  []*pending
	nevers  []*pending
	witness int
}

// pending is a step whose verdict waits for the end of the transcript.
type pending struct {
	step   *transcript.Step
	w      *peer
	target *transcript.Target
	id     *strictjson.Value
	from   int // the first frame it is about
}

func newPlayer(ctx context.Context, cfg *Config, j job, c *report.Case) *player {
	p := &player{
		ctx: ctx, cfg: cfg, t: j.t, rev: j.rev, c: c, timeout: cfg.Timeout, env: cfg.Env,
		peers: map[string]*peer{}, vars: map[string]*strictjson.Value{}, changed: make(chan struct{}),
	}
	if j.t.Timeout > 0 {
		p.timeout = j.t.Timeout
	}
	if p.env == nil {
		p.env = os.Environ()
	}
	return p
}

func (p *player) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// stop ends the script after a failure that has been reported.
var errStop = errors.New("stop")

// play runs the script and settles the case.
func (p *player) play() {
	defer func() {
		if bug := recover(); bug != nil { // ours; the verdicts on all else must not be lost
			p.harnessFailure(fmt.Errorf("a defect of the harness: %v\n%s", bug, debug.Stack()))
			p.end()
			p.runFinally()
		}
		p.c.Settle()
		if p.cfg.Verbose {
			for _, name := range p.order {
				p.c.Wire = append(p.c.Wire, p.peers[name].wire...)
			}
		}
	}()
	if err := p.unpack(); err != nil {
		p.harnessFailure(err)
		return
	}
	defer os.RemoveAll(p.tmp)
	err := p.steps(p.t.Steps)
	if err == nil {
		err = p.repliesStillDue()
	}
	p.end()
	p.runFinally()
	if err == nil {
		p.atTheEnd()
	} else if !errors.Is(err, errStop) {
		p.harnessFailure(err)
	}
}

func (p *player) harnessFailure(err error) {
	p.add(report.Finding{Severity: report.Failure, Revision: p.rev, Message: err.Error()}, nil)
}

// unpack makes ${tmp} with the archive's files.
func (p *player) unpack() error {
	dir, err := os.MkdirTemp("", "mcp-conformance-")
	if err != nil {
		return err
	}
	p.tmp = dir
	for _, f := range p.t.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			return err
		}
	}
	return nil
}

// end lets every process go and waits for what it still has to say.
func (p *player) end() {
	for _, name := range p.order {
		w := p.peers[name]
		if w.proc == nil {
			continue
		}
		p.closeStdin(w)
		w.proc.Close(p.cfg.ExitGrace)
	}
}

// running returns the process of a step, started if need be.
func (p *player) running(name string) (*peer, error) {
	w := p.peer(name)
	if w.proc != nil {
		return w, nil
	}
	return w, p.startPeer(w, nil)
}

func (p *player) startPeer(w *peer, args []string) error {
	if err := p.start(w, args); err != nil {
		return fmt.Errorf("the command under test could not be started: %w", err)
	}
	return nil
}

// peer returns the process of that name, which may not be started yet.
func (p *player) peer(name string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.peers[name]
	if w == nil {
		w = newPeer(name, !expectsPing(p.t.Steps))
		p.peers[name] = w
		p.order = append(p.order, name)
	}
	return w
}

func newPeer(name string, autoPing bool) *peer {
	return &peer{name: name, autoPing: autoPing, ignored: map[string]bool{}, asked: map[string]*strictjson.Value{}}
}

// expectsPing reports whether the script itself deals with pings of the server;
// else they are answered at once, as any client does.
func expectsPing(steps []transcript.Step) bool {
	for _, s := range steps {
		if e, ok := s.Op.(*transcript.Expect); ok && e.Target.Kind == transcript.TargetRequest && e.Target.Method == "ping" {
			return true
		}
		for _, inner := range transcript.Blocks(s.Op) {
			if expectsPing(inner) {
				return true
			}
		}
	}
	return false
}

// scope resolves references as one process sees them.
type scope struct {
	p *player
	w *peer
}

// Var implements transcript.Vars. The caller may hold the mutex or not: what it
// reads is written by the script's own goroutine only.
func (s scope) Var(name string) *strictjson.Value {
	text := func(t string) *strictjson.Value {
		return &strictjson.Value{Kind: strictjson.String, Text: t, Raw: []byte(strictjson.Quote(t))}
	}
	if v, ok := s.p.vars[name]; ok {
		return v
	}
	switch name {
	case "revision":
		return text(s.p.rev)
	case "tmp":
		return text(s.p.tmp)
	case "newline":
		return text("\n")
	case "meta":
		v, _ := strictjson.Parse(s.p.metaFor(s.w))
		return v
	}
	if value, ok := s.p.cfg.Settings[name]; ok {
		return text(value)
	}
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		for _, f := range s.p.t.Files {
			if f.Name == file {
				return text(string(f.Data))
			}
		}
	}
	return nil
}

// wait waits until done says so, called with the mutex held. It returns false
// at the deadline.
func (p *player) wait(timeout time.Duration, done func() bool) (bool, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		p.mu.Lock()
		ok := done()
		changed := p.changed
		p.mu.Unlock()
		if ok {
			return true, nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			p.mu.Lock()
			ok := done()
			p.mu.Unlock()
			return ok, nil
		case <-p.ctx.Done():
			return false, context.Cause(p.ctx)
		}
	}
}
