// Peer: mark3labs/mcp-go. Raw schemas, structured handlers. "-validate" turns on
// its input and output schema validation (off by default in the library).
package main

import (
	"context"
	"log"
	"os"

	"fabro-mcp/bench/toolset"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func h[I, O any](f func(I) O) server.ToolHandlerFunc {
	return mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in I) (O, error) { return f(in), nil })
}

func main() {
	toolset.Hook()
	opts := []server.ServerOption{server.WithToolCapabilities(true)}
	if len(os.Args) > 1 && os.Args[1] == "-validate" {
		opts = append(opts, server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())
	}
	s := server.NewMCPServer("bench", "1.0.0", opts...)
	hs := map[string]server.ToolHandlerFunc{
		"echo":       h(toolset.Echo),
		"run_create": h(toolset.RunCreate),
		"run_get":    h(func(in toolset.RunGetIn) toolset.RunOut { return toolset.RunOut{RunID: in.RunID, Status: "running"} }),
		"run_cancel": h(func(in toolset.RunCancelIn) toolset.RunOut {
			return toolset.RunOut{RunID: in.RunID, Status: "cancelled"}
		}),
		"run_answer": h(func(in toolset.RunAnswerIn) toolset.RunOut { return toolset.RunOut{RunID: in.RunID, Status: "running"} }),
		"run_list":   h(func(in toolset.RunListIn) toolset.RunListOut { return toolset.RunListOut{Runs: []toolset.RunOut{}} }),
		"run_logs":   h(func(in toolset.RunLogsIn) toolset.RunLogsOut { return toolset.RunLogsOut{Lines: []toolset.LogLine{}} }),
		"run_artifacts": h(func(in toolset.RunArtifactsIn) toolset.RunArtifactsOut {
			return toolset.RunArtifactsOut{Artifacts: []toolset.Artifact{}}
		}),
	}
	for _, rt := range toolset.RawTools() {
		tool := mcp.NewToolWithRawSchema(rt.Name, rt.Description, rt.InputSchema)
		tool.RawOutputSchema = rt.OutputSchema
		s.AddTool(tool, hs[rt.Name])
	}
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
