package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fabro-mcp/conformance/fakeserver"
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
