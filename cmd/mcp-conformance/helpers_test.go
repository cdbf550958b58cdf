package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// clientMain plays a short session against the server named by its arguments:
// handshake, both pages of tools, one call, end of input.
func clientMain() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	fatal(err)
	out, err := cmd.StdoutPipe()
	fatal(err)
	fatal(cmd.Start())
	lines := bufio.NewScanner(out)
	ask := func(line string) string {
		_, err := fmt.Fprintln(in, line)
		fatal(err)
		if !lines.Scan() {
			fatal(io.ErrUnexpectedEOF)
		}
		return lines.Text()
	}
	ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	first := ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	_, cursor, _ := strings.Cut(first, `"nextCursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"` + cursor + `"}}`)
	ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a ${b} sk-abcdefghijklmnopqrstuv","api_key":"hunter2"}}}`)
	fatal(in.Close())
	fatal(cmd.Wait())
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// leftover MODE starts the harness against the fake server in a mode in which
// it never leaves, waits until the server runs, kills the harness with -9, and
// demands that the server is gone.
func leftover(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: leftover MODE")
	}
	pidFile := ts.MkAbs("server.pid")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >>%s\nexec fake %s\n", pidFile, args[0])
	ts.Check(os.WriteFile(ts.MkAbs("server.sh"), []byte(script), 0o755))
	harness := exec.Command("mcp-conformance", "run", "--timeout", "60s", ts.MkAbs("t.txtar"), "--", ts.MkAbs("server.sh"))
	harness.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "HOME="+ts.Getenv("HOME"))
	path, err := lookPath("mcp-conformance", ts.Getenv("PATH"))
	ts.Check(err)
	harness.Path = path
	ts.Check(harness.Start())
	pids := waitFor(func() []string {
		text, _ := os.ReadFile(pidFile)
		return strings.Fields(string(text))
	}, func(p []string) bool { return len(p) > 0 })
	if len(pids) == 0 {
		ts.Fatalf("the server did not start")
	}
	ts.Check(harness.Process.Kill())
	_ = harness.Wait() // it was killed
	alive := waitFor(func() []string {
		text, _ := os.ReadFile(pidFile)
		var out []string
		for _, p := range strings.Fields(string(text)) {
			if running(p) {
				out = append(out, p)
			}
		}
		return out
	}, func(p []string) bool { return len(p) == 0 })
	if len(alive) > 0 {
		ts.Fatalf("left behind after kill -9 of the harness: %v", alive)
	}
}

func lookPath(name, path string) (string, error) {
	for _, dir := range strings.Split(path, ":") {
		if info, err := os.Stat(dir + "/" + name); err == nil && !info.IsDir() {
			return dir + "/" + name, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

// running reports whether a process exists and is no zombie.
func running(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err == nil {
		_, after, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(after, "Z")
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return false // there is a /proc, and the process is not in it
	}
	return exec.Command("kill", "-0", pid).Run() == nil
}

// waitFor polls until done is satisfied, at most 30 s, and returns the last
// value: the two processes are not ours to be told about.
func waitFor(get func() []string, done func([]string) bool) []string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		v := get()
		if done(v) {
			return v
		}
		select {
		case <-tick.C:
		case <-deadline:
			return v
		}
	}
}
