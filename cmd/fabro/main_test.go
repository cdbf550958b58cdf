package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the built program; the tests run it as its users do, hundreds of times,
// and so without the race detector, which costs a second at each start. Races are
// looked for in the rooms and by conformance/realclients.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fabro-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "fabro")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile does
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// TestScripts plays testdata/script: what the commands promise, readable without
// reading Go. Each script has a home of its own, and the embedded server that it
// may have started is stopped when it ends.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("ROOT", root)
			env.Setenv("SHELL", "/bin/bash")
			if err := os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700); err != nil {
				return err
			}
			home := env.Getenv("HOME")
			env.Defer(func() {
				stop := exec.Command(binary, "server", "stop")
				stop.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
				if out, err := stop.CombinedOutput(); err != nil {
					t.Errorf("fabro server stop: %v\n%s", err, out)
				}
			})
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"mark":  func(ts *testscript.TestScript, _ bool, files []string) { rewrite(ts, files, withMark) },
			"utf16": func(ts *testscript.TestScript, _ bool, files []string) { rewrite(ts, files, inUTF16) },
		},
	})
}

// rewrite changes files of a script: mark FILE...
func rewrite(ts *testscript.TestScript, files []string, change func(string) []byte) {
	for _, file := range files {
		text := ts.ReadFile(file)
		ts.Check(os.WriteFile(ts.MkAbs(file), change(text), 0o600))
	}
}

// withMark puts a byte-order mark before a text.
func withMark(text string) []byte { return []byte("\uFEFF" + text) }

// inUTF16 is a text as some shells write it.
func inUTF16(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}

// exits runs a command and checks its exit code: exits 2 fabro --bogus
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d; want %d", got, want)
	}
}
