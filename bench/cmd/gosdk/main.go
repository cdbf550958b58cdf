// Peer: official Go SDK, idiomatic typed tools (schemas inferred, input validated).
package main

import (
	"context"
	"log"

	"fabro-mcp/bench/toolset"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func t(name string) *mcp.Tool { return &mcp.Tool{Name: name, Description: toolset.Desc[name]} }

func main() {
	toolset.Hook()
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	mcp.AddTool(s, t("run_create"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunCreateIn) (*mcp.CallToolResult, toolset.RunCreateOut, error) {
		return nil, toolset.RunCreate(in), nil
	})
	mcp.AddTool(s, t("run_get"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunGetIn) (*mcp.CallToolResult, toolset.RunOut, error) {
		return nil, toolset.RunOut{RunID: in.RunID, Status: "running"}, nil
	})
	mcp.AddTool(s, t("run_list"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunListIn) (*mcp.CallToolResult, toolset.RunListOut, error) {
		return nil, toolset.RunListOut{Runs: []toolset.RunOut{}}, nil
	})
	mcp.AddTool(s, t("run_cancel"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunCancelIn) (*mcp.CallToolResult, toolset.RunOut, error) {
		return nil, toolset.RunOut{RunID: in.RunID, Status: "cancelled"}, nil
	})
	mcp.AddTool(s, t("run_logs"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunLogsIn) (*mcp.CallToolResult, toolset.RunLogsOut, error) {
		return nil, toolset.RunLogsOut{Lines: []toolset.LogLine{}}, nil
	})
	mcp.AddTool(s, t("run_answer"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunAnswerIn) (*mcp.CallToolResult, toolset.RunOut, error) {
		return nil, toolset.RunOut{RunID: in.RunID, Status: "running"}, nil
	})
	mcp.AddTool(s, t("run_artifacts"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.RunArtifactsIn) (*mcp.CallToolResult, toolset.RunArtifactsOut, error) {
		return nil, toolset.RunArtifactsOut{Artifacts: []toolset.Artifact{}}, nil
	})
	mcp.AddTool(s, t("echo"), func(_ context.Context, _ *mcp.CallToolRequest, in toolset.EchoIn) (*mcp.CallToolResult, toolset.EchoOut, error) {
		return nil, toolset.Echo(in), nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
