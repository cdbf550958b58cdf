package runner

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// Offer is what a server speaks and offers at one revision, found out by
// asking before the first transcript.
type Offer struct {
	Revision     string
	Spoken       bool
	Why          string          // when it is not spoken
	Hung         bool            // the server did not answer in time
	Server       string          // name and version
	Also         map[string]bool // all revisions that were asked for and are spoken
	Capabilities *strictjson.Value
	First        *strictjson.Value              // the result of initialize or server/discover
	Pages        map[string][]*strictjson.Value // results of each list method, by page
	Endless      map[string]bool                // list methods whose cursors did not end
	Tools        []*strictjson.Value            // as listed
	Prompts      []*strictjson.Value
	Resources    []*strictjson.Value
	Templates    []*strictjson.Value

	asked      string        // the method that was asked first
	firstReply time.Duration // from the start of the process

	inspected []*report.Case
	garbled   *report.Case // what the judge found while asking
}

// probeAll asks at every revision that the jobs need, all at once, so that a
// server that hangs costs its timeout once.
func probeAll(ctx context.Context, cfg *Config, jobs []job) map[string]*Offer {
	var (
		mu  sync.Mutex // guards out
		out = map[string]*Offer{}
		wg  sync.WaitGroup
	)
	for _, rev := range transcript.Revisions {
		need := transcript.Need{Kind: transcript.NeedRevision, Name: rev}
		inspect := cfg.Inspect != nil && (cfg.Revisions == nil || slices.Contains(cfg.Revisions, rev))
		if !inspect && !slices.ContainsFunc(jobs, func(j job) bool { return j.rev == rev || slices.Contains(j.t.Needs, need) }) {
			continue
		}
		wg.Go(func() {
			o := Probe(ctx, cfg, rev)
			mu.Lock()
			defer mu.Unlock()
			out[rev] = o
		})
	}
	wg.Wait()
	also := map[string]bool{}
	for rev, o := range out {
		also[rev] = o.Spoken
		o.Also = also
	}
	return out
}

