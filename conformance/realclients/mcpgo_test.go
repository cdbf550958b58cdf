package realclients

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type mcpGo struct{ c *client.Client }

func (h mcpGo) tools(ctx context.Context) ([]string, error) {
	list, err := h.c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (h mcpGo) call(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, string, bool, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, arguments
	result, err := h.c.CallTool(ctx, req)
	if err != nil {
		return nil, "", false, err
	}
	var text string
	for _, c := range result.Content {
		if t, ok := c.(mcp.TextContent); ok {
			text += t.Text
		}
	}
	structured, err := json.Marshal(result.StructuredContent)
	return structured, text, result.IsError, err
}

func (h mcpGo) close() error { return h.c.Close() }

// Elicit implements client.ElicitationHandler.
func (p *person) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	content, err := p.answer(req.Params.RequestedSchema)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: content,
	}}, err
}

func TestMCPGo(t *testing.T) {
	tests := []struct {
		name    string
		options []client.ClientOption
	}{
		{"newest", nil},
		{"legacy", []client.ClientOption{client.WithLegacyProtocolOnly()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &person{}
			dir := t.TempDir()
			stdio := transport.NewStdioWithOptions(fabro, environment(t), []string{"mcp", "start"},
				transport.WithCommandFunc(func(ctx context.Context, command string, env, args []string) (*exec.Cmd, error) {
					cmd := exec.CommandContext(ctx, command, args...)
					cmd.Env, cmd.Dir = env, dir
					return cmd, nil
				}))
			if err := stdio.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			c := client.NewClient(stdio, append(tt.options, client.WithElicitationHandler(p))...)
			if err := c.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			var req mcp.InitializeRequest
			req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
			req.Params.ClientInfo = mcp.Implementation{Name: "realclients", Version: "1"}
			if _, err := c.Initialize(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			play(t, mcpGo{c}, p)
		})
	}
}
