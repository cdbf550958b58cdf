package transcript

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// scriptParser reads steps; one method per family of steps.
type scriptParser struct {
	*scanner
	transcript *Transcript
	groups     int // how many ordered and unordered blocks are open
}

// verbs lists every step, for the message about an unknown one.
var verbs = []string{
	"open", "call", "notify", "send", "raw", "line", "expect", "maybe", "never", "answer", "ignore", "start", "finally", "env", "cwd",
	"close", "stop", "resume", "signal", "pause", "timeout", "ordered", "unordered", "repeat", "when",
}

const maxNesting = 16

// steps reads until the end of the script, or until a line that closes a block
// ("end" or "otherwise"), which it returns and consumes.
func (p *scriptParser) steps(depth int) ([]Step, string, error) {
	if depth > maxNesting {
		return nil, "", p.err("blocks are nested deeper than %d", maxNesting)
	}
	var out []Step
	for {
		p.space()
		if p.eof() {
			return out, "", nil
		}
		if p.peek() == '#' {
			p.skipLine()
			continue
		}
		if w := p.peekWord(); w == "end" || w == "otherwise" {
			at := p.pos
			if depth == 0 {
				return nil, "", p.errAt(at, "%q closes no block", w)
			}
			p.word()
			return out, w, p.endLine()
		}
		at := p.pos
		step, err := p.step(depth)
		if err != nil {
			return nil, "", err
		}
		if p.groups > 0 {
			switch step.Op.(type) {
			case *Expect, *Repeat, *When:
			default:
				return nil, "", p.errAt(at, "an ordered or unordered block holds only expect and maybe steps")
			}
		}
		out = append(out, step)
	}
}

func (p *scriptParser) step(depth int) (Step, error) {
	step := Step{Pos: p.posAt(p.pos), Text: p.line(), Process: "main"}
	if p.peek() == '@' {
		p.pos++
		name, err := p.name()
		if err != nil {
			return step, err
		}
		step.Process = name
		p.blanks()
	}
	for p.peek() == '[' {
		p.pos++
		end := strings.IndexAny(string(p.src[p.pos:]), "]\n")
		if end <= 0 || p.src[p.pos+end] != ']' {
			return step, p.err("a rule prefix is written [requirement-id]")
		}
		step.Rules = append(step.Rules, strings.Fields(string(p.src[p.pos:p.pos+end]))...)
		p.pos += end + 1
		p.blanks()
	}
	should := p.accept("should")
	p.blanks()
	at := p.pos
	verb := p.word()
	op, err := p.op(verb, at, depth, should)
	if err != nil {
		return step, err
	}
	step.Op = op
	switch op.(type) {
	case *Ordered, *Unordered, *Repeat, *When:
		return step, nil // the block's end consumed its line
	}
	return step, p.endLine()
}

func (p *scriptParser) op(verb string, at, depth int, should bool) (Op, error) {
	if should && verb != "expect" && verb != "never" {
		return nil, p.errAt(at, "should stands only before expect and never")
	}
	switch verb {
	case "open":
		op := &Open{}
		var err error
		if !p.atLineEnd() {
			op.Capabilities, err = p.jsonTemplate()
		}
		return op, err
	case "call", "notify":
		return p.message(verb)
	case "send":
		t, err := p.jsonTemplate()
		return &Send{t}, err
	case "raw", "line":
		return p.rawBytes(verb == "line")
	case "expect":
		return p.expect(should)
	case "maybe":
		target, err := p.target()
		return &Expect{Target: target, Maybe: true}, err
	case "never":
		return p.never(should)
	case "answer":
		return p.answer()
	case "ignore":
		id, err := p.id()
		return &Ignore{id}, err
	case "start":
		args, err := p.arguments()
		return &Start{args}, err
	case "finally":
		args, err := p.arguments()
		return &Finally{args}, err
	case "env":
		return p.env()
	case "cwd":
		dir, err := p.textTemplate()
		return &Cwd{dir}, err
	case "close":
		if stream := p.word(); stream == "stdin" || stream == "stdout" {
			return &Close{stream}, nil
		}
		return nil, p.errAt(at, "write close stdin or close stdout")
	case "stop", "resume":
		if !p.accept("reading") {
			return nil, p.errAt(at, "write %s reading", verb)
		}
		return &Reading{verb == "resume"}, nil
	case "signal":
		sig := p.word()
		if !slices.Contains(signalNames, sig) {
			return nil, p.errAt(at, "unknown signal %q; known: %s", sig, strings.Join(signalNames, ", "))
		}
		return &Signal{sig}, nil
	case "pause":
		d, err := p.duration(MaxPause)
		return &Pause{d}, err
	case "timeout":
		d, err := p.duration(maxTimeout)
		return &SetTimeout{d}, err
	case "ordered", "unordered", "repeat", "when":
		return p.block(verb, at, depth)
	}
	return nil, p.errAt(at, "unknown step %q; known: %s", verb, strings.Join(verbs, ", "))
}

