package runner

import (
	"fmt"
	"slices"
	"strings"

	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// misfit reports a reply that does not fit, with what differs.
func (p *player) misfit(e *expectation) error {
	p.mu.Lock()
	f := e.w.frames[e.index]
	f.taken = true
	differs := p.differences(e, f)
	p.mu.Unlock()
	if p.cfg.Update != nil {
		if part := partOf(e.target); part == "" || f.Value.Get(part) != nil {
			wrong, _ := e.target.Pattern.Match(subject(f, part), scope{p, e.w})
			p.cfg.Update.note(p.t, wrong)
		}
	}
	message := fmt.Sprintf("expected %s, but the reply to %s (id %s) does not fit", p.show(e), orUnknown(f.Answers), f.ID.Raw)
	return p.fail(e.step, e.w, message, differs, e.should)
}

// partOf names the member of a message that a target's pattern is about; "" is
// the whole message.
func partOf(t *transcript.Target) string {
	switch t.Kind {
	case transcript.TargetResult:
		return "result"
	case transcript.TargetError:
		return "error"
	case transcript.TargetNotification, transcript.TargetRequest:
		return "params"
	}
	return ""
}

func subject(f *arrived, part string) *strictjson.Value {
	if part == "" {
		return f.Value
	}
	return f.Value.Get(part)
}

// differences are the places in which a frame is not what was expected.
func (p *player) differences(e *expectation, f *arrived) []report.Difference {
	t, part := e.target, partOf(e.target)
	v := subject(f, part)
	if isReply := part == "result" || part == "error"; isReply && v == nil {
		came := map[judge.Kind]string{judge.Result: "result", judge.Error: "error"}[f.Kind]
		want := "any value"
		switch {
		case t.Codes != nil:
			want = "an error with the code " + codesText(t.Codes)
		case t.Pattern != nil:
			want = t.Pattern.Words(scope{p, e.w})
		}
		return []report.Difference{
			{Path: part, Expected: want, Got: transcript.Nothing},
			{Path: came, Expected: transcript.Nothing, Got: transcript.Show(f.Value.Get(came))},
		}
	}
	var out []report.Difference
	if t.Exact && string(f.ID.Raw) != string(e.id.Raw) {
		out = append(out, report.Difference{Path: "id", Expected: "written exactly as " + string(e.id.Raw), Got: string(f.ID.Raw)})
	}
	if !hasCode(t, v) {
		out = append(out, report.Difference{Path: "error.code", Expected: codesText(t.Codes), Got: transcript.Show(v.Get("code"))})
	}
	for _, d := range t.Pattern.Differences(part, v, scope{p, e.w}) {
		out = append(out, report.Difference(d))
	}
	return out
}

// hasCode reports whether an error object has one of the codes that a target wants.
func hasCode(t *transcript.Target, object *strictjson.Value) bool {
	if t.Codes == nil {
		return true
	}
	code, ok := object.Get("code").Int()
	return ok && code.IsInt64() && slices.Contains(t.Codes, code.Int64())
}

func codesText(codes []int64) string {
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = fmt.Sprint(c)
	}
	return strings.Join(parts, " or ")
}

// show says in words what an expectation waits for.
func (p *player) show(e *expectation) string { return p.showTarget(e.target, e.id, e.w) }

func (p *player) showTarget(t *transcript.Target, id *strictjson.Value, w *peer) string {
	what := string(t.Kind)
	switch {
	case t.Missing:
		what += " without readable id"
	case id != nil:
		what += " for id " + string(id.Raw)
	case t.Method != "":
		what += " " + t.Method
	}
	if t.Codes != nil {
		what += " with code " + codesText(t.Codes)
	}
	if t.Pattern != nil {
		what += " " + abbreviate(t.Pattern.Words(scope{p, w}), 200)
	}
	return what
}

func orUnknown(method string) string {
	if method == "" {
		return "a request"
	}
	return method
}

// missed reports an expectation that was not met, and names what is pending.
func (p *player) missed(e *expectation, waiting waited) error {
	p.mu.Lock()
	var message strings.Builder
	fmt.Fprintf(&message, "waited for %s", p.show(e))
	pendingRequests := e.w.judge.Open()
	if e.w.exited {
		fmt.Fprintf(&message, ", but the server ended (%s)", e.w.state)
		if tail := lastLines(e.w.stderr, 3); tail != "" {
			fmt.Fprintf(&message, "; its last words: %s", tail)
		}
	} else {
		fmt.Fprintf(&message, ", nothing came within %s", waiting)
	}
	if len(pendingRequests) > 0 {
		fmt.Fprintf(&message, "; unanswered: %s", abbreviate(strings.Join(pendingRequests, ", "), 300))
	}
	var differs []report.Difference
	if i, how, _ := p.search(e.w, e.target, e.id, 0); how == near {
		message.WriteString("; the nearest is shown")
		differs = p.differences(e, e.w.frames[i])
	}
	p.mu.Unlock()
	return p.fail(e.step, e.w, message.String(), differs, e.should)
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return abbreviate(strings.Join(lines[max(0, len(lines)-n):], " / "), 300)
}

// fail reports what a step found. After a failure the script stops; after a
// warning it goes on.
func (p *player) fail(s *transcript.Step, w *peer, message string, differs []report.Difference, should bool) error {
	rules := p.t.Requirements
	if s != nil && len(s.Rules) > 0 {
		rules = s.Rules
	}
	f := report.Finding{Message: message, Differences: differs, Revision: p.rev}
	f.Rule, f.Severity = weigh(rules, p.rev, should)
	describe(&f)
	if s != nil {
		f.Step, f.StepText = fmt.Sprintf("%s:%s", p.t.Path, s.Pos), s.Text
	}
	var wire []report.Event
	p.lock(func() { wire = w.excerpt() })
	p.add(f, wire)
	if f.Severity == report.Failure && p.cfg.Update == nil {
		return errStop
	}
	return nil
}
