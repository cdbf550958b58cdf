package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/process"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// peer is one process of a transcript and everything that passed. Its fields
// are guarded by the player's mutex.
type peer struct {
	name    string
	started time.Time
	proc    *process.Process
	judge   *judge.Judge
	caps    []byte // client capabilities, JSON

	frames  []*arrived
	partial []byte // what was written since the last newline
	stderr  []byte
	exited  bool
	state   process.State
	wire    []report.Event

	calls    []*strictjson.Value // ids of call steps, in order
	ignored  map[string]bool     // by judge.Key
	asked    map[string]*strictjson.Value
	signaled bool // its replies are no longer expected
	deaf     bool // nobody reads its output
	noInput  bool // its standard input was closed
	autoPing bool
}

// arrived is a frame and whether a step took it.
type arrived struct {
	*judge.Frame
	taken bool
}

// maxStderr and maxWire bound what is kept of a chatty server.
const (
	maxStderr = 1 << 20
	maxWire   = 20_000
	maxEvent  = 2_000
)

func (w *peer) note(dir string, text []byte) {
	if len(w.wire) >= maxWire {
		return
	}
	at := time.Duration(0)
	if !w.started.IsZero() {
		at = time.Since(w.started)
	}
	name := ""
	if w.name != "main" {
		name = w.name
	}
	w.wire = append(w.wire, report.Event{At: at, Process: name, Dir: dir, Text: abbreviate(string(text), maxEvent)})
}

// excerpt is the exchange around the present moment.
func (w *peer) excerpt() []report.Event {
	const around = 14
	from := max(0, len(w.wire)-around)
	out := make([]report.Event, 0, around)
	for _, e := range w.wire[from:] {
		e.Text = abbreviate(e.Text, 400)
		out = append(out, e)
	}
	return out
}

// start starts the process; the caller does not hold the mutex.
func (p *player) start(w *peer, args []string) error {
	spec := process.Spec{
		Command: append(p.command(), args...),
		Env:     p.env,
		Dir:     p.dir,
		OnLine:  func(l process.Line) { p.onLine(w, l) },
		OnErr: func(b []byte) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(w.stderr) < maxStderr {
				w.stderr = append(w.stderr, b...)
			}
			w.note("!", bytes.TrimRight(b, "\n"))
			p.changedLocked()
		},
		OnExit: func(s process.State) {
			p.mu.Lock()
			defer p.mu.Unlock()
			w.exited, w.state = true, s
			w.note("*", []byte("the process ended: "+s.String()))
			p.changedLocked()
		},
	}
	p.mu.Lock()
	defer p.mu.Unlock() // callbacks wait until w is filled in
	proc, err := process.Start(p.ctx, spec)
	if err != nil {
		return err
	}
	w.proc, w.started = proc, proc.Started
	w.judge = judge.New(p.rev)
	p.allow(w, p.t.Steps)
	return nil
}

// command is the command under test. Where a transcript changes the directory,
// arguments that name existing files still mean those.
func (p *player) command() []string {
	out := slices.Clone(p.cfg.Command)
	if p.dir == "" {
		return out
	}
	for i, arg := range out {
		if _, err := os.Stat(arg); err == nil && !filepath.IsAbs(arg) {
			if abs, err := filepath.Abs(arg); err == nil {
				out[i] = abs
			}
		}
	}
	return out
}

// allow tells the judge of the ids that maybe and ignore steps reckon with.
func (p *player) allow(w *peer, steps []transcript.Step) {
	for _, s := range steps {
		var id *transcript.Template
		switch op := s.Op.(type) {
		case *transcript.Ignore:
			id = op.ID
		case *transcript.Expect:
			if op.Maybe {
				id = op.Target.ID
			}
		}
		if id != nil && len(id.Refs()) == 0 {
			if v, err := p.value(w, id); err == nil {
				w.judge.Allow(v)
			}
		}
		for _, inner := range transcript.Blocks(s.Op) {
			p.allow(w, inner)
		}
	}
}

// onLine judges one line of the server and makes it available to the steps.
func (p *player) onLine(w *peer, l process.Line) {
	p.mu.Lock()
	w.note("<", l.Data)
	for _, f := range w.judge.Received(l.Data, l.Terminated) {
		w.frames = append(w.frames, &arrived{Frame: f})
		if f.Kind == judge.Request && f.Method == "ping" && w.autoPing && f.ID != nil {
			reply := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID.Raw)
			p.writeLocked(w, append(reply, '\n'))
		}
	}
	found := w.judge.Findings()
	wire := w.excerpt()
	p.changedLocked()
	p.mu.Unlock()
	for _, one := range found {
		if f, ok := fromJudge(one); ok {
			p.add(f, wire)
		}
	}
}

// writeLocked tells the judge about every line that becomes complete, before
// the server can see it, and queues the bytes.
func (p *player) writeLocked(w *peer, data []byte) {
	w.partial = append(w.partial, data...)
	for {
		line, rest, found := bytes.Cut(w.partial, []byte("\n"))
		if !found {
			break
		}
		w.note(">", line)
		w.judge.Sent(bytes.TrimSuffix(line, []byte("\r")))
		w.partial = bytes.Clone(rest)
	}
	w.proc.Write(data)
}

// closeStdin ends the input; an unterminated last line counts as sent.
func (p *player) closeStdin(w *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.noInput {
		return
	}
	w.noInput = true
	if len(w.partial) > 0 {
		w.note(">", w.partial)
		w.judge.Sent(w.partial)
		w.partial = nil
	}
	w.note("*", []byte("standard input closed"))
	w.judge.InputClosed()
	w.proc.CloseStdin()
}

// metaFor is the _meta object of a modern request of this process.
func (p *player) metaFor(w *peer) []byte {
	if !transcript.Modern(p.rev) {
		return []byte("{}")
	}
	caps := []byte("{}")
	if w != nil && w.caps != nil {
		caps = w.caps
	}
	return fmt.Appendf(nil, `{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":%s,"io.modelcontextprotocol/clientCapabilities":%s}`, p.rev, clientInfo, caps)
}

// clientInfo is how the harness introduces itself.
const clientInfo = `{"name":"mcp-conformance","version":"1"}`
