package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	hello   = `> {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	welcome = `< {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"0"}}}`
	ready   = `> {"jsonrpc":"2.0","method":"notifications/initialized"}`
	session = hello + "\n" + welcome + "\n" + ready + "\n"
	meta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// TestFrames plays short exchanges; each names the rules that are broken, the
// first of each finding's list.
func TestFrames(t *testing.T) {
	for _, c := range []struct {
		name, played, lines string
		want                []string
	}{
		{"a session", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"result":{}}`, nil},
		{"not JSON", "2025-06-18", `< hello`, []string{"framing.stdout-only-mcp"}},
		{"an empty line", "2025-06-18", `< `, []string{"framing.stdout-only-mcp"}},
		{"invalid UTF-8", "2025-06-18", "< {\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", []string{"framing.utf8"}},
		{"a member twice", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"id":1,"result":{}}`, []string{"framing.stdout-schema-valid"}},
		{"a carriage return", "2025-06-18", session + "> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r", []string{"framing.newline-delimited"}},
		{"an array", "2025-06-18", `< []`, []string{"framing.single-message-per-line", "jsonrpc.batch.notifications-only"}},
		{"no version tag", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"id":1,"result":{}}`, []string{"jsonrpc.version-tag", "framing.stdout-schema-valid"}},
		{"result and error", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, []string{"jsonrpc.response.result-or-error"}},
		{"answered twice", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"result":{}}
< {"jsonrpc":"2.0","id":1,"result":{}}`, []string{"jsonrpc.response.exactly-one"}},
		{"id of another type", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":"1","result":{}}`, []string{"jsonrpc.id.type-preserved"}},
		{"id rounded", "2025-06-18", session + `> {"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}
< {"jsonrpc":"2.0","id":9007199254740992,"result":{}}`, []string{"jsonrpc.id.large-integer"}},
		{"id never sent", "2025-06-18", session + `< {"jsonrpc":"2.0","id":77,"result":{}}`, []string{"jsonrpc.id.echoed"}},
		{"null id after garbage", "2025-06-18", session + "> garbage\n" + `< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, nil},
		{"absent id after garbage", "2026-07-28", "> garbage\n" + `< {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}`, nil},
		{"a notification answered", "2025-06-18", session + `< {"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`, []string{"jsonrpc.error.id-echoed"}},
		{"schema", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"x"}]}}`, []string{"framing.stdout-schema-valid"}},
		{"members of a later revision", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[],"ttlMs":1}}`, []string{"versioning.era.legacy-shape"}},
		{"a modern frame in a session", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, []string{"meta.result-type.present"}},
		{"a capability nobody declared", "2025-06-18", session + `< {"jsonrpc":"2.0","id":1,"method":"roots/list"}`, []string{"lifecycle.capabilities-respected.must"}},
		{"a request before initialized", "2025-06-18", hello + "\n" + welcome + "\n" + `< {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"jsonrpc.id.server-unique-in-session"}},
		{"a request in a modern revision", "2026-07-28", `< {"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"framing.server-no-requests"}},
		{"progress", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":0}}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"0","progress":1}}
< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":2}}`,
			[]string{"progress.increases", "progress.none-without-token", "progress.stops"}},
		{"cancelled, then answered at once", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, nil},
		{"answered after the cancel was surely read", "2025-06-18", session + `> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
> {"jsonrpc":"2.0","id":2,"method":"ping"}
< {"jsonrpc":"2.0","id":2,"result":{}}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, []string{"cancel.server.nothing-further"}},
		{"a subscription", "2026-07-28", `> {"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}
< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
< {"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
< {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"t"}}}
< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			[]string{"subs.ack.first", "subs.filter.only-requested", "subs.id.value", "jsonrpc.no-unsolicited-notifications"}},
		{"neither session nor claim", "2026-07-28", `> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"result":{}}`, nil},
		{"a task's progress goes on", "2025-11-25", strings.ReplaceAll(session, "2025-06-18", "2025-11-25") + `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{},"_meta":{"progressToken":0}}}
< {"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":1}}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}`, nil},
		{"retired codes", "2026-07-28", `> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x",` + meta + `}}
< {"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}`, []string{"jsonrpc.codes.32002-retired"}},
		{"logs nobody asked for", "2026-07-28", `> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}
< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`, []string{"logging.per-request.opt-in"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := New(c.played)
			for _, line := range strings.Split(c.lines, "\n") {
				switch {
				case strings.HasPrefix(line, "> "):
					j.Sent([]byte(line[2:]))
				case strings.HasPrefix(line, "< "):
					j.Received([]byte(line[2:]), true)
				default:
					t.Fatalf("line %q", line)
				}
			}
			var got []string
			for _, f := range j.Findings() {
				got = append(got, f.Rules[0])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenNamesWhatIsPending(t *testing.T) {
	j := New("2025-06-18")
	j.Sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	j.Sent([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`))
	j.Received([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`), true)
	if diff := cmp.Diff([]string{`tools/list (id "a")`}, j.Open()); diff != "" {
		t.Error(diff)
	}
}

// FuzzJudge holds that nothing a client sends or a server writes makes the
// judge panic, and that every finding names a rule.
func FuzzJudge(f *testing.F) {
	f.Add(session+`> {"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, true)
	f.Add("> [1,{}]", `[{"id":null,"error":null}]`, false)
	f.Add(`> {"id":{},"method":1}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":[]}`, true)
	f.Fuzz(func(t *testing.T, before, line string, terminated bool) {
		j := New("2026-07-28")
		for _, b := range strings.Split(before, "\n") {
			if sent, ok := strings.CutPrefix(b, "> "); ok {
				j.Sent([]byte(sent))
			} else {
				j.Received([]byte(strings.TrimPrefix(b, "< ")), true)
			}
		}
		j.Received([]byte(line), terminated)
		j.Open()
		for _, found := range j.Findings() {
			if len(found.Rules) == 0 || slices.Contains(found.Rules, "") || found.Message == "" {
				t.Fatalf("%+v", found)
			}
		}
	})
}
