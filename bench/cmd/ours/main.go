// Peer: the protocol engine of this project, with the same tools and the same work
// behind them as the others. Arguments and results are held against the schemas.
package main

import (
	"context"
	"log"

	"fabro-mcp/bench/toolset"
	"fabro-mcp/protocol"
)

func main() {
	toolset.Hook()
	server := &protocol.Server{Info: protocol.Implementation{Name: "bench", Version: "1.0.0"}}
	for _, t := range toolset.RawTools() {
		server.Tools = append(server.Tools, protocol.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			Call: call,
		})
	}
	if err := protocol.Run(context.Background(), server, protocol.RunOptions{}); err != nil {
		log.Fatal(err)
	}
}

func call(_ context.Context, c *protocol.ToolCall) (*protocol.ToolResult, error) {
	out, err, _ := toolset.Call(c.Name, c.Arguments)
	if err != nil {
		return nil, err
	}
	return &protocol.ToolResult{Structured: out}, nil
}
