// Peer: official Go SDK, low-level Server.AddTool with raw schemas (no validation by the SDK).
package main

import (
	"context"
	"encoding/json"
	"log"

	"fabro-mcp/bench/toolset"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	toolset.Hook()
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	for _, rt := range toolset.RawTools() {
		s.AddTool(&mcp.Tool{Name: rt.Name, Description: rt.Description, InputSchema: rt.InputSchema, OutputSchema: rt.OutputSchema},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				out, err, _ := toolset.Call(rt.Name, req.Params.Arguments)
				if err != nil {
					r := &mcp.CallToolResult{}
					r.SetError(err)
					return r, nil
				}
				b, err := json.Marshal(out)
				if err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}, StructuredContent: json.RawMessage(b)}, nil
			})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
