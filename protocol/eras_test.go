package protocol_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabro-mcp/protocol"
)

// claim returns params whose _meta claims a revision.
func claim(version, rest string) string {
	return fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/protocolVersion":%q%s}}`, version, rest)
}

const caps = `,"io.modelcontextprotocol/clientCapabilities":{}`

func code(want int64) func(*testing.T, string) {
	return func(t *testing.T, line string) {
		t.Helper()
		if got, _, _ := errorOf(t, line); got != want {
			t.Errorf("got code %d, want %d: %s", got, want, line)
		}
	}
}

func ok(t *testing.T, line string) {
	t.Helper()
	resultOf(t, line)
}

func modernResult(t *testing.T, line string) {
	t.Helper()
	if resultOf(t, line)["resultType"] != "complete" {
		t.Errorf("not a modern result: %s", line)
	}
}

func legacyResult(t *testing.T, line string) {
	t.Helper()
	r := resultOf(t, line)
	for _, name := range []string{"resultType", "ttlMs", "cacheScope", "_meta"} {
		if _, ok := r[name]; ok {
			t.Errorf("a legacy result has %s: %s", name, line)
		}
	}
}

// opens checks that a session can still be opened.
func opens(t *testing.T, p *peer) {
	t.Helper()
	if v := resultOf(t, p.initialize("2025-06-18", "{}"))["protocolVersion"]; v != "2025-06-18" {
		t.Errorf("initialize afterwards gave %v", v)
	}
}

