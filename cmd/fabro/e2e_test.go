package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fabro-mcp/internal/mcpclient"
	"fabro-mcp/transport"
)

// patience bounds every wait of these tests; nothing comes near it when all is well.
const patience = 60 * time.Second

// newHome is a throw-away home directory. What the embedded server of that home
// still runs is stopped when the test ends.
func newHome(t *testing.T) []string {
	t.Helper()
	env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	t.Cleanup(func() {
		if out, err := command(env, "server", "stop").CombinedOutput(); err != nil {
			t.Errorf("fabro server stop: %v\n%s", err, out)
		}
	})
	return env
}

func command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = env
	return cmd
}

// startHost starts `fabro mcp start` with a client in front of it.
func startHost(t *testing.T, env []string, args ...string) *mcpclient.Client {
	t.Helper()
	cmd := command(env, append([]string{"mcp", "start"}, args...)...)
	cmd.Dir = t.TempDir()
	child, err := transport.Command(context.Background(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	client := mcpclient.New(context.Background(), child, mcpclient.Options{Name: "e2e", Version: "1"})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := child.Close(); err != nil {
			t.Errorf("fabro mcp start: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.Discover(ctx); err != nil {
		t.Fatal(err)
	}
	return client
}

// call calls a tool that must succeed and decodes what it returned.
func call[T any](t *testing.T, client *mcpclient.Client, tool string, arguments string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	result, err := client.CallTool(ctx, tool, json.RawMessage(arguments), nil)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if result.IsError {
		t.Fatalf("%s: %s", tool, result.Text())
	}
	var v T
	if err := json.Unmarshal(result.Structured, &v); err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, result.Structured)
	}
	return v
}

type runList struct {
	Runs []struct {
		ID     string `json:"run_id"`
		Status string `json:"status"`
	} `json:"runs"`
}

// createRun starts the release example and returns the run's id.
func createRun(t *testing.T, client *mcpclient.Client) string {
	t.Helper()
	workflow, err := filepath.Abs("../../examples/release/workflow.toml")
	if err != nil {
		t.Fatal(err)
	}
	list := call[runList](t, client, "fabro_run_create", fmt.Sprintf(`{"runs":[{"workflow":%q,"cwd":%q}]}`, workflow, t.TempDir()))
	if len(list.Runs) != 1 {
		t.Fatalf("created %d runs", len(list.Runs))
	}
	return list.Runs[0].ID
}

// An embedded server that did not start is started by the next call of the same
// session, once what was wrong is mended.
func TestFailedStartIsTriedAgain(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"a file in the place of its directory", "storage", "not a directory", "the embedded server needs a directory of its own"},
		{"settings that cannot be read", "embedded.toml", "[server", "embedded.toml:1:"},
		{"a process that ends at once", "storage/embedded/fabro.db", strings.Repeat("no database ", 20), "is not an SQLite database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newHome(t)
			home := filepath.Join(strings.TrimPrefix(env[0], "HOME="), ".fabro")
			wrong := filepath.Join(home, c.file)
			if err := os.MkdirAll(filepath.Dir(wrong), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(wrong, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			client := startHost(t, env)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for range 2 {
				result, err := client.CallTool(ctx, "fabro_run_search", json.RawMessage(`{}`), nil)
				if err != nil {
					t.Fatal(err)
				}
				if !result.IsError || !strings.Contains(result.Text(), c.want) {
					t.Errorf("no %q in %s", c.want, result.Text())
				}
			}
			if err := os.Remove(wrong); err != nil {
				t.Fatal(err)
			}
			createRun(t, client)
		})
	}
}

// A few requests in a pipe, then the end of input: one answer each and exit 0,
// however often it is tried.
func TestPipedRequestsAreAllAnswered(t *testing.T) {
	const requests = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fabro_run_get","arguments":{"run_id":""}}}
{"jsonrpc":"2.0","id":4,"method":"no/such/method"}
not json
{"jsonrpc":"2.0","id":5,"method":"ping"}`
	env := newHome(t)
	for i := range 50 {
		cmd := command(env, "mcp", "start")
		cmd.Stdin = strings.NewReader(requests)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		answers := map[string]int{}
		for line := range bytes.Lines(out) {
			var m struct {
				ID json.RawMessage `json:"id"`
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("round %d: stdout has %q", i, line)
			}
			answers[string(m.ID)]++
		}
		for _, id := range []string{"0", "1", "2", "3", "4", "5", "null"} {
			if answers[id] != 1 {
				t.Fatalf("round %d: id %s was answered %d times\n%s", i, id, answers[id], out)
			}
		}
	}
}

// Whatever is thrown in, standard output carries one JSON object a line, and the
// process lives on.
func TestStdoutCarriesProtocolOnly(t *testing.T) {
	inputs := [][]byte{
		[]byte("Content-Length: 40\r\n\r\n"), {0xff, 0xfe, '\n'}, []byte("\xef\xbb\xbf{}\n"), []byte("[]\n"), []byte("{\n"), []byte("null\n"),
		[]byte(`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}` + "\n"),
		[]byte(strings.Repeat("[", 100_000) + "\n"),
		[]byte(strings.Repeat("x", 3<<20) + "\n"),
		[]byte("\x00\x00\n"), []byte("\n\n\r\n"), []byte(`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}` + "\n"),
	}
	cmd := command(newHome(t), "--debug", "mcp", "start")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		for _, in := range inputs {
			stdin.Write(in)
		}
		io.WriteString(stdin, `{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
		stdin.Close()
	}()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	last := false
	for lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
			t.Errorf("stdout has %q", lines.Bytes())
		}
		last = last || m["id"] == "last"
	}
	writer.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !last {
		t.Error("the ping after all that was not answered")
	}
}

