package transcript

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// expect reads what follows the word: a frame of the server, its exit, or its
// standard error.
func (p *scriptParser) expect(should bool) (Op, error) {
	switch {
	case p.accept("exit"):
		return p.expectExit(should)
	case p.accept("stderr"):
		return p.expectStderr(should)
	}
	target, err := p.target()
	return &Expect{Target: target, Should: should}, err
}

// expectExit reads "CODE[|CODE…] [within DURATION]"; a code is a number, "any"
// or "signal:TERM".
func (p *scriptParser) expectExit(should bool) (Op, error) {
	op := &ExpectExit{Should: should}
	p.blanks()
	at := p.pos
	codes := p.word()
	if codes == "" {
		return nil, p.errAt(at, "expect exit is followed by a code, codes such as 0|143, signal:TERM, or any")
	}
	for _, c := range strings.Split(codes, "|") {
		if c == "any" {
			continue
		}
		if sig, ok := strings.CutPrefix(c, "signal:"); ok {
			if !slices.Contains(signalNames, sig) && sig != "PIPE" {
				return nil, p.errAt(at, "unknown signal %q", sig)
			}
			op.Signals = append(op.Signals, sig)
			continue
		}
		n, err := strconv.Atoi(c)
		if err != nil || n < 0 || n > 255 {
			return nil, p.errAt(at, "%q is no exit code; write 0, 0|143, signal:TERM, or any", c)
		}
		op.Codes = append(op.Codes, n)
	}
	if codes == "any" {
		op.Codes, op.Signals = nil, nil
	}
	if p.accept("within") {
		var err error
		if op.Within, err = p.duration(maxTimeout); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// expectStderr reads "[not] /regexp/" or "empty".
func (p *scriptParser) expectStderr(should bool) (Op, error) {
	op := &ExpectStderr{Should: should}
	if p.accept("empty") {
		op.Not, op.Regexp = true, `(?s).`
		return op, nil
	}
	op.Not = p.accept("not")
	p.blanks()
	pat := &Pattern{}
	if p.peek() != '/' {
		return nil, p.err("%s where a /regexp/ is due", p.near())
	}
	if err := p.regexp(pat); err != nil {
		return nil, err
	}
	op.Regexp = pat.re.String()
	if _, err := regexp.Compile(op.Regexp); err != nil {
		return nil, p.err("%v", err)
	}
	return op, nil
}

func (p *scriptParser) never(should bool) (Op, error) {
	target, err := p.target()
	if err != nil {
		return nil, err
	}
	op := &Never{Target: target, Should: should}
	if target.Kind == TargetWitness {
		return nil, p.err("a witness is what one waits for: never … until witness")
	}
	if p.accept("until") {
		until, err := p.target()
		if err != nil {
			return nil, err
		}
		op.Until = &until
	}
	return op, nil
}

// target reads a description of a frame:
//
//	result ID [PATTERN]              error ID [CODES] [PATTERN]
//	reply ID [PATTERN]               error unreadable [CODES] [PATTERN]
//	notification METHOD [PATTERN]    request METHOD [PATTERN] [as NAME]
//	frame PATTERN                    witness
func (p *scriptParser) target() (Target, error) {
	p.blanks()
	at := p.pos
	t := Target{Kind: TargetKind(p.word())}
	var err error
	switch t.Kind {
	case TargetResult, TargetError, TargetReply:
		if t.Kind != TargetResult && p.accept("unreadable") {
			t.Missing = true
		} else {
			t.Exact = p.accept("exactly")
			if t.ID, err = p.id(); err != nil {
				return t, err
			}
		}
		if t.Kind == TargetError {
			if err = p.codes(&t); err != nil {
				return t, err
			}
		}
	case TargetNotification, TargetRequest:
		p.blanks()
		if t.Method = p.word(); t.Method == "" || !isNameByte(t.Method[0]) {
			return t, p.err("%s is followed by a method", t.Kind)
		}
	case TargetFrame:
		if p.atLineEnd() {
			return t, p.err("frame is followed by a pattern of the whole message")
		}
	case TargetWitness:
		return t, nil
	default:
		return t, p.errAt(at, "%q is no kind of frame; known: result, error, reply, notification, request, frame, witness, and for expect also exit and stderr", string(t.Kind))
	}
	if !p.atLineEnd() {
		if w := p.peekWord(); w != "as" && w != "until" {
			if t.Pattern, err = p.pattern(true); err != nil {
				return t, err
			}
		}
	}
	if t.Kind == TargetRequest && p.accept("as") {
		t.As, err = p.name()
	}
	return t, err
}

// codes reads -32602 or -32602|-32600 or any, when it is there.
func (p *scriptParser) codes(t *Target) error {
	p.blanks()
	at := p.pos
	w := p.peekWord()
	if w == "any" {
		p.word()
		return nil
	}
	if w == "" || w[0] != '-' && (w[0] < '0' || w[0] > '9') {
		return nil
	}
	p.word()
	for _, c := range strings.Split(w, "|") {
		n, err := strconv.ParseInt(c, 10, 64)
		if err != nil {
			return p.errAt(at, "%q is no error code; write -32602, -32602|-32600, or any", c)
		}
		t.Codes = append(t.Codes, n)
	}
	return nil
}

// MaxPause is the longest pause a script may ask for.
const MaxPause = 10 * time.Second
