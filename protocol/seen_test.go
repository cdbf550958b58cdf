package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

func TestCancelReason(t *testing.T) {
	for reason, want := range map[string]error{`,"reason":"enough"`: &protocol.CancelledError{Reason: "enough"}, ``: protocol.ErrCancelled, `,"reason":5`: protocol.ErrCancelled} {
		f := newFullServer()
		p := connect(t, f.Server)
		p.send(modern("1", "tools/call", `"name":"slow"`))
		<-f.entered
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1` + reason + `}}`)
		got := <-f.causes
		if got.Error() != want.Error() || !errors.Is(got, protocol.ErrCancelled) {
			t.Errorf("%s: the cause is %v", reason, got)
		}
		p.quiet()
	}
}

func TestClientExtension(t *testing.T) {
	tool := protocol.Tool{Name: "ext", InputSchema: anyObject, Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		return &protocol.ToolResult{Structured: string(call.ClientExtension("test.example/ui"))}, nil
	}}
	for capabilities, want := range map[string]string{
		`{"extensions":{"test.example/ui":{"a":[1]}}}`: `{"a":[1]}`, `{"extensions":{"test.example/ui":{}}}`: `{}`, `{"extensions":{"test.example/ui":true}}`: "",
		`{"extensions":{"other.example/ui":{}}}`: "", `{}`: "",
	} {
		do := speak(connect(t, plainServer(tool)), "2026-07-28", capabilities)
		if got := resultOf(t, do("tools/call", `"name":"ext"`))["structuredContent"]; got != want {
			t.Errorf("%s: %v", capabilities, got)
		}
	}
	do := speak(connect(t, plainServer(tool)), "2025-11-25", `{"extensions":{"test.example/ui":{}}}`)
	if line := do("tools/call", `"name":"ext"`); !strings.Contains(line, `"text":"\"\""`) {
		t.Errorf("a revision without extensions: %s", line)
	}
}

// keptResources are resources whose lists may be kept.
type keptResources struct{ testResources }

func (*keptResources) CacheResources() (time.Duration, protocol.CacheScope) {
	return 90 * time.Second, protocol.ScopePrivate
}

func (*keptResources) CacheTemplates() (time.Duration, protocol.CacheScope) {
	return time.Hour, protocol.ScopePublic
}

func TestResourceListsAreKept(t *testing.T) {
	type hints struct{ TTL, Scope any }
	ask := func(resources protocol.Resources, version string) (got []hints) {
		s := plainServer()
		s.Resources = resources
		do := speak(connect(t, s), version, `{}`)
		for _, method := range []string{"resources/list", "resources/templates/list"} {
			r := resultOf(t, do(method, ""))
			got = append(got, hints{r["ttlMs"], r["cacheScope"]})
		}
		return got
	}
	n := func(ms string) json.Number { return json.Number(ms) }
	for _, c := range []struct {
		name, version string
		resources     protocol.Resources
		want          []hints
	}{
		{"kept", "2026-07-28", &keptResources{}, []hints{{n("90000"), "private"}, {n("3600000"), "public"}}},
		{"not kept", "2026-07-28", &testResources{}, []hints{{n("0"), "private"}, {n("0"), "private"}}},
		{"a revision without hints", "2025-11-25", &keptResources{}, []hints{{}, {}}},
	} {
		if diff := cmp.Diff(c.want, ask(c.resources, c.version)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// fixedCompletion completes everything in the same way.
type fixedCompletion protocol.Completion

func (c fixedCompletion) Complete(context.Context, *protocol.CompletionRequest) (*protocol.Completion, error) {
	return (*protocol.Completion)(&c), nil
}

func TestCompletionTotals(t *testing.T) {
	for want, c := range map[string]fixedCompletion{
		`{"values":["a"]}`:                           {Values: []string{"a"}},
		`{"values":["a"],"hasMore":true}`:            {Values: []string{"a"}, HasMore: true},
		`{"values":["a"],"total":1,"hasMore":false}`: {Values: []string{"a"}, Total: 1},
		`{"values":["a"],"total":10,"hasMore":true}`: {Values: []string{"a"}, Total: 10, HasMore: true},
		`{"values":[]}`:                              {},
	} {
		s := plainServer()
		s.Completions = c
		do := speak(connect(t, s), "2026-07-28", `{}`)
		if line := do("completion/complete", `"ref":{"type":"ref/resource","uri":"test://{x}"},"argument":{"name":"x","value":""}`); !strings.Contains(line, `"completion":`+want+`,`) {
			t.Errorf("want %s in %s", want, line)
		}
	}
}

func TestLastModified(t *testing.T) {
	for want, at := range map[string]time.Time{
		`{"lastModified":"2025-01-12T15:00:58Z"}`:     time.Date(2025, 1, 12, 15, 0, 58, 0, time.UTC),
		`{"lastModified":"2025-01-12T15:00:58.25Z"}`:  time.Date(2025, 1, 12, 15, 0, 58, 250e6, time.UTC),
		`{"lastModified":"2025-01-12T13:00:58.001Z"}`: time.Date(2025, 1, 12, 15, 0, 58, 1_999_999, time.FixedZone("", 7200)),
	} {
		tool := protocol.Tool{Name: "dated", InputSchema: anyObject, Call: func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) {
			return &protocol.ToolResult{Content: []protocol.Content{protocol.TextContent{Annotations: &protocol.Annotations{LastModified: at}}}}, nil
		}}
		do := speak(connect(t, plainServer(tool)), "2026-07-28", `{}`)
		if line := do("tools/call", `"name":"dated"`); !strings.Contains(line, `"annotations":`+want) {
			t.Errorf("want %s in %s", want, line)
		}
	}
}
