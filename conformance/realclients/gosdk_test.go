package realclients

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type goSDK struct{ session *mcp.ClientSession }

func (h goSDK) tools(ctx context.Context) ([]string, error) {
	list, err := h.session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (h goSDK) call(ctx context.Context, tool string, arguments map[string]any) (json.RawMessage, string, bool, error) {
	result, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return nil, "", false, err
	}
	var text string
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	structured, err := json.Marshal(result.StructuredContent)
	return structured, text, result.IsError, err
}

func (h goSDK) close() error { return h.session.Close() }

func TestGoSDK(t *testing.T) {
	for _, revision := range []string{"", "2025-11-25", "2025-06-18"} {
		name := revision
		if name == "" {
			name = "newest"
		}
		t.Run(name, func(t *testing.T) {
			p := &person{}
			client := mcp.NewClient(&mcp.Implementation{Name: "realclients", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					content, err := p.answer(req.Params.RequestedSchema)
					return &mcp.ElicitResult{Action: "accept", Content: content}, err
				},
			})
			cmd := exec.Command(fabro, "mcp", "start")
			cmd.Env = environment(t)
			cmd.Dir = t.TempDir()
			session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			want := revision
			if want == "" {
				want = "2026-07-28"
			}
			if got := session.InitializeResult().ProtocolVersion; got != want {
				t.Errorf("revision %s; want %s", got, want)
			}
			play(t, goSDK{session}, p)
		})
	}
}
