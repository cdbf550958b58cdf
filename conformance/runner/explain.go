package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

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
	p.mu.Unlock()
	message := fmt.Sprintf("expected %s, but the reply to %s (id %s) does not fit", show(e.target, e.id), orUnknown(f.Answers), f.ID.Raw)
	want, got := p.sides(e, f)
	if e.target.Pattern != nil && (f.Kind == judge.Result) == (e.target.Kind == transcript.TargetResult) {
		wrong, _ := e.target.Pattern.Match(got, scope{p, e.w})
		for i, m := range wrong {
			if i == 4 {
				message += fmt.Sprintf("; and %d more", len(wrong)-i)
				break
			}
			message += "; " + m.String()
		}
		if p.cfg.Update != nil {
			p.cfg.Update.note(p.t, wrong)
		}
	}
	return p.fail(e.step, e.w, message, diff(want, got), e.should)
}

// sides are what was expected and what came, as values that can be compared
// line by line.
func (p *player) sides(e *expectation, f *arrived) (want, got *strictjson.Value) {
	switch {
	case e.target.Kind == transcript.TargetReply || e.target.Kind == transcript.TargetFrame:
		return e.target.Pattern.Project(f.Value, scope{p, e.w}), f.Value
	case e.target.Kind == transcript.TargetResult && f.Kind == judge.Result:
		return e.target.Pattern.Project(f.Value.Get("result"), scope{p, e.w}), f.Value.Get("result")
	case e.target.Kind == transcript.TargetError && f.Kind == judge.Error:
		got = f.Value.Get("error")
		want = got
		if e.target.Pattern != nil {
			want = e.target.Pattern.Project(got, scope{p, e.w})
		}
		if code, ok := got.Get("code").Int(); e.target.Codes != nil && (!ok || !code.IsInt64() || !slices.Contains(e.target.Codes, code.Int64())) {
			want = withMember(want, "code", codesText(e.target.Codes))
		}
		return want, got
	}
	member := strings.TrimSpace(string(e.target.Kind))
	expected := &strictjson.Value{Raw: []byte("<any>")}
	if e.target.Pattern != nil {
		expected = &strictjson.Value{Raw: []byte(e.target.Pattern.Text)}
	}
	return &strictjson.Value{Kind: strictjson.Object, Members: []strictjson.Member{{Name: member, Value: expected}}}, withoutEnvelope(f.Value)
}

func withMember(v *strictjson.Value, name, text string) *strictjson.Value {
	out := &strictjson.Value{Kind: strictjson.Object}
	for _, m := range v.Members {
		if m.Name == name {
			m.Value = &strictjson.Value{Raw: []byte(text)}
		}
		out.Members = append(out.Members, m)
	}
	return out
}

func withoutEnvelope(v *strictjson.Value) *strictjson.Value {
	out := &strictjson.Value{Kind: strictjson.Object}
	for _, m := range v.Members {
		if m.Name != "jsonrpc" && m.Name != "id" {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

func codesText(codes []int64) string {
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = fmt.Sprint(c)
	}
	return strings.Join(parts, " or ")
}

// diff is cmp's line diff of two values.
func diff(want, got *strictjson.Value) string {
	return cmp.Diff(strings.Split(want.Indent(), "\n"), strings.Split(got.Indent(), "\n"))
}

// show says in words what a target waits for.
func show(t *transcript.Target, id *strictjson.Value) string {
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
		what += " " + abbreviate(strings.Join(strings.Fields(t.Pattern.Text), " "), 200)
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
func (p *player) missed(e *expectation, timeout time.Duration) error {
	p.mu.Lock()
	var message strings.Builder
	fmt.Fprintf(&message, "waited for %s", show(e.target, e.id))
	pendingRequests := e.w.judge.Open()
	if e.w.exited {
		fmt.Fprintf(&message, ", but the server ended (%s)", e.w.state)
		if tail := lastLines(e.w.stderr, 3); tail != "" {
			fmt.Fprintf(&message, "; its last words: %s", tail)
		}
	} else {
		fmt.Fprintf(&message, ", nothing came within %v", timeout)
	}
	if len(pendingRequests) > 0 {
		fmt.Fprintf(&message, "; unanswered: %s", abbreviate(strings.Join(pendingRequests, ", "), 300))
	}
	var d string
	if i, how, _ := p.search(e.w, e.target, e.id, 0); how == near {
		f := e.w.frames[i]
		got := f.Value.Get("params")
		if e.target.Kind == transcript.TargetFrame {
			got = f.Value
		} else if e.target.Missing {
			got = f.Value.Get("error")
		}
		message.WriteString("; the nearest is shown")
		if e.target.Pattern != nil {
			d = diff(e.target.Pattern.Project(got, scope{p, e.w}), got)
		} else {
			d = diff(&strictjson.Value{Raw: []byte(show(e.target, e.id))}, got)
		}
	}
	p.mu.Unlock()
	return p.fail(e.step, e.w, message.String(), d, e.should)
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return abbreviate(strings.Join(lines[max(0, len(lines)-n):], " / "), 300)
}

// fail reports what a step found. After a failure the script stops; after a
// warning it goes on.
func (p *player) fail(s *transcript.Step, w *peer, message, d string, should bool) error {
	rules := p.t.Requirements
	if s != nil && len(s.Rules) > 0 {
		rules = s.Rules
	}
	f := report.Finding{Message: message, Diff: d, Revision: p.rev}
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
