package protocol_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fabro-mcp/protocol"
)

const canElicit = `{"elicitation":{"form":{},"url":{}}}`

// ask is a call of the tool that asks twice.
func ask(id, more string) string {
	return modernWith(id, "tools/call", `"name":"ask","arguments":{"x":1}`+more, canElicit, "")
}

func retry(state, responses string) string {
	return `,"requestState":"` + state + `","inputResponses":` + responses
}

func stateOf(t *testing.T, line string) string {
	t.Helper()
	r := resultOf(t, line)
	if r["resultType"] != "input_required" {
		t.Fatalf("not input_required: %s", line)
	}
	return r["requestState"].(string)
}

func TestInputRequired(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	line := p.call(ask("1", ""))
	if !strings.Contains(line, `"inputRequests":{"first":{"method":"elicitation/create","params":{"message":"Your name?"`) || strings.Contains(line, "ttlMs") {
		t.Errorf("round 1: %s", line)
	}
	state := stateOf(t, line)
	line = p.call(ask("2", retry(state, `{"other":{"action":"accept"}}`)))
	if again := stateOf(t, line); !strings.Contains(line, `"first"`) {
		t.Errorf("a missing answer is asked for again: %s %s", line, again)
	}
	line = p.call(ask("3", retry(state, `{"first":{"action":"accept","content":{"name":"Ada"}}}`)))
	if !strings.Contains(line, `"second"`) || strings.Contains(line, `"first"`) {
		t.Errorf("round 2: %s", line)
	}
	line = p.call(ask("4", retry(stateOf(t, line), `{"second":{"action":"accept","content":{"sure":true}}}`)))
	if !strings.Contains(line, `"text":"Adatrue"`) || !strings.Contains(line, `"resultType":"complete"`) {
		t.Errorf("end: %s", line)
	}
	for _, action := range []string{"decline", "cancel"} {
		line = p.call(ask("5", retry(state, `{"first":{"action":"`+action+`"}}`)))
		if !strings.Contains(line, "no: "+action) {
			t.Errorf("%s: %s", action, line)
		}
	}
}

func TestRequestStateRefused(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	state := stateOf(t, p.call(ask("1", "")))
	answer := `{"first":{"action":"accept","content":{"name":"A"}}}`
	tampered := state[:len(state)-2] + map[bool]string{true: "AA", false: "BB"}[!strings.HasSuffix(state, "AA")]
	for name, line := range map[string]string{
		"tampered":          ask("2", retry(tampered, answer)),
		"empty":             ask("2", retry("", answer)),
		"not a string":      ask("2", `,"requestState":5`),
		"other arguments":   modernWith("2", "tools/call", `"name":"ask","arguments":{"x":2}`+retry(state, answer), canElicit, ""),
		"other tool":        modernWith("2", "tools/call", `"name":"count","arguments":{"x":1}`+retry(state, answer), canElicit, ""),
		"other method":      modernWith("2", "prompts/get", `"name":"ask","arguments":{}`+retry(state, answer), canElicit, ""),
		"answers no object": ask("2", `,"inputResponses":[]`),
		"answer no object":  ask("2", retry(state, `{"first":"yes"}`)),
		"answer misshapen":  ask("2", retry(state, `{"first":{"action":"maybe"}}`)),
		"content misfits":   ask("2", retry(state, `{"first":{"action":"accept","content":{"name":5}}}`)),
	} {
		if code, _, _ := errorOf(t, p.call(line)); code != -32602 {
			t.Errorf("%s: code %d", name, code)
		}
	}
	// The same arguments in another spelling are the same arguments.
	line := p.call(modernWith("3", "tools/call", `"arguments": { "\u0078" : 1 },"name":"ask"`+retry(state, answer), canElicit, ""))
	if !strings.Contains(line, `"second"`) {
		t.Errorf("respelled: %s", line)
	}
}

func TestRequestStateExpires(t *testing.T) {
	f := newFullServer()
	f.Options.StateTTL = time.Nanosecond
	p := connect(t, f.Server)
	state := stateOf(t, p.call(ask("1", "")))
	if code, _, _ := errorOf(t, p.call(ask("2", retry(state, `{}`)))); code != -32602 {
		t.Errorf("code %d", code)
	}
}

func TestStateTravels(t *testing.T) {
	p := connect(t, newFullServer().Server)
	call := func(more string) string {
		return p.call(modernWith("1", "tools/call", `"name":"count"`+more, canElicit, ""))
	}
	state := stateOf(t, call(""))
	next := stateOf(t, call(retry(state, `{"k1":{"action":"cancel"}}`)))
	if next == state {
		t.Error("the state did not change")
	}
	if line := call(retry(next, `{"k2":{"action":"cancel"}}`)); !strings.Contains(line, `"text":"3"`) {
		t.Errorf("got %s", line)
	}
}

