package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

func (p *player) steps(steps []transcript.Step) error {
	for i := range steps {
		if err := p.step(&steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// skipped reports whether all rules of an expectation belong to other
// revisions.
func (p *player) skipped(s *transcript.Step) bool {
	if len(s.Rules) == 0 {
		return false
	}
	switch s.Op.(type) {
	case *transcript.Expect, *transcript.Never, *transcript.ExpectExit, *transcript.ExpectStderr:
	default:
		return false
	}
	return !slices.ContainsFunc(s.Rules, func(id string) bool {
		r, ok := catalogue.Lookup(id)
		return !ok || r.In(p.rev)
	})
}

func (p *player) step(s *transcript.Step) error {
	if p.skipped(s) {
		return nil
	}
	switch op := s.Op.(type) {
	case *transcript.Ordered:
		return p.group(op.Steps, true)
	case *transcript.Unordered:
		return p.group(op.Steps, false)
	case *transcript.Repeat:
		for i := op.From; i <= op.To; i++ {
			p.setVar(op.Var, number(i))
			if err := p.steps(op.Steps); err != nil {
				return err
			}
		}
		return nil
	case *transcript.When:
		if slices.Contains(op.Revisions, p.rev) {
			return p.steps(op.Then)
		}
		return p.steps(op.Else)
	case *transcript.Env:
		return p.setEnv(op)
	case *transcript.Cwd:
		dir, err := op.Dir.Expand(scope{p, nil})
		p.dir = string(dir)
		return err
	case *transcript.Start:
		return p.restart(s, op)
	case *transcript.Finally:
		return p.deferStep(s, op)
	case *transcript.Pause:
		return p.pause(op.For)
	case *transcript.SetTimeout:
		p.timeout = op.To
		return nil
	}
	w, err := p.running(s.Process)
	if err != nil {
		return err
	}
	return p.onProcess(s, w)
}

// onProcess plays a step that is about one running process.
func (p *player) onProcess(s *transcript.Step, w *peer) error {
	switch op := s.Op.(type) {
	case *transcript.Open:
		return p.open(s, w, op)
	case *transcript.Call:
		return p.call(w, op)
	case *transcript.Notify:
		return p.notify(w, op)
	case *transcript.Send:
		data, err := op.Payload.Expand(scope{p, w})
		if err == nil {
			p.write(w, append(data, '\n'))
		}
		return err
	case *transcript.Raw:
		return p.raw(w, op)
	case *transcript.Answer:
		return p.answer(w, op)
	case *transcript.Ignore:
		id, err := p.value(w, op.ID)
		if err == nil {
			w.ignored[judge.Key(id)] = true
		}
		return err
	case *transcript.Close:
		if op.Stream == "stdin" {
			p.closeStdin(w)
			return nil
		}
		p.lock(func() { w.deaf = true; w.note("*", []byte("standard output closed")) })
		w.proc.CloseStdout()
		return nil
	case *transcript.Reading:
		p.lock(func() { w.deaf = !op.On })
		w.proc.SetReading(op.On)
		return nil
	case *transcript.Signal:
		p.lock(func() {
			w.signaled = w.signaled || op.Name != "STOP" && op.Name != "CONT"
			w.note("*", []byte("SIG"+op.Name+" sent"))
		})
		if err := w.proc.Signal(op.Name); err != nil && !strings.Contains(err.Error(), "finished") {
			return err
		}
		return nil
	case *transcript.Expect:
		return p.expect(s, w, op)
	case *transcript.Never:
		return p.never(s, w, op)
	case *transcript.ExpectExit:
		return p.expectExit(s, w, op)
	case *transcript.ExpectStderr:
		return p.expectStderr(s, w, op)
	}
	return fmt.Errorf("%s: a step the runner does not know: %T", s.Pos, s.Op)
}

func (p *player) lock(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *player) write(w *peer, data []byte) { p.lock(func() { p.writeLocked(w, data) }) }

func (p *player) setVar(name string, v *strictjson.Value) { p.lock(func() { p.vars[name] = v }) }

func number(n int) *strictjson.Value {
	text := strconv.Itoa(n)
	return &strictjson.Value{Kind: strictjson.Number, Text: text, Raw: []byte(text)}
}

// value expands a template to one JSON value.
func (p *player) value(w *peer, t *transcript.Template) (*strictjson.Value, error) {
	data, err := t.Expand(scope{p, w})
	if err != nil {
		return nil, err
	}
	v, err := strictjson.Parse(data)
	if v == nil {
		return nil, fmt.Errorf("%s: %s %w", t.Pos, data, err)
	}
	return v, nil
}

func (p *player) setEnv(op *transcript.Env) error {
	if op.Clear {
		keep := func(e string) bool {
			name, _, _ := strings.Cut(e, "=")
			return name == "PATH" || name == "SystemRoot"
		}
		p.env = slices.DeleteFunc(slices.Clone(p.env), func(e string) bool { return !keep(e) })
		return nil
	}
	p.env = slices.DeleteFunc(slices.Clone(p.env), func(e string) bool { return strings.HasPrefix(e, op.Name+"=") })
	if op.Value == nil {
		return nil
	}
	value, err := op.Value.Expand(scope{p, nil})
	p.env = append(p.env, op.Name+"="+string(value))
	return err
}

// restart starts a process; one of that name that has ended makes room.
func (p *player) restart(s *transcript.Step, op *transcript.Start) error {
	w := p.peer(s.Process)
	if w.proc != nil {
		select {
		case <-w.proc.Done():
		default:
			return fmt.Errorf("%s: %s is still running", s.Pos, s.Process)
		}
		p.lock(func() {
			fresh := newPeer(w.name, w.autoPing)
			fresh.wire = w.wire
			p.peers[w.name] = fresh
		})
		w = p.peer(s.Process)
	}
	var args []string
	for _, a := range op.Args {
		text, err := a.Expand(scope{p, w})
		if err != nil {
			return err
		}
		args = append(args, string(text))
	}
	return p.startPeer(w, args)
}

func (p *player) pause(d time.Duration) error {
	_, err := p.wait(d, func() bool { return false })
	return err
}

// open performs the handshake, or notes the capabilities for later calls.
func (p *player) open(s *transcript.Step, w *peer, op *transcript.Open) error {
	caps := []byte("{}")
	if op.Capabilities != nil {
		v, err := p.value(w, op.Capabilities)
		if err != nil {
			return err
		}
		caps = v.Raw
	}
	w.caps = caps
	if transcript.Modern(p.rev) {
		return nil
	}
	const id = `"mcp-conformance-open"`
	p.write(w, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}}`+"\n", id, p.rev, caps, clientInfo))
	key, _ := strictjson.Parse([]byte(id))
	want := &transcript.Target{Kind: transcript.TargetResult}
	handshake := *s
	if len(handshake.Rules) == 0 {
		// That a server does not answer here says nothing about the header's rules.
		handshake.Rules = []string{"jsonrpc.response.exactly-one"}
	}
	got, err := p.awaitOne(&handshake, w, want, key, p.timeout)
	if err != nil || got == nil {
		return err
	}
	result := got.Value.Get("result")
	p.setVar("initialize", result)
	if version := result.Get("protocolVersion").Str(); version != p.rev {
		return p.fail(s, w, fmt.Sprintf("initialize proposed %s and the server chose %q, although it spoke %s before", p.rev, version, p.rev), nil, false)
	}
	p.write(w, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"))
	return nil
}

func (p *player) call(w *peer, op *transcript.Call) error {
	id, err := p.value(w, op.ID)
	if err != nil {
		return err
	}
	method, err := op.Method.Expand(scope{p, w})
	if err != nil {
		return err
	}
	params, err := op.Params.Expand(scope{p, w})
	if err != nil {
		return err
	}
	if transcript.Modern(p.rev) {
		params = withMeta(params, p.metaFor(w))
	}
	frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s`, id.Raw, strictjson.Quote(string(method)))
	if params != nil {
		frame = append(append(frame, `,"params":`...), params...)
	}
	p.lock(func() {
		w.calls = append(w.calls, id)
		p.writeLocked(w, append(frame, "}\n"...))
	})
	return nil
}

func (p *player) notify(w *peer, op *transcript.Notify) error {
	method, err := op.Method.Expand(scope{p, w})
	if err != nil {
		return err
	}
	frame := append([]byte(`{"jsonrpc":"2.0","method":`), strictjson.Quote(string(method))...)
	if op.Params != nil {
		params, err := op.Params.Expand(scope{p, w})
		if err != nil {
			return err
		}
		frame = append(append(frame, `,"params":`...), params...)
	}
	p.write(w, append(frame, "}\n"...))
	return nil
}

// withMeta merges the harness's _meta into params; keys of the transcript win.
// Everything else keeps its bytes.
func withMeta(params, meta []byte) []byte {
	if params == nil {
		return append(append([]byte(`{"_meta":`), meta...), '}')
	}
	v, _ := strictjson.Parse(params)
	if !v.Is(strictjson.Object) {
		return params
	}
	own := v.Get("_meta")
	base, _ := strictjson.Parse(meta)
	var merged []string
	if own.Is(strictjson.Object) {
		for _, m := range base.Members {
			if own.Get(m.Name) == nil {
				merged = append(merged, strictjson.Quote(m.Name)+":"+string(m.Value.Raw))
			}
		}
		for _, m := range own.Members {
			merged = append(merged, strictjson.Quote(m.Name)+":"+string(m.Value.Raw))
		}
	} else if own == nil {
		for _, m := range base.Members {
			merged = append(merged, strictjson.Quote(m.Name)+":"+string(m.Value.Raw))
		}
	} else {
		return params // a _meta that is no object is sent as written
	}
	members := []string{`"_meta":{` + strings.Join(merged, ",") + "}"}
	for _, m := range v.Members {
		if m.Name != "_meta" {
			members = append(members, strictjson.Quote(m.Name)+":"+string(m.Value.Raw))
		}
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// raw writes bytes as they are, cut where the transcript says so.
func (p *player) raw(w *peer, op *transcript.Raw) error {
	for i, chunk := range op.Chunks {
		var data []byte
		for _, item := range chunk {
			one := item.Data
			switch {
			case item.Text != nil:
				text, err := item.Text.Expand(scope{p, w})
				if err != nil {
					return err
				}
				one = text
			case item.File != "":
				f := p.t.Files[slices.IndexFunc(p.t.Files, func(f transcript.File) bool { return f.Name == item.File })]
				one = f.Data
			}
			for range item.Count {
				data = append(data, one...)
			}
		}
		if op.Newline && i == len(op.Chunks)-1 {
			data = append(data, '\n')
		}
		size := len(data)
		if op.Every > 0 {
			size = op.Every
		}
		for len(data) > 0 {
			n := min(size, len(data))
			p.write(w, data[:n:n])
			data = data[n:]
			if len(data) > 0 || i < len(op.Chunks)-1 {
				w.proc.Gap()
			}
		}
	}
	return nil
}

func (p *player) answer(w *peer, op *transcript.Answer) error {
	id := w.asked[op.Name]
	if id == nil {
		return fmt.Errorf("answer %s: that request did not come", op.Name)
	}
	member, t := "result", op.Result
	if op.Error != nil {
		member, t = "error", op.Error
	}
	body, err := t.Expand(scope{p, w})
	if err != nil {
		return err
	}
	p.write(w, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`+"\n", id.Raw, member, body))
	return nil
}
