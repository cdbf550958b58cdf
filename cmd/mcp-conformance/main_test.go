package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"fabro-mcp/conformance/fakeserver"
	"fabro-mcp/conformance/runner"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcp-conformance": main,
		// fake MODE is the server the scripts are played against.
		"fake": func() {
			mode := ""
			if len(os.Args) > 1 {
				mode = os.Args[1]
			}
			fakeserver.Main(mode, os.Stdin, os.Stdout)
		},
		// client talks to the server given as its arguments, as an SDK would.
		"client": clientMain,
	})
}

// TestScripts plays testdata/*.txtar: what the command promises.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"leftover": leftover},
	})
}

func TestRunIsAFunction(t *testing.T) {
	if code := run(context.Background(), []string{"nonsense"}, nil, discard{}, discard{}); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestLongRunsAreForetold holds when a person is told that the starts of the server will
// take minutes, and what to do about it.
func TestLongRunsAreForetold(t *testing.T) {
	for _, c := range []struct {
		name string
		p    runner.Progress
		want string
	}{
		{"a quick server", runner.Progress{Start: 100 * time.Millisecond, Starting: 300, Expected: 15 * time.Second}, ""},
		{"a slow one", runner.Progress{Start: 20 * time.Second, Starting: 60, Expected: 10 * time.Minute},
			"mcp-conformance: the server takes 20s to start, and 60 cases start it: about 10m0s; --jobs 4 would halve that\n"},
		{"later", runner.Progress{Done: 1, Total: 60}, ""},
	} {
		var out strings.Builder
		foretell(&out, 2)(c.p)
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