func TestRetryInAnotherProcess(t *testing.T) {
	path := t.TempDir() + "/keys/state.key"
	one, two := newFullServer(), newFullServer()
	one.Sealer, two.Sealer = protocol.NewFileSealer(path), protocol.NewFileSealer(path)
	state := stateOf(t, connect(t, one.Server).call(ask("1", "")))
	line := connect(t, two.Server).call(ask("1", retry(state, `{"first":{"action":"decline"}}`)))
	if !strings.Contains(line, "no: decline") {
		t.Errorf("got %s", line)
	}
}

func TestInputOnOtherMethods(t *testing.T) {
	p := connect(t, newFullServer().Server)
	for _, c := range []struct{ method, params, want string }{
		{"prompts/get", `"name":"ask"`, `"text":"acceptB"`},
		{"resources/read", `"uri":"test://ask"`, `"text":"accept"`},
	} {
		state := stateOf(t, p.call(modernWith("1", c.method, c.params, canElicit, "")))
		line := p.call(modernWith("2", c.method, c.params+retry(state, `{"q":{"action":"accept","content":{"name":"B"}}}`), canElicit, ""))
		if !strings.Contains(line, c.want) {
			t.Errorf("%s: %s", c.method, line)
		}
	}
}

func TestCannotAsk(t *testing.T) {
	p := connect(t, newFullServer().Server)
	for _, declared := range []string{`{}`, `{"elicitation":{"url":{}}}`} {
		line := p.call(modernWith("1", "tools/call", `"name":"ask","arguments":{}`, declared, ""))
		if !strings.Contains(line, `"isError":true`) || strings.Contains(line, "input_required") {
			t.Errorf("%s: %s", declared, line)
		}
	}
	p.initialize("2025-03-26", `{"elicitation":{}}`)
	if line := p.call(request("2", "tools/call", `{"name":"ask"}`)); !strings.Contains(line, `"isError":true`) {
		t.Errorf("2025-03-26: %s", line)
	}
}

func TestAskInSession(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		p := connect(t, newFullServer().Server)
		p.initialize(version, `{"elicitation":{}}`)
		p.send(request("1", "tools/call", `{"name":"ask"}`))
		question := p.next()
		var m struct {
			ID     json.RawMessage
			Method string
			Params map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(question), &m); err != nil || m.Method != "elicitation/create" || m.Params["mode"] != nil {
			t.Fatalf("question %s: %v", question, err)
		}
		// The connection is free meanwhile.
		p.call(request("2", "ping", ""))
		p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"action":"accept","content":{"name":"C"}}}`)
		question = p.next()
		json.Unmarshal([]byte(question), &m)
		p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-1,"message":"the user said no"}}`)
		if line := p.next(); !strings.Contains(line, "the user said no") || !strings.Contains(line, `"isError":true`) {
			t.Errorf("%s: %s", version, line)
		}
		p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
		p.quiet()
	}
}

func TestCancelledWhileAsking(t *testing.T) {
	p := connect(t, newFullServer().Server)
	p.initialize("2025-11-25", canElicit)
	p.send(request("1", "tools/call", `{"name":"ask"}`))
	p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if line := p.next(); !strings.Contains(line, `"notifications/cancelled"`) {
		t.Errorf("the question was not withdrawn: %s", line)
	}
	p.quiet()
}

// TestEveryKindOfQuestion asks for a page, a message of the model and the roots, in
// the new era and in a session.
func TestEveryKindOfQuestion(t *testing.T) {
	asking := protocol.Tool{Name: "all", InputSchema: anyObject, Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		responses, err := call.Ask(ctx,
			protocol.InputRequest{Key: "page", URL: &protocol.ElicitURL{Message: "Look.", URL: "https://example.test/"}},
			protocol.InputRequest{Key: "model", Sampling: json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":5}`)},
			protocol.InputRequest{Key: "roots", Roots: true})
		if err != nil {
			return nil, err
		}
		return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(responses["page"].Elicit.Action + string(responses["model"].Raw) + string(responses["roots"].Raw))}}, nil
	}}
	const capabilities = `{"elicitation":{"url":{}},"sampling":{},"roots":{}}`
	const page, model, roots = `{"action":"accept"}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`, `{"roots":[]}`
	p := connect(t, plainServer(asking))
	line := p.call(modernWith("1", "tools/call", `"name":"all"`, capabilities, ""))
	for _, want := range []string{`"page":{"method":"elicitation/create","params":{"mode":"url","message":"Look.","url":"https://example.test/"}}`, `"model":{"method":"sampling/createMessage","params":{"messages":[`, `"roots":{"method":"roots/list","params":{}}`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
	line = p.call(modernWith("2", "tools/call", `"name":"all"`+retry(stateOf(t, line), `{"page":`+page+`,"model":`+model+`,"roots":`+roots+`}`), capabilities, ""))
	if !strings.Contains(line, `accept{\"role\":\"assistant\"`) {
		t.Errorf("got %s", line)
	}
	for _, bad := range []string{`{"model":{}}`, `{"roots":{}}`, `{"page":{"action":1}}`} {
		state := stateOf(t, p.call(modernWith("3", "tools/call", `"name":"all"`, capabilities, "")))
		if code, _, _ := errorOf(t, p.call(modernWith("4", "tools/call", `"name":"all"`+retry(state, bad), capabilities, ""))); code != -32602 {
			t.Errorf("%s: %d", bad, code)
		}
	}
	p.initialize("2025-11-25", capabilities)
	p.send(request("5", "tools/call", `{"name":"all"}`))
	for _, q := range []struct{ want, answer string }{{`"elicitationId":"`, page}, {`"method":"sampling/createMessage"`, model}, {`"method":"roots/list"`, roots}} {
		question := p.next()
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(question), &m); err != nil || !strings.Contains(question, q.want) {
			t.Fatalf("question %s: %v", question, err)
		}
		p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + q.answer + `}`)
	}
	if line := p.next(); !strings.Contains(line, "accept") {
		t.Errorf("got %s", line)
	}
}