// A server that cannot be used is a tool error that says what to do; the process
// lives on.
func TestUselessServers(t *testing.T) {
	answering := func(code int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	tests := []struct{ name, server, want string }{
		{"a dead socket", filepath.Join(t.TempDir(), "dead.sock"), "dead.sock"},
		{"401", answering(401, `{"errors":[{"status":"401","title":"Unauthorized","detail":"Authentication required.","code":"unauthorized"}]}`), "fabro auth login"},
		{"500", answering(500, `{"errors":[{"status":"500","title":"Internal Server Error","detail":"The database is on fire."}]}`), "The database is on fire."},
		{"garbage", answering(200, "<html>hello</html>"), "Fabro"},
		{"nothing there", "http://127.0.0.1:1", "127.0.0.1:1"},
		{"no address", "nonsense", "nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := startHost(t, newHome(t), "--server", tt.server)
			for range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				result, err := client.CallTool(ctx, "fabro_run_get", json.RawMessage(`{"run_id":"x"}`), nil)
				if err != nil {
					t.Fatal(err)
				}
				if !result.IsError || !strings.Contains(result.Text(), tt.want) {
					t.Errorf("isError %v, text %q; want an error with %q", result.IsError, result.Text(), tt.want)
				}
			}
		})
	}
	t.Run("exit code of a missing login", func(t *testing.T) {
		err := command(newHome(t), "run", "list", "--server", tests[1].server).Run()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 4 {
			t.Errorf("%v; want exit code 4", err)
		}
	})
}

// Without a home directory the list of tools is there, and the process lives on.
// FABRO_HOME keeps the test away from the real home, which the system knows too.
func TestNoHome(t *testing.T) {
	client := startHost(t, []string{"PATH=" + os.Getenv("PATH"), "FABRO_HOME=" + t.TempDir()}, "--storage-dir", t.TempDir(), "--server", filepath.Join(t.TempDir(), "s.sock"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if tools, err := client.ListTools(ctx); err != nil || len(tools) != 7 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

// Two hosts on one machine share one embedded server and see each other's runs.
func TestTwoHostsShareOneServer(t *testing.T) {
	env := newHome(t)
	a, b := startHost(t, env), startHost(t, env)
	ids := make([]string, 2)
	var wg sync.WaitGroup
	for i, client := range []*mcpclient.Client{a, b} {
		wg.Add(1)
		go func() { defer wg.Done(); ids[i] = createRun(t, client) }()
	}
	wg.Wait()
	for _, client := range []*mcpclient.Client{a, b} {
		for _, id := range ids {
			if got := call[runList](t, client, "fabro_run_search", fmt.Sprintf(`{"run_ids":[%q]}`, id)); len(got.Runs) != 1 || got.Runs[0].ID != id {
				t.Errorf("run %s: found %+v", id, got.Runs)
			}
		}
	}
}

// A daemon killed in the middle of a run: the next call starts it again, and the
// run shows as failed with all its earlier events.
func TestKilledDaemon(t *testing.T) {
	env := newHome(t)
	client := startHost(t, env)
	id := createRun(t, client)
	call[runList](t, client, "fabro_run_gather", fmt.Sprintf(`{"run_ids":[%q],"until":"attention","timeout_seconds":60}`, id))
	type events struct {
		Events []struct {
			ID string `json:"event_id"`
		} `json:"events"`
	}
	list := fmt.Sprintf(`{"action":"list","run_id":%q,"first":200}`, id)
	before := call[events](t, client, "fabro_run_events", list)

	out, err := command(env, "--json", "server", "status").Output()
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Record struct {
			PID int `json:"pid"`
		} `json:"record"`
	}
	if err := json.Unmarshal(out, &status); err != nil || status.Record.PID < 2 {
		t.Fatalf("status %s: %v", out, err)
	}
	daemon, err := os.FindProcess(status.Record.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Kill(); err != nil {
		t.Fatal(err)
	}

	after := call[runList](t, client, "fabro_run_gather", fmt.Sprintf(`{"run_ids":[%q],"timeout_seconds":60}`, id))
	if len(after.Runs) != 1 || after.Runs[0].Status != "failed" {
		t.Errorf("the run is %+v; want failed", after.Runs)
	}
	got := call[events](t, client, "fabro_run_events", list)
	if len(got.Events) <= len(before.Events) {
		t.Fatalf("%d events before, %d after", len(before.Events), len(got.Events))
	}
	for i, e := range before.Events {
		if got.Events[i].ID != e.ID {
			t.Errorf("event %d changed", i+1)
		}
	}
	state := call[struct {
		Projection struct {
			Status struct {
				Reason string `json:"reason"`
			} `json:"status"`
		} `json:"projection"`
	}](t, client, "fabro_run_get", fmt.Sprintf(`{"run_id":%q}`, id))
	if state.Projection.Status.Reason != "terminated" {
		t.Errorf("reason %q; want terminated", state.Projection.Status.Reason)
	}
}