// Probe asks one fresh process what it speaks and offers at a revision.
func Probe(ctx context.Context, cfg *Config, rev string) *Offer {
	o := &Offer{Revision: rev, Pages: map[string][]*strictjson.Value{}, Endless: map[string]bool{}}
	t := &transcript.Transcript{Path: "probe", Title: "what the server offers"}
	c := &report.Case{Name: t.Path, Title: "asked what it speaks, the server answers with clean messages", Revision: rev, Requirements: []string{"framing.stdout-only-mcp"}}
	p := newPlayer(ctx, cfg, job{t, rev}, c)
	defer func() { p.end(); o.garbled = c }()
	w, err := p.running("main")
	if err != nil {
		o.Why = err.Error()
		return o
	}
	first := "initialize"
	params := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":%s}`, rev, clientInfo)
	if transcript.Modern(rev) {
		first, params = "server/discover", ""
	}
	o.asked = first
	reply := p.ask(w, first, params)
	if reply != nil {
		o.firstReply = time.Since(w.started)
	}
	if !p.spoken(o, w, first, reply) {
		return o
	}
	if !transcript.Modern(rev) {
		p.write(w, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"))
	}
	lists := []struct {
		capability, method, member string
		into                       *[]*strictjson.Value
	}{
		{"tools", "tools/list", "tools", &o.Tools},
		{"prompts", "prompts/list", "prompts", &o.Prompts},
		{"resources", "resources/list", "resources", &o.Resources},
		{"resources", "resources/templates/list", "resourceTemplates", &o.Templates},
	}
	for _, l := range lists {
		if o.Capabilities.Get(l.capability) == nil {
			continue
		}
		p.pages(o, w, l.method)
		for _, page := range o.Pages[l.method] {
			*l.into = append(*l.into, arrayItems(page.Get(l.member))...)
		}
	}
	if cfg.Inspect != nil {
		o.inspected = cfg.Inspect(o, &Session{p, w})
	}
	return o
}

// Session is an open conversation with a server, for checks written in Go.
type Session struct {
	p *player
	w *peer
}

// Ask sends a request (in a modern revision with _meta) and returns the whole
// reply, or nil when none came in time.
func (s *Session) Ask(method, params string) *strictjson.Value { return s.p.ask(s.w, method, params) }

// Findings are what the judge has found in this conversation so far.
func (s *Session) Findings() []report.Finding {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return slices.Clone(s.p.c.Findings)
}

// Wire is the exchange so far.
func (s *Session) Wire() []report.Event {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return slices.Clone(s.w.wire)
}

// spoken decides from the first reply whether the revision is spoken.
func (p *player) spoken(o *Offer, w *peer, method string, reply *strictjson.Value) bool {
	result := reply.Get("result")
	switch {
	case reply == nil:
		p.lock(func() {
			if w.exited {
				o.Why = fmt.Sprintf("the server ended (%s) without answering %s", w.state, method)
			} else {
				o.Hung = true
				o.Why = fmt.Sprintf("the server did not answer %s within %v (--timeout gives it longer)", method, p.timeout)
			}
			if tail := lastLines(w.stderr, 3); tail != "" {
				o.Why += "; its last words: " + tail
			}
		})
		return false
	case result == nil:
		o.Why = fmt.Sprintf("the server does not speak %s: it answered %s with %s", o.Revision, method, abbreviate(string(reply.Raw), 200))
		return false
	case method == "initialize" && result.Get("protocolVersion").Str() != o.Revision:
		o.Why = fmt.Sprintf("the server does not speak %s: asked for it, it chose %q", o.Revision, result.Get("protocolVersion").Str())
		return false
	case method == "server/discover" && !slices.ContainsFunc(arrayItems(result.Get("supportedVersions")), func(v *strictjson.Value) bool { return v.Str() == o.Revision }):
		o.Why = fmt.Sprintf("the server does not speak %s: it is not among the supportedVersions of server/discover", o.Revision)
		return false
	}
	o.Spoken, o.First = true, result
	o.Capabilities = result.Get("capabilities")
	info := result.Get("serverInfo")
	if info == nil {
		info = result.At("_meta", "io.modelcontextprotocol/serverInfo")
	}
	o.Server = strings.TrimSpace(info.Get("name").Str() + " " + info.Get("version").Str())
	return true
}

func arrayItems(v *strictjson.Value) []*strictjson.Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// ask sends one request and returns the whole reply, nil when none came.
func (p *player) ask(w *peer, method, params string) *strictjson.Value {
	p.mu.Lock()
	p.witness++
	id := fmt.Sprintf(`"mcp-conformance-probe-%d"`, p.witness)
	body := []byte(nil)
	if params != "" {
		body = []byte(params)
	}
	if transcript.Modern(p.rev) {
		body = withMeta(body, p.metaFor(w))
	}
	frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q`, id, method)
	if body != nil {
		frame = append(append(frame, `,"params":`...), body...)
	}
	p.writeLocked(w, append(frame, "}\n"...))
	p.mu.Unlock()
	key, _ := strictjson.Parse([]byte(id))
	target := &transcript.Target{Kind: transcript.TargetReply}
	var got *strictjson.Value
	asked := []*expectation{{w: w, target: target, id: key}}
	waiting := p.startWait(asked, p.timeout)
	_, err := p.wait(waiting.bound, func() bool {
		if i, how, _ := p.search(w, target, key, 0); how == fits {
			got = w.frames[i].Value
		}
		return got != nil || w.exited
	})
	if err != nil {
		return nil
	}
	missing := asked
	if got != nil {
		missing = nil
	}
	waiting.end(asked, missing)
	return got
}

// maxPages bounds the walk over a list whose cursors never end.
const maxPages = 200

// pages walks a list over all its pages.
func (p *player) pages(o *Offer, w *peer, method string) {
	params := ""
	for range maxPages {
		result := p.ask(w, method, params).Get("result")
		if result == nil {
			return
		}
		o.Pages[method] = append(o.Pages[method], result)
		cursor := result.Get("nextCursor")
		if !cursor.Is(strictjson.String) {
			return
		}
		params = `{"cursor":` + string(cursor.Raw) + `}`
	}
	o.Endless[method] = true
}

// whyNothingIsSpoken explains a run in which no transcript can be played.
func whyNothingIsSpoken(offers map[string]*Offer) string {
	const method = "\x00"
	var whys []string
	asked := map[string][]string{} // by why, without the method
	for _, rev := range transcript.Revisions {
		o := offers[rev]
		if o == nil {
			continue
		}
		why := o.Why
		if o.asked != "" {
			why = strings.Replace(why, " "+o.asked, " "+method, 1)
		}
		if !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
		if !slices.Contains(asked[why], o.asked) {
			asked[why] = append(asked[why], o.asked)
		}
	}
	for i, why := range whys {
		whys[i] = strings.Replace(why, method, strings.Join(asked[why], " or "), 1)
	}
	return "the server answered at none of the revisions: " + strings.Join(whys, "; ")
}

// Has reports whether a need is met.
func (o *Offer) Has(n transcript.Need, settings map[string]string) bool {
	listed := func(all []*strictjson.Value, member string) bool {
		return slices.ContainsFunc(all, func(v *strictjson.Value) bool { return v.Get(member).Str() == n.Name })
	}
	switch n.Kind {
	case transcript.NeedCapability:
		v := o.Capabilities.At(strings.Split(n.Name, ".")...)
		return v != nil && !(v.Is(strictjson.Bool) && !v.True)
	case transcript.NeedExtension:
		return o.Capabilities.At("extensions", n.Name) != nil
	case transcript.NeedTool:
		return listed(o.Tools, "name")
	case transcript.NeedPrompt:
		return listed(o.Prompts, "name")
	case transcript.NeedResource:
		return listed(o.Resources, "uri")
	case transcript.NeedTemplate:
		return listed(o.Templates, "uriTemplate")
	case transcript.NeedSetting:
		_, ok := settings[n.Name]
		return ok
	case transcript.NeedRevision:
		return o.Also[n.Name]
	case transcript.NeedPlatform:
		return n.Name == runtime.GOOS || n.Name == "unix" && runtime.GOOS != "windows"
	}
	return false
}