func TestRequire(t *testing.T) {
	tool := protocol.Tool{Name: "need", InputSchema: anyObject, Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		return &protocol.ToolResult{}, call.Require(protocol.InputSampling)
	}}
	p := connect(t, plainServer(tool))
	code, _, data := errorOf(t, p.call(modern("1", "tools/call", `"name":"need"`)))
	if code != -32021 || string(data) != `{"requiredCapabilities":{"sampling":{}}}` {
		t.Errorf("%d %s", code, data)
	}
	resultOf(t, p.call(modernWith("2", "tools/call", `"name":"need"`, `{"sampling":{}}`, "")))
	p.initialize("2025-11-25", "{}")
	if line := p.call(request("3", "tools/call", `{"name":"need"}`)); !strings.Contains(line, `"isError":true`) {
		t.Errorf("in a session: %s", line)
	}
}

// TestNothingIsAskedBeforeInitialized: a question waits until the client has said
// that it is ready.
func TestNothingIsAskedBeforeInitialized(t *testing.T) {
	p := connect(t, newFullServer().Server)
	p.call(request("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"0"}}`))
	p.send(request("1", "tools/call", `{"name":"ask"}`))
	p.quiet()
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if line := p.next(); !strings.Contains(line, "elicitation/create") {
		t.Errorf("got %s", line)
	}
}

// TestRepeat: a round can end without a question, in the one revision that has
// rounds; elsewhere the handler goes on.
func TestRepeat(t *testing.T) {
	tool := protocol.Tool{Name: "rounds", InputSchema: anyObject, Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		var round int
		call.State(&round)
		if round < 2 {
			call.SetState(round + 1)
			if err := call.Repeat(); err != nil {
				return nil, err
			}
		}
		return &protocol.ToolResult{Structured: round}, nil
	}}
	p := connect(t, plainServer(tool))
	more := ""
	for range 2 {
		line := p.call(modern("1", "tools/call", `"name":"rounds"`+more))
		if strings.Contains(line, "inputRequests") {
			t.Errorf("a question: %s", line)
		}
		more = `,"requestState":"` + stateOf(t, line) + `"`
	}
	if r := resultOf(t, p.call(modern("2", "tools/call", `"name":"rounds"`+more))); r["structuredContent"] != json.Number("2") {
		t.Errorf("round 3: %v", r)
	}
	p.initialize("2025-11-25", "{}")
	if line := p.call(request("3", "tools/call", `{"name":"rounds"}`)); !strings.Contains(line, `"text":"0"`) {
		t.Errorf("in a session: %s", line)
	}
}

// TestSamplingContext: the context of servers is asked for only where the peer takes
// it, which every peer did before there was a capability for it.
func TestSamplingContext(t *testing.T) {
	tool := protocol.Tool{Name: "sample", InputSchema: json.RawMessage(`{"type":"object","properties":{"include":{"type":"string"}}}`),
		Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			var in struct{ Include string }
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return nil, err
			}
			_, err := call.Ask(ctx, protocol.InputRequest{Key: "s", Sampling: json.RawMessage(`{"messages":[],"maxTokens":1,"includeContext":"` + in.Include + `"}`)})
			return nil, err
		}}
	for _, c := range []struct {
		version, capabilities, include string
		asked                          bool
	}{
		{"2026-07-28", `{"sampling":{}}`, "none", true}, {"2026-07-28", `{"sampling":{}}`, "thisServer", false}, {"2026-07-28", `{"sampling":{"context":{}}}`, "allServers", true},
		{"2025-11-25", `{"sampling":{}}`, "allServers", false}, {"2025-11-25", `{"sampling":{"context":{}}}`, "thisServer", true}, {"2024-11-05", `{"sampling":{}}`, "thisServer", true},
	} {
		p := connect(t, plainServer(tool))
		if c.version == "2026-07-28" {
			p.send(modernWith("1", "tools/call", `"name":"sample","arguments":{"include":"`+c.include+`"}`, c.capabilities, ""))
		} else {
			p.initialize(c.version, c.capabilities)
			p.send(request("1", "tools/call", `{"name":"sample","arguments":{"include":"`+c.include+`"}}`))
		}
		if line := p.next(); strings.Contains(line, "sampling/createMessage") != c.asked {
			t.Errorf("%s %s %s: %s", c.version, c.capabilities, c.include, line)
		}
	}
}
