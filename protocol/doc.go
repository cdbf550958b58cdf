// Package protocol is an MCP server engine: five protocol revisions of two eras
// over one stream of frames, every answer to the byte. It knows nothing of what
// its tools do.
//
// A program fills in a [Server] and serves a stream:
//
//	server := &protocol.Server{
//		Info: protocol.Implementation{Name: "clock", Version: "1.0"},
//		Tools: []protocol.Tool{{
//			Name:        "now",
//			InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
//			Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
//				return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(time.Now().String())}}, nil
//			},
//		}},
//	}
//	err := protocol.Run(ctx, server, protocol.RunOptions{})
//
// The way of a message:
//
//	conn.leadOn         one goroutine at a time reads a line (lead.go)
//	└ conn.admit        in the order of the lines: envelope, era, revision, method;
//	  │                 notifications and initialize take effect here
//	  └ conn.perform    the handler; if it takes long, another goroutine reads on
//	    └ request.respond   rendered for the peer's revision
//	      └ output          ordered for its request, whole lines, one write at a time
//
// Everything that differs between revisions is one row of the table in
// revision.go. Handlers are written once, against the newest shape.
//
// The package imports transport and nothing else of this module.
package protocol
