package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

func (p *peer) expect(want string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.next()); diff != "" {
		p.t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestListen(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.send(modern(`"L"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["test://a","test://none","test://a"],"other":1}`))
	p.expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}`)
	p.send(modern(`7`, "subscriptions/listen", `"notifications":{"promptsListChanged":true,"resourceSubscriptions":["test://b"]}`))
	p.next()
	f.Changed(protocol.ResourceList)
	f.Changed(protocol.ToolList)
	p.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}`)
	f.Changed(protocol.PromptList)
	p.expect(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	f.ResourceUpdated("test://c")
	f.ResourceUpdated("test://b")
	p.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://b","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	p.quiet()
	if n := f.resources.watchers("test://a"); n != 1 {
		t.Errorf("%d watchers", n)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"L"}}`)
	p.quiet()
	if n := f.resources.watchers("test://a"); n != 0 {
		t.Errorf("%d watchers after the cancel", n)
	}
	f.Changed(protocol.ToolList)
	f.ResourceUpdated("test://a")
	p.quiet()
}

func TestListenParams(t *testing.T) {
	p := connect(t, newFullServer().Server)
	for _, params := range []string{``, `"notifications":null`, `"notifications":[]`, `"notifications":{"toolsListChanged":1}`, `"notifications":{"resourceSubscriptions":"x"}`, `"notifications":{"resourceSubscriptions":[1]}`} {
		if code, _, _ := errorOf(t, p.call(modern("1", "subscriptions/listen", params))); code != -32602 {
			t.Errorf("%s: %d", params, code)
		}
	}
	if code, _, _ := errorOf(t, p.call(modern("1", "subscriptions/listen", `"notifications":{"taskIds":["x"]}`))); code != -32021 {
		t.Errorf("taskIds undeclared: %d", code)
	}
}

func TestListenEndsWithTheServer(t *testing.T) {
	p := connect(t, newFullServer().Server)
	p.send(modern(`1`, "subscriptions/listen", `"notifications":{}`))
	p.next()
	p.stop()
	p.expect(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if line := p.next(); !strings.Contains(line, `"id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1,`) {
		t.Errorf("got %s", line)
	}
	if err := <-p.done; err != nil {
		t.Error(err)
	}
}

func TestEventsInSession(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.call(request("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	f.Changed(protocol.ToolList)
	p.quiet() // not before the client is ready
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.quiet()
	f.Changed(protocol.ToolList)
	p.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	f.ResourceUpdated("test://a")
	p.quiet()
	p.call(request("1", "resources/subscribe", `{"uri":"test://a"}`))
	p.call(request("2", "resources/subscribe", `{"uri":"test://a"}`))
	f.ResourceUpdated("test://a")
	p.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
	p.call(request("3", "resources/unsubscribe", `{"uri":"test://a"}`))
	if n := f.resources.watchers("test://a"); n != 0 {
		t.Errorf("%d watchers", n)
	}
	f.ResourceUpdated("test://a")
	p.quiet()
	if code, _, _ := errorOf(t, p.call(request("4", "resources/subscribe", `{"uri":"test://none"}`))); code != -32002 {
		t.Errorf("unknown resource: %d", code)
	}
}

func TestNothingUnaskedForModernClients(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.call(modern("1", "tools/list", ""))
	f.Changed(protocol.ToolList)
	f.ResourceUpdated("test://a")
	p.quiet()
}

func TestSetTools(t *testing.T) {
	f := newFullServer()
	p := connect(t, f.Server)
	p.send(modern(`1`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	p.next()
	if err := f.SetTools([]protocol.Tool{echoTool()}); err != nil {
		t.Fatal(err)
	}
	p.next()
	if tools := resultOf(t, p.call(modern("2", "tools/list", "")))["tools"].([]any); len(tools) != 1 {
		t.Errorf("%d tools", len(tools))
	}
	if err := f.SetTools([]protocol.Tool{{Name: "bad name"}}); err == nil {
		t.Error("a bad tool was taken")
	}
}
