package realclients

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fabro is the binary under test, root the checkout it was built from.
var fabro, root string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "realclients")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if root, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fabro = filepath.Join(dir, "fabro")
	build := exec.Command("go", "build", "-race", "-o", fabro, "./cmd/fabro")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// host is what a test needs of a client: the SDKs differ in everything else.
type host interface {
	tools(ctx context.Context) ([]string, error)
	call(ctx context.Context, tool string, arguments map[string]any) (structured json.RawMessage, text string, isError bool, err error)
	close() error
}

// person answers a form as somebody would who wants to publish, and counts.
type person struct{ asked int }

// answer picks the option P in the first field that has options.
func (p *person) answer(requestedSchema any) (map[string]any, error) {
	p.asked++
	text, err := json.Marshal(requestedSchema)
	if err != nil {
		return nil, err
	}
	var schema struct {
		Properties map[string]struct {
			Type  string   `json:"type"`
			Enum  []string `json:"enum"`
			OneOf []struct {
				Const string `json:"const"`
			} `json:"oneOf"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	for name, field := range schema.Properties {
		values := field.Enum
		for _, o := range field.OneOf {
			values = append(values, o.Const)
		}
		for _, v := range values {
			if strings.HasPrefix(v, "P") {
				return map[string]any{name: v}, nil
			}
		}
	}
	return nil, fmt.Errorf("no field of the form offers P: %s", text)
}

// environment is that of a host: a throw-away home, and nothing of the user's.
// The embedded server that a test starts is stopped when it ends.
func environment(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	t.Cleanup(func() {
		stop := exec.Command(fabro, "server", "stop")
		stop.Env = env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("fabro server stop: %v\n%s", err, out)
		}
	})
	return env
}

// play is the conversation that every client has: list, create, gather to the
// end, answering what the run asks on the way.
func play(t *testing.T, h host, p *person) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	defer func() {
		if err := h.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	names, err := h.tools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "fabro_run_create fabro_run_events fabro_run_gather fabro_run_get fabro_run_interact fabro_run_pair fabro_run_search" {
		t.Errorf("tools: %s", got)
	}

	var created struct {
		Runs []struct {
			ID string `json:"run_id"`
		} `json:"runs"`
	}
	must := func(tool string, arguments map[string]any, into any) {
		t.Helper()
		structured, text, isError, err := h.call(ctx, tool, arguments)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		if isError {
			t.Fatalf("%s: %s", tool, text)
		}
		if text == "" {
			t.Errorf("%s gave no text", tool)
		}
		if err := json.Unmarshal(structured, into); err != nil {
			t.Fatalf("%s: %v\n%s", tool, err, structured)
		}
	}
	must("fabro_run_create", map[string]any{"runs": []any{map[string]any{
		"workflow": filepath.Join(root, "examples", "release", "workflow.toml"), "cwd": t.TempDir(),
	}}}, &created)
	if len(created.Runs) != 1 {
		t.Fatalf("created %d runs", len(created.Runs))
	}

	var gathered struct {
		Runs []struct {
			Status string `json:"status"`
		} `json:"runs"`
		TimedOut bool   `json:"timed_out"`
		EndedBy  string `json:"ended_by"`
	}
	must("fabro_run_gather", map[string]any{"run_ids": []any{created.Runs[0].ID}, "timeout_seconds": 60}, &gathered)
	if len(gathered.Runs) != 1 || gathered.Runs[0].Status != "succeeded" || gathered.TimedOut || gathered.EndedBy != "terminal" {
		t.Errorf("gathered %+v", gathered)
	}
	if p.asked != 1 {
		t.Errorf("the person was asked %d times; want once", p.asked)
	}
}
