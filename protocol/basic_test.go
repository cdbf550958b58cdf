package protocol_test

import (
	"context"
	"encoding/json"
	"testing"

	"fabro-mcp/protocol"
)

const echoSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

func echoTool() protocol.Tool {
	return protocol.Tool{
		Name: "echo", Description: "Says it again.", InputSchema: json.RawMessage(echoSchema),
		Call: func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(call.Arguments, &in); err != nil {
				return nil, err
			}
			return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(in.Text)}}, nil
		},
	}
}

func plainServer(tools ...protocol.Tool) *protocol.Server {
	return &protocol.Server{Info: protocol.Implementation{Name: "test", Version: "1"}, Tools: append([]protocol.Tool{echoTool()}, tools...)}
}

func TestBothErasAtOnce(t *testing.T) {
	p := connect(t, plainServer())
	got := p.call(modern("1", "tools/call", `"name":"echo","arguments":{"text":"a"}`))
	want := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}}}`
	if got != want {
		t.Errorf("modern call:\n got %s\nwant %s", got, want)
	}
	got = p.initialize("2025-06-18", "{}")
	want = `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}}`
	if got != want {
		t.Errorf("initialize:\n got %s\nwant %s", got, want)
	}
	got = p.call(request("2", "tools/call", `{"name":"echo","arguments":{"text":"b"}}`))
	want = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"b"}]}}`
	if got != want {
		t.Errorf("legacy call:\n got %s\nwant %s", got, want)
	}
	got = p.call(request("3", "ping", ""))
	if want = `{"jsonrpc":"2.0","id":3,"result":{}}`; got != want {
		t.Errorf("ping:\n got %s\nwant %s", got, want)
	}
	got = p.call(request("4", "tools/list", ""))
	want = `{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"echo","description":"Says it again.","inputSchema":` + echoSchema + `}]}}`
	if got != want {
		t.Errorf("list:\n got %s\nwant %s", got, want)
	}
	if err := p.finish(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