// TestCombinations has one subtest for each doubtful combination of eras; the
// numbers are those of the table in docs/protocol.md.
func TestCombinations(t *testing.T) {
	type row struct {
		n    int
		name string
		run  func(t *testing.T, f *fullServer, p *peer)
	}
	// one sends one request on a fresh stream; inSession does so in a session.
	one := func(line string, check func(*testing.T, string)) func(*testing.T, *fullServer, *peer) {
		return func(t *testing.T, _ *fullServer, p *peer) { t.Helper(); check(t, p.call(line)); opens(t, p) }
	}
	inSession := func(version, line string, check func(*testing.T, string)) func(*testing.T, *fullServer, *peer) {
		return func(t *testing.T, _ *fullServer, p *peer) {
			t.Helper()
			p.initialize(version, "{}")
			check(t, p.call(line))
		}
	}
	list := func(n string) string { return request(n, "tools/list", "") }
	rows := []row{
		{1, "modern request first", one(modern("1", "tools/list", ""), modernResult)},
		{2, "discover without metadata", one(request("1", "server/discover", ""), code(-32602))},
		{3, "discover claims a handshake revision", one(request("1", "server/discover", claim("2025-06-18", caps)), code(-32022))},
		{4, "list claims a handshake revision", one(request("1", "tools/list", claim("2025-06-18", caps)), code(-32022))},
		{5, "the same in a session", inSession("2025-06-18", request("1", "tools/list", claim("2025-06-18", caps)), legacyResult)},
		{6, "claim of the past", one(request("1", "tools/list", claim("1999-01-01", caps)), code(-32022))},
		{7, "claim of the future", one(request("1", "tools/list", claim("2099-01-01", caps)), code(-32022))},
		{8, "capabilities missing or no object", func(t *testing.T, _ *fullServer, p *peer) {
			for _, rest := range []string{"", `,"io.modelcontextprotocol/clientCapabilities":null`, `,"io.modelcontextprotocol/clientCapabilities":[]`} {
				code(-32602)(t, p.call(request("1", "tools/list", claim("2026-07-28", rest))))
			}
		}},
		{9, "future claim without capabilities", one(request("1", "tools/list", claim("2099-01-01", "")), code(-32022))},
		{10, "unknown method with an unknown claim", one(request("1", "no/such", claim("1999-01-01", caps)), code(-32022))},
		{11, "claim is no string", one(request("1", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":20260728`+caps+`}}`), code(-32602))},
		{12, "metadata null", one(request("1", "tools/list", `{"_meta":null}`), code(-32602))},
		{13, "client info without version", one(modernWith("1", "tools/list", "", "{}", `"io.modelcontextprotocol/clientInfo":{"name":"x"}`), code(-32602))},
		{14, "unknown log level", one(modernWith("1", "tools/list", "", "{}", `"io.modelcontextprotocol/logLevel":"loud"`), code(-32602))},
		{15, "list without anything", one(list("1"), func(t *testing.T, line string) {
			code(-32602)(t, line)
			if _, _, data := errorOf(t, line); !strings.Contains(string(data), `"supported":["2026-07-28"`) {
				t.Errorf("no supported versions: %s", data)
			}
		})},
		{16, "ping without anything", one(request("1", "ping", ""), legacyResult)},
		{17, "setLevel without a session", one(request("1", "logging/setLevel", `{"level":"info"}`), code(-32602))},
		{18, "unknown method without a session", one(request("1", "no/such", ""), code(-32601))},
		{19, "initialize echoes", nil},
		{20, "initialize proposes the modern revision", func(t *testing.T, _ *fullServer, p *peer) {
			if v := resultOf(t, p.initialize("2026-07-28", "{}"))["protocolVersion"]; v != "2025-11-25" {
				t.Errorf("got %v", v)
			}
		}},
		{21, "initialize proposes the unknown", func(t *testing.T, _ *fullServer, p *peer) {
			if v := resultOf(t, p.initialize("2099-01-01", "{}"))["protocolVersion"]; v != "2025-11-25" {
				t.Errorf("got %v", v)
			}
		}},
		{22, "initialize with modern metadata", one(modern("1", "initialize", `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}`), code(-32601))},
		{23, "initialize lacks something", func(t *testing.T, _ *fullServer, p *peer) {
			for _, params := range []string{"", `{}`, `{"capabilities":{},"clientInfo":{"name":"t","version":"0"}}`, `{"protocolVersion":"2025-06-18","clientInfo":{"name":"t","version":"0"}}`,
				`{"protocolVersion":"2025-06-18","capabilities":{}}`, `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t"}}`, `{"protocolVersion":5,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}`} {
				code(-32602)(t, p.call(request("1", "initialize", params)))
			}
			opens(t, p)
		}},
		{24, "initialize after modern requests", one(modern("1", "tools/list", ""), modernResult)},
		{25, "discover, then initialize", one(modern("1", "server/discover", ""), modernResult)},
		{26, "refused discover, then initialize", one(request("1", "server/discover", claim("2099-01-01", caps)), code(-32022))},
		{27, "modern request in a session", inSession("2025-06-18", modern("1", "tools/list", ""), modernResult)},
		{28, "discover with claim in a session", inSession("2025-06-18", modern("1", "server/discover", ""), modernResult)},
		{29, "modern methods without claim in a session", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			code(-32601)(t, p.call(request("1", "server/discover", "")))
			code(-32601)(t, p.call(request("2", "subscriptions/listen", `{"notifications":{}}`)))
		}},
		{30, "claim-less request after a modern one", func(t *testing.T, _ *fullServer, p *peer) {
			modernResult(t, p.call(modern("1", "tools/list", "")))
			code(-32602)(t, p.call(list("2")))
		}},
		{31, "initialized without initialize", func(t *testing.T, _ *fullServer, p *peer) {
			p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			code(-32602)(t, p.call(list("1")))
			opens(t, p)
		}},
		{32, "request before initialized", func(t *testing.T, _ *fullServer, p *peer) {
			p.call(request("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
			legacyResult(t, p.call(list("1")))
		}},
		{33, "second initialize", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			code(-32600)(t, p.call(request("9", "initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)))
			if line := p.call(list("10")); !strings.Contains(line, `"title"`) {
				t.Errorf("the session changed its revision: %s", line)
			}
		}},
		{34, "second initialized", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			p.quiet()
		}},
		{35, "modern ping", one(modern("1", "ping", ""), code(-32601))},
		{36, "modern setLevel", one(modern("1", "logging/setLevel", `"level":"info"`), code(-32601))},
		{37, "modern subscribe", func(t *testing.T, _ *fullServer, p *peer) {
			code(-32601)(t, p.call(modern("1", "resources/subscribe", `"uri":"test://a"`)))
			code(-32601)(t, p.call(modern("2", "resources/unsubscribe", `"uri":"test://a"`)))
		}},
		{38, "old notifications of a modern client", func(t *testing.T, _ *fullServer, p *peer) {
			modernResult(t, p.call(modern("1", "tools/list", "")))
			p.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
			p.quiet()
		}},
		{39, "removed task methods", func(t *testing.T, _ *fullServer, p *peer) {
			code(-32601)(t, p.call(modern("1", "tasks/result", `"taskId":"x"`)))
			code(-32601)(t, p.call(modern("2", "tasks/list", "")))
		}},
		{40, "task of an undeclared client", one(modern("1", "tasks/get", `"taskId":"x"`), code(-32021))},
		{41, "extension in a session", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-11-25", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
			close(f.release)
			legacyResult(t, p.call(request("1", "tools/call", `{"name":"job"}`)))
		}},
		{42, "task where tasks are not declared", nil},
		{43, "batch without a session", func(t *testing.T, _ *fullServer, p *peer) { refusedBatch(t, p); opens(t, p) }},
		{44, "batch in 2024-11-05", func(t *testing.T, _ *fullServer, p *peer) { p.initialize("2024-11-05", "{}"); refusedBatch(t, p) }},
		{45, "batch in 2025-03-26", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-03-26", "{}")
			p.send(`[` + request("1", "ping", "") + `,{"jsonrpc":"2.0","method":"notifications/x"},` + request("2", "tools/call", `{"name":"echo","arguments":{"text":"b"}}`) + `,1]`)
			var replies []struct {
				ID    json.RawMessage
				Error *struct{ Code int }
			}
			if err := json.Unmarshal([]byte(p.next()), &replies); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, r := range replies {
				ids = append(ids, string(r.ID))
				if string(r.ID) == "null" && (r.Error == nil || r.Error.Code != -32600) {
					t.Errorf("invalid element: %+v", r)
				}
			}
			slices.Sort(ids)
			if want := []string{"1", "2", "null"}; !slices.Equal(ids, want) {
				t.Errorf("got ids %v, want %v", ids, want)
			}
			p.send(`[{"jsonrpc":"2.0","method":"notifications/x"}]`)
			p.quiet()
		}},
		{46, "empty batch", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-03-26", "{}")
			p.send(`[]`)
			nullError(t, p, -32600)
		}},
		{47, "initialize in a batch", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-03-26", "{}")
			p.send(`[` + request("1", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`) + `]`)
			var replies []json.RawMessage
			if err := json.Unmarshal([]byte(p.next()), &replies); err != nil || len(replies) != 1 {
				t.Fatalf("%s %v", replies, err)
			}
			code(-32600)(t, string(replies[0]))
		}},
		{48, "batch in later sessions", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-11-25", "{}")
			refusedBatch(t, p)
			q := connect(t, newFullServer().Server)
			q.initialize("2025-06-18", "{}")
			refusedBatch(t, q)
		}},
		{49, "id null", refusedID("null")},
		{50, "fractional id", refusedID("1.5", "1.0", "1e3")},
		{51, "id of another type", refusedID("true", "{}", "[]")},
		{52, "huge ids", func(t *testing.T, _ *fullServer, p *peer) {
			for _, id := range []string{"9007199254740993", "12345678901234567890", "-1", "-0", "0"} {
				ok(t, p.call(request(id, "ping", "")))
			}
		}},
		{53, "id reused after the reply", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			for range 3 {
				ok(t, p.call(request("1", "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)))
			}
		}},
		{54, "id reused in flight", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(request("1", "tools/call", `{"name":"slow"}`))
			<-f.entered
			p.send(request("1", "tools/call", `{"name":"echo","arguments":{"text":"x"}}`), request("1", "ping", ""))
			p.quiet()
			close(f.release)
			if line := p.next(); !strings.Contains(line, "released") {
				t.Errorf("got %s", line)
			}
			p.quiet()
		}},
		{55, "not JSON", func(t *testing.T, _ *fullServer, p *peer) {
			for _, line := range []string{"hello", `{"jsonrpc":"2.0","id":1,"method":`, `{"a":1} {"b":2}`, "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}", `{"a":01}`, `{"a":1,}`, `{'a':1}`} {
				p.send(line)
				nullError(t, p, -32700)
			}
			opens(t, p)
		}},
		{56, "no message", func(t *testing.T, _ *fullServer, p *peer) {
			for _, line := range []string{"42", `"x"`, "null", `{"foo":1}`, `{"jsonrpc":"2.0","method":1}`, `{}`} {
				p.send(line)
				nullError(t, p, -32600)
			}
			for _, line := range []string{`{"id":1,"method":"ping"}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`} {
				code(-32600)(t, p.call(line))
			}
		}},
		{57, "byte-order mark and carriage return", func(t *testing.T, _ *fullServer, p *peer) {
			p.send("\xef\xbb\xbf" + request("1", "ping", "") + "\r")
			ok(t, p.next())
		}},
		{58, "request without id", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"slow"}}`)
			p.quiet()
			if len(f.entered) > 0 {
				t.Error("it was executed")
			}
		}},
		{59, "notification with id", inSession("2025-06-18", request("1", "notifications/initialized", ""), code(-32601))},
		{60, "arguments are no object", inSession("2025-06-18", request("1", "tools/call", `{"name":"echo","arguments":[1]}`), code(-32602))},
		{61, "progress token of a wrong type", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			for _, token := range []string{"null", "1.5", "{}", "true"} {
				code(-32602)(t, p.call(request("1", "tools/call", `{"name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":`+token+`}}`)))
				code(-32602)(t, p.call(modernWith("2", "tools/list", "", "{}", `"progressToken":`+token)))
			}
		}},
		{62, "cancel in flight", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(request("1", "tools/call", `{"name":"slow"}`))
			<-f.entered
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			if err := <-f.causes; err != protocol.ErrCancelled {
				t.Errorf("cause %v", err)
			}
			p.quiet()
		}},
		{63, "cancel with an id of another type", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(request("1", "tools/call", `{"name":"slow"}`))
			<-f.entered
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
			p.quiet()
			close(f.release)
			ok(t, p.next())
		}},
		{64, "listen cancelled", func(t *testing.T, f *fullServer, p *peer) {
			p.send(modern("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
			p.next()
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			p.quiet()
			f.Changed(protocol.ToolList)
			p.quiet()
		}},
		{65, "other requests beside a listen", func(t *testing.T, _ *fullServer, p *peer) {
			p.send(modern("1", "subscriptions/listen", `"notifications":{}`))
			p.next()
			p.send(modern("2", "subscriptions/listen", `"notifications":{}`))
			p.next()
			modernResult(t, p.call(modern("3", "tools/list", "")))
		}},
		{66, "listen with an empty filter", func(t *testing.T, _ *fullServer, p *peer) {
			p.send(modern(`"a"`, "subscriptions/listen", `"notifications":{}`))
			want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}`
			if got := p.next(); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			p.quiet()
		}},
		{67, "end of input during a call", func(t *testing.T, f *fullServer, p *peer) {
			p.initialize("2025-06-18", "{}")
			p.send(request("1", "tools/call", `{"name":"slow"}`))
			<-f.entered
			if err := p.finish(); err != nil {
				t.Error(err)
			}
			if line := p.next(); !strings.Contains(line, `"id":1`) {
				t.Errorf("got %s", line)
			}
		}},
		{68, "end of input with an open listen", func(t *testing.T, _ *fullServer, p *peer) {
			p.send(modern("1", "subscriptions/listen", `"notifications":{}`))
			p.next()
			if err := p.finish(); err != nil {
				t.Error(err)
			}
		}},
		{69, "unknown resource", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2025-11-25", "{}")
			code(-32002)(t, p.call(request("1", "resources/read", `{"uri":"test://none"}`)))
			code(-32602)(t, p.call(modern("2", "resources/read", `"uri":"test://none"`)))
		}},
		{70, "shape of results in a session", func(t *testing.T, _ *fullServer, p *peer) {
			p.initialize("2024-11-05", "{}")
			for _, line := range []string{list("1"), request("2", "resources/list", ""), request("3", "resources/read", `{"uri":"test://a"}`), request("4", "prompts/list", ""), request("5", "prompts/get", `{"name":"greet","arguments":{"who":"w"}}`)} {
				legacyResult(t, p.call(line))
			}
		}},
		{71, "the list of versions", func(t *testing.T, _ *fullServer, p *peer) {
			all := `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
			if line := p.call(modern("1", "server/discover", "")); !strings.Contains(line, `"supportedVersions":`+all) {
				t.Errorf("discover: %s", line)
			}
			if line := p.call(request("2", "tools/list", claim("2099-01-01", caps))); !strings.Contains(line, `"supported":`+all) {
				t.Errorf("refusal: %s", line)
			}
			line := p.call(request("3", "tools/list", claim("2025-06-18", caps)))
			if !strings.Contains(line, `"supported":["2026-07-28"]`) || !strings.Contains(line, "initialize") {
				t.Errorf("refusal of a handshake revision: %s", line)
			}
		}},
	}
	for i, r := range rows {
		if r.n != i+1 {
			t.Fatalf("row %d is missing", i+1)
		}
		switch r.n {
		case 19:
			r.run = func(t *testing.T, _ *fullServer, _ *peer) {
				for _, v := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
					q := connect(t, newFullServer().Server)
					if got := resultOf(t, q.initialize(v, "{}"))["protocolVersion"]; got != v {
						t.Errorf("%s: got %v", v, got)
					}
				}
			}
		case 42:
			r.run = func(t *testing.T, _ *fullServer, _ *peer) {
				q := connect(t, plainServer())
				q.initialize("2025-11-25", "{}")
				legacyResult(t, q.call(request("1", "tools/call", `{"name":"echo","arguments":{"text":"x"},"task":{"ttl":1000}}`)))
			}
		}
		t.Run(fmt.Sprintf("%02d %s", r.n, r.name), func(t *testing.T) {
			f := newFullServer()
			r.run(t, f, connect(t, f.Server))
		})
	}
}

// nullError expects an error without a readable id.
func nullError(t *testing.T, p *peer, want int64) {
	t.Helper()
	line := p.next()
	if !strings.Contains(line, `"id":null`) {
		t.Errorf("no null id: %s", line)
	}
	code(want)(t, line)
}

func refusedBatch(t *testing.T, p *peer) {
	t.Helper()
	p.send(`[` + request("1", "ping", "") + `,` + request("2", "tools/call", `{"name":"slow"}`) + `]`)
	nullError(t, p, -32600)
	p.quiet()
}

func refusedID(ids ...string) func(*testing.T, *fullServer, *peer) {
	return func(t *testing.T, _ *fullServer, p *peer) {
		for _, id := range ids {
			p.send(request(id, "ping", ""))
			nullError(t, p, -32600)
		}
		opens(t, p)
	}
}
