package recordclients

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// harness and server are the binaries under test, built from this checkout.
var harness, server string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "recordclients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/mcp-conformance", "./cmd/mcp-fixture")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	harness, server = filepath.Join(dir, "mcp-conformance"), filepath.Join(dir, "mcp-fixture")
	return m.Run()
}

// replay plays a recording ten times, each of which must pass.
func replay(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if sends := bytes.Count(text, []byte("\nsend ")); sends < 5 {
		t.Fatalf("the recording holds only %d messages:\n%s", sends, text)
	}
	for i := range 10 {
		if out, err := exec.Command(harness, "run", file, "--", server).CombinedOutput(); err != nil {
			t.Fatalf("replay %d: %v\n%s\n%s", i+1, err, out, text)
		}
	}
	// The recording is a test: another server does not pass it.
	if out, err := exec.Command(harness, "run", "--timeout", "2s", file, "--", server, "--minimal").CombinedOutput(); err == nil {
		t.Errorf("a server without tools passes:\n%s", out)
	}
}

func TestGoSDK(t *testing.T) {
	for _, revision := range []string{"", "2025-11-25", "2025-06-18"} {
		name := revision
		if name == "" {
			name = "newest"
		}
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "recorded.txtar")
			converse(t, revision, exec.Command(harness, "record", "-o", file, "--", server, "--page-size", "20"))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// Replayed against the same command line.
			for i := range 10 {
				if out, err := exec.Command(harness, "run", file, "--", server, "--page-size", "20").CombinedOutput(); err != nil {
					t.Fatalf("replay %d: %v\n%s\n%s", i+1, err, out, text)
				}
			}
			if !strings.Contains(string(text), "<string as nextCursor") {
				t.Errorf("no cursor was captured:\n%s", text)
			}
		})
	}
}

// converse is a session as a host has it: every list to its end, calls with
// progress, an error, a question to the person, a resource and a prompt.
func converse(t *testing.T, revision string, cmd *exec.Cmd) {
	t.Helper()
	ctx := t.Context()
	client := mcp.NewClient(&mcp.Implementation{Name: "recordclients", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	tools := 0
	for _, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools++
	}
	if tools < 21 {
		t.Errorf("%d tools: the list has one page, and no cursor is recorded", tools)
	}
	call := func(name string, arguments map[string]any, isError bool) {
		t.Helper()
		params := &mcp.CallToolParams{Name: name, Arguments: arguments}
		params.SetProgressToken(name)
		result, err := session.CallTool(ctx, params)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if result.IsError != isError {
			t.Errorf("%s: isError is %v", name, result.IsError)
		}
	}
	call("echo", map[string]any{"text": "a ${b} \u00e9 \U0001f600"}, false)
	call("steps", map[string]any{"n": 3}, false)
	call("structured", map[string]any{"n": 21}, false)
	call("test_error_handling", nil, true)
	call("ask", nil, false)
	if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"}); err != nil {
		t.Error(err)
	}
	if _, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_simple_prompt"}); err != nil {
		t.Error(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// TestTypeScript records the clients of both generations of the TypeScript SDK.
func TestTypeScript(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "client1.mjs", "client2.mjs"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the pinned clients: %v\n%s", err, out)
	}
	for _, c := range []struct{ name, script, mode string }{
		{"1.x", "client1.mjs", ""},
		{"2.x legacy", "client2.mjs", "legacy"},
		{"2.x pinned to 2026-07-28", "client2.mjs", "2026-07-28"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "recorded.txtar")
			cmd := exec.CommandContext(t.Context(), "node", c.script, c.mode, harness, "record", "-o", file, "--", server)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			replay(t, file)
		})
	}
}
