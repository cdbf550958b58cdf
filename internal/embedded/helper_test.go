package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/store"
)

// serveEnv makes the test binary a server: its value is the storage directory.
const serveEnv = "FABRO_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		os.Exit(serveForTest(dir))
	}
	os.Exit(m.Run())
}

func serveForTest(dir string) int {
	cfg, err := LoadConfig(os.Getenv("FABRO_HOME"), dir, os.Getenv("FABRO_TEST_VERSION"))
	if err == nil {
		cfg.LookEvery, _ = time.ParseDuration(os.Getenv("FABRO_TEST_LOOK_EVERY"))
		cfg.KeepPath = cfg.KeepPath || os.Getenv("FABRO_TEST_LOGIN_PATH") == ""
		if n, _ := strconv.Atoi(os.Getenv("FABRO_TEST_FSIZE")); n > 0 {
			limitFileSize(uint64(n))
		}
		err = Serve(context.Background(), cfg)
	}
	switch {
	case errors.Is(err, ErrRunning):
		fmt.Fprintln(os.Stderr, err)
		return 3
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// site is a storage directory of a test with whatever server lives in it.
type site struct {
	t   testing.TB
	cfg Config
	cwd string // where runs work
	exe []string
}

// newSite is a fresh home; the server that a test leaves behind is ended with it.
func newSite(t testing.TB) *site {
	t.Helper()
	// A short path: sockets have a limit. Tests of that limit make their own.
	home, err := os.MkdirTemp("", "fe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for k, v := range map[string]string{"HOME": home, "FABRO_HOME": home, "FABRO_STORAGE_DIR": "", "FABRO_AGENT_COMMAND": "", "FABRO_TEST_VERSION": "1.0.0"} {
		setenv(t, k, v)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, cfg: Config{StorageDir: filepath.Join(home, "storage"), FabroHome: home, Version: "1.0.0", StartTimeout: time.Minute}, cwd: filepath.Join(home, "work")}
	if err := os.MkdirAll(s.cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	setenv(t, serveEnv, s.cfg.StorageDir)
	s.exe = []string{exe, "-test.run=^$"}
	t.Cleanup(s.end)
	return s
}

func setenv(t testing.TB, key, value string) {
	if tt, ok := t.(*testing.T); ok {
		tt.Setenv(key, value)
	} else {
		t.(*testing.B).Setenv(key, value)
	}
}

// settings writes embedded.toml.
func (s *site) settings(text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.cfg.FabroHome, ConfigName), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) end() {
	if err := Stop(context.Background(), s.cfg); err != nil && !errors.Is(err, ErrNotRunning) {
		s.t.Errorf("stop: %v", err)
		s.kill()
	}
	if s.t.Failed() {
		s.t.Logf("server.log:\n%s", tail(s.cfg.logPath(), 0, 40))
	}
}

// stopUndamaged ends the server in an orderly way and looks over what it has stored.
func (s *site) stopUndamaged() {
	s.t.Helper()
	if err := Stop(context.Background(), s.cfg); err != nil {
		s.t.Fatal(err)
	}
	st, err := store.Open(context.Background(), s.cfg.dbPath(), store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer st.Close()
	if err := st.Check(context.Background()); err != nil {
		s.t.Error(err)
	}
}

// kill ends the server as nothing ends in an orderly way.
func (s *site) kill() {
	s.t.Helper()
	rec := s.cfg.readRecord()
	if rec == nil {
		s.t.Fatal("no server to kill")
	}
	p, err := os.FindProcess(rec.PID)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Kill()
	// The lock is free when the process is gone.
	lock, err := s.cfg.lock(context.Background())
	if err != nil {
		s.t.Fatalf("the killed server still holds its lock: %v", err)
	}
	lock.Unlock()
}

// connect makes sure that a server lives and returns a way to talk to it.
func (s *site) connect() *peer {
	s.t.Helper()
	p, err := s.tryConnect()
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *site) tryConnect() (*peer, error) {
	where, token, err := Ensure(context.Background(), s.cfg, s.exe)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	base := where
	if filepath.IsAbs(where) {
		base = "http://fabro"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", where)
		}
	}
	p := &peer{t: s.t, base: base, token: token, http: &http.Client{Transport: transport}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return p, nil
}

// peer is a client of a test's server.
type peer struct {
	t     testing.TB
	base  string
	token string
	http  *http.Client
	seen  func(method, path string, status int, body []byte) // of every answer
}

func (p *peer) request(ctx context.Context, method, path string, body any, header ...string) (*http.Response, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	if !strings.HasPrefix(path, "/health") {
		path = wire.APIPrefix + path
	}
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("User-Agent", "fabro-cli/1.0.0")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return p.http.Do(req)
}

// try does a request; the status is 0 when there was no answer.
func (p *peer) try(method, path string, body any, header ...string) (status int, text []byte, err error) {
	resp, err := p.request(context.Background(), method, path, body, header...)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err == nil && p.seen != nil {
		p.seen(method, path, resp.StatusCode, text)
	}
	return resp.StatusCode, text, err
}

// call does a request that must be answered with this status, and decodes the answer into v when it is not nil.
func (p *peer) call(want int, method, path string, body, v any, header ...string) {
	p.t.Helper()
	status, text, err := p.try(method, path, body, header...)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	if status != want {
		p.t.Fatalf("%s %s: status %d, want %d\n%s", method, path, status, want, text)
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil {
			p.t.Fatalf("%s %s: %v\n%s", method, path, err, text)
		}
	}
}

// refuse does a request that must be refused with this status and sentence; it returns the code.
func (p *peer) refuse(want int, detail, method, path string, body any, header ...string) string {
	p.t.Helper()
	var env wire.ErrorEnvelope
	p.call(want, method, path, body, &env, header...)
	if len(env.Errors) != 1 || env.Errors[0].Status != strconv.Itoa(want) || env.Errors[0].Title != http.StatusText(want) || env.RequestID == "" {
		p.t.Fatalf("%s %s: envelope %+v", method, path, env)
	}
	if got := env.Errors[0].Detail; got != detail && !(strings.HasSuffix(detail, "…") && strings.HasPrefix(got, strings.TrimSuffix(detail, "…"))) {
		p.t.Fatalf("%s %s: detail %q, want %q", method, path, got, detail)
	}
	return env.Errors[0].Code
}

// manifest is a manifest of one graph.
func (s *site) manifest(graph string, change ...func(*wire.RunManifest)) *wire.RunManifest {
	m := &wire.RunManifest{Version: 1, Cwd: s.cwd, Target: wire.ManifestTarget{Path: "flow.fabro"}, Workflows: map[string]wire.ManifestWorkflow{"flow.fabro": {Source: graph}}}
	for _, c := range change {
		c(m)
	}
	return m
}

func withDryRun(m *wire.RunManifest) {
	if m.Args == nil {
		m.Args = &wire.ManifestArgs{}
	}
	m.Args.DryRun = wire.Ptr(true)
}

func withParent(id string) func(*wire.RunManifest) {
	return func(m *wire.RunManifest) { m.ParentID = &id }
}

// create makes a run of a graph, and start starts it.
func (s *site) create(p *peer, graph string, change ...func(*wire.RunManifest)) string {
	s.t.Helper()
	var run wire.Run
	p.call(http.StatusCreated, "POST", "/runs", s.manifest(graph, change...), &run)
	return run.ID
}

func (s *site) start(p *peer, graph string, change ...func(*wire.RunManifest)) string {
	s.t.Helper()
	id := s.create(p, graph, change...)
	p.call(http.StatusOK, "POST", "/runs/"+id+"/start", nil, nil)
	return id
}

func (p *peer) run(id string) wire.Run {
	p.t.Helper()
	var run wire.Run
	p.call(http.StatusOK, "GET", "/runs/"+id, nil, &run)
	return run
}

// patience is how long a test waits for something that must come.
const patience = 60 * time.Second

// follow reads the event stream of a run from seq since on and calls show with each event until it returns true.
func (p *peer) follow(id string, since int64, show func(e wire.EventEnvelope) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := p.request(ctx, "GET", fmt.Sprintf("/runs/%s/attach?since_seq=%d", id, since), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("attach: %s", resp.Status)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("the stream of run %s ended before what was waited for: %v", id, err)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e wire.EventEnvelope
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			p.t.Fatalf("%v in %s", err, data)
		}
		if show(e) {
			return
		}
	}
}

// await reads the stream until an event of this name comes.
func (p *peer) await(id, name string) (found wire.EventEnvelope) {
	p.t.Helper()
	p.follow(id, 1, func(e wire.EventEnvelope) bool {
		found = e
		return e.Event == name
	})
	return found
}

// ended waits for the end of a run and returns it.
func (p *peer) ended(id string) wire.Run {
	p.t.Helper()
	p.follow(id, 1, func(e wire.EventEnvelope) bool { return wire.TerminalEvent(e.Event) })
	return p.run(id)
}

func (p *peer) question(id string) wire.Question {
	p.t.Helper()
	p.await(id, "run.blocked")
	var list wire.List[wire.Question]
	p.call(http.StatusOK, "GET", "/runs/"+id+"/questions", nil, &list)
	if len(list.Data) == 0 {
		p.t.Fatalf("run %s has no question", id)
	}
	return list.Data[0]
}

func (p *peer) answer(id, question string, a wire.SubmitAnswer) {
	p.t.Helper()
	p.call(http.StatusNoContent, "POST", "/runs/"+id+"/questions/"+question+"/answer", a, nil)
}

// log returns all events of a run, page by page.
func (p *peer) log(id string) (all []wire.EventEnvelope) {
	p.t.Helper()
	for since := int64(1); ; {
		var page wire.List[wire.EventEnvelope]
		p.call(http.StatusOK, "GET", fmt.Sprintf("/runs/%s/events?limit=1000&since_seq=%d", id, since), nil, &page)
		for _, e := range page.Data {
			if e.Seq != since {
				p.t.Fatalf("event %d where %d was expected", e.Seq, since)
			}
			since++
			all = append(all, e)
		}
		if !page.Meta.HasMore {
			return all
		}
	}
}

func names(events []wire.EventEnvelope) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.Event
	}
	return list
}

func needsUnix(t testing.TB) {
	if runtime.GOOS == "windows" {
		t.Skip("uses POSIX commands and signals")
	}
}

// Graphs that several tests run.
const (
	oneCommand = `digraph One { graph [goal="Say hello"] start [shape=Mdiamond] exit [shape=Msquare] hello [shape=parallelogram, script="echo hello"]
		start -> hello -> exit }`
	oneGate = `digraph Gate { graph [goal="Ask first"] start [shape=Mdiamond] exit [shape=Msquare] work [shape=parallelogram, script="echo work"] ask [shape=hexagon, label="Go on?"]
		start -> work -> ask  ask -> exit [label="[Y] Yes"]  ask -> work [label="[N] Again"] }`
	sleeper = `digraph Sleep { graph [goal="Sleep"] start [shape=Mdiamond] exit [shape=Msquare] nap [shape=parallelogram, script="sleep 600"]
		start -> nap -> exit }`
	agentGraph = `digraph Agent { graph [goal="Think"] start [shape=Mdiamond] exit [shape=Msquare] think [label="Think", prompt="Think hard"] start -> think -> exit }`
)