// arguments reads command-line arguments up to the end of the line.
func (p *scriptParser) arguments() ([]*Template, error) {
	var args []*Template
	for !p.atLineEnd() {
		arg, err := p.textTemplate()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

var signalNames = []string{"TERM", "INT", "HUP", "KILL", "STOP", "CONT"}

func (p *scriptParser) duration(limit time.Duration) (time.Duration, error) {
	p.blanks()
	at := p.pos
	w := p.word()
	d, err := time.ParseDuration(w)
	if err != nil || d <= 0 || d > limit {
		return 0, p.errAt(at, "%q is no duration up to %v; write 500ms or 2s", w, limit)
	}
	return d, nil
}

// id reads a request id: a JSON string or number, or a reference.
func (p *scriptParser) id() (*Template, error) {
	p.blanks()
	at := p.pos
	t, err := p.jsonTemplate()
	if err != nil {
		return nil, err
	}
	if c := p.src[at]; c == '{' || c == '[' {
		return nil, p.errAt(at, "an id is a string, a number or a reference; use send for anything else")
	}
	return t, nil
}

func (p *scriptParser) message(verb string) (Op, error) {
	call := &Call{}
	var err error
	if verb == "call" {
		if call.ID, err = p.id(); err != nil {
			return nil, err
		}
	}
	if call.Method, err = p.wordTemplate("the method"); err != nil {
		return nil, err
	}
	if !p.atLineEnd() {
		at := p.pos
		if call.Params, err = p.jsonTemplate(); err != nil {
			return nil, err
		}
		if c := p.src[at]; c != '{' && c != '$' {
			return nil, p.errAt(at, "params of a %s is an object; use send for anything else", verb)
		}
	}
	if verb == "notify" {
		return &Notify{call.Method, call.Params}, nil
	}
	return call, nil
}

// rawBytes reads items: "text", hex:0A0B, file:NAME, repeat N ITEM; "|" cuts
// the payload into chunks; every=N cuts it into pieces of N bytes.
func (p *scriptParser) rawBytes(newline bool) (Op, error) {
	op := &Raw{Newline: newline, Chunks: [][]Bytes{nil}}
	if strings.HasPrefix(p.peekWord(), "every=") {
		p.blanks()
		at := p.pos
		n, err := strconv.Atoi(strings.TrimPrefix(p.word(), "every="))
		if err != nil || n < 1 {
			return nil, p.errAt(at, "write every=N with N of at least 1 byte")
		}
		op.Every = n
	}
	for !p.atLineEnd() {
		if p.peek() == '|' {
			p.pos++
			op.Chunks = append(op.Chunks, nil)
			continue
		}
		item, err := p.rawItem()
		if err != nil {
			return nil, err
		}
		last := len(op.Chunks) - 1
		op.Chunks[last] = append(op.Chunks[last], item)
	}
	if len(op.Chunks) == 1 && len(op.Chunks[0]) == 0 && !newline {
		return nil, p.err("raw has nothing to write")
	}
	return op, nil
}

// maxRepeat bounds what one item of a raw payload may grow to: 256 MiB.
const maxRepeat = 256 << 20

func (p *scriptParser) rawItem() (Bytes, error) {
	item := Bytes{Count: 1}
	at := p.pos
	if p.accept("repeat") {
		p.blanks()
		numberAt := p.pos
		n, err := strconv.Atoi(p.word())
		if err != nil || n < 0 || n > maxRepeat {
			return item, p.errAt(numberAt, "repeat is followed by a count up to %d", maxRepeat)
		}
		item.Count = n
		p.blanks()
		at = p.pos
	}
	switch {
	case p.peek() == '"' || p.peek() == '`':
		text, err := p.textTemplate()
		item.Text = text
		return item, err
	case p.has("hex:"):
		digits := strings.TrimPrefix(p.word(), "hex:")
		for i := 0; i+1 < len(digits); i += 2 {
			b, err := strconv.ParseUint(digits[i:i+2], 16, 8)
			if err != nil {
				return item, p.errAt(at, "hex: is followed by pairs of hexadecimal digits")
			}
			item.Data = append(item.Data, byte(b))
		}
		if len(digits)%2 != 0 || len(digits) == 0 {
			return item, p.errAt(at, "hex: is followed by pairs of hexadecimal digits")
		}
		if len(item.Data)*item.Count > maxRepeat {
			return item, p.errAt(at, "this payload is larger than %d bytes", maxRepeat)
		}
		return item, nil
	case p.has("file:"):
		item.File = strings.TrimPrefix(p.word(), "file:")
		if !slices.ContainsFunc(p.transcript.Files, func(f File) bool { return f.Name == item.File }) {
			return item, p.errAt(at, "the archive holds no file %q", item.File)
		}
		return item, nil
	}
	return item, p.err("%s where \"text\", hex:…, file:NAME, repeat N … or | is due", p.near())
}

func (p *scriptParser) answer() (Op, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	op := &Answer{Name: name}
	if p.accept("error") {
		op.Error, err = p.jsonTemplate()
		return op, err
	}
	op.Result, err = p.jsonTemplate()
	return op, err
}

func (p *scriptParser) env() (Op, error) {
	if p.accept("clear") {
		return &Env{Clear: true}, nil
	}
	unset := p.accept("unset")
	name, err := p.name()
	if err != nil || unset {
		return &Env{Name: name}, err
	}
	value, err := p.textTemplate()
	return &Env{Name: name, Value: value}, err
}

func (p *scriptParser) block(verb string, at, depth int) (Op, error) {
	var op Op
	switch verb {
	case "repeat":
		r := &Repeat{}
		var err error
		if r.Var, err = p.name(); err != nil {
			return nil, err
		}
		p.blanks()
		rangeAt := p.pos
		low, high, ok := strings.Cut(p.word(), "..")
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if !ok || err1 != nil || err2 != nil || from > to || to-from >= 1_000_000 {
			return nil, p.errAt(rangeAt, "write repeat NAME FROM..TO, such as repeat i 1..64")
		}
		r.From, r.To = from, to
		op = r
	case "when":
		p.blanks()
		revsAt := p.pos
		revs, err := ParseRevisions(p.line())
		if err != nil {
			return nil, p.errAt(revsAt, "%v", err)
		}
		op = &When{Revisions: revs}
		p.pos += len(p.line())
	}
	if err := p.endLine(); err != nil {
		return nil, err
	}
	if verb == "ordered" || verb == "unordered" {
		p.groups++
		defer func() { p.groups-- }()
	}
	steps, closer, err := p.steps(depth + 1)
	if err != nil {
		return nil, err
	}
	if w, ok := op.(*When); ok && closer == "otherwise" {
		w.Then = steps
		if w.Else, closer, err = p.steps(depth + 1); err != nil {
			return nil, err
		}
		if closer != "end" {
			return nil, p.errAt(at, "this when has no end")
		}
		return w, nil
	}
	if closer != "end" {
		return nil, p.errAt(at, "this %s has no end", verb)
	}
	switch o := op.(type) {
	case *Repeat:
		o.Steps = steps
	case *When:
		o.Then = steps
	default:
		if verb == "ordered" {
			return &Ordered{steps}, nil
		}
		return &Unordered{steps}, nil
	}
	return op, nil
}
