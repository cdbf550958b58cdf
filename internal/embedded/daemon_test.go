package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// Stop, status and ensure, over and over.
func TestStartAndStop(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	if rec, state, err := Status(ctx, s.cfg); rec != nil || state != Stopped || err != nil {
		t.Fatalf("%v %v %v", rec, state, err)
	}
	if err := Stop(ctx, s.cfg); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("stop: %v", err)
	}
	p := s.connect()
	rec, state, err := Status(ctx, s.cfg)
	if err != nil || state != Running || rec.PID == os.Getpid() || rec.Version != "1.0.0" || rec.TokenPath != s.cfg.tokenPath() {
		t.Fatalf("%+v %v %v", rec, state, err)
	}
	s.connect()
	if again := s.cfg.readRecord(); again.PID != rec.PID {
		t.Fatalf("a second server: pid %d after %d", again.PID, rec.PID)
	}
	var info wire.SystemInfo
	p.call(200, "GET", "/system/info", nil, &info)
	if info.Version != "1.0.0" || info.StorageDir != s.cfg.StorageDir {
		t.Fatalf("%+v", info)
	}
	if err := Stop(ctx, s.cfg); err != nil {
		t.Fatal(err)
	}
	if rec, state, err := Status(ctx, s.cfg); rec != nil || state != Stopped || err != nil {
		t.Fatalf("%v %v %v", rec, state, err)
	}
	token := s.cfg.readToken()
	s.connect()
	if s.cfg.readToken() != token {
		t.Error("the token changed with a restart")
	}
}

// A dead server's record and socket are cleaned up, and do not keep the next from starting.
func TestStaleRecord(t *testing.T) {
	s := newSite(t)
	s.connect()
	rec := s.cfg.readRecord()
	s.kill()
	if _, state, err := Status(context.Background(), s.cfg); state != Stopped || err != nil {
		t.Fatalf("%v %v", state, err)
	}
	if s.cfg.readRecord() != nil {
		t.Error("the record is still there")
	}
	s.connect()
	s.kill()
	// Now with its record and socket in place, the record naming a stranger's pid.
	rec.PID = 1
	if err := s.cfg.writeRecord(rec); err != nil {
		t.Fatal(err)
	}
	s.connect()
	if now := s.cfg.readRecord(); now.PID == 1 {
		t.Error("the stale record is still there")
	}
}

// Many starters at once end up with one server.
func TestStartedTogether(t *testing.T) {
	rounds := 6
	if os.Getenv("FABRO_LONG") != "" {
		rounds = 50
	}
	s := newSite(t)
	for round := range rounds {
		const starters = 4
		var wg sync.WaitGroup
		where, errs := make([]string, starters), make([]error, starters)
		for i := range starters {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if i%2 == 0 {
					where[i], _, errs[i] = Ensure(context.Background(), s.cfg, s.exe)
					return
				}
				// A server started by hand beside it: it serves, or finds the other and says so.
				cmd := exec.Command(s.exe[0], s.exe[1:]...)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) {
					errs[i] = fmt.Errorf("%w: %s", err, out)
				}
			}()
		}
		// The servers started by hand end when they are stopped.
		stopped := make(chan struct{})
		go func() { wg.Wait(); close(stopped) }()
		first := s.connect()
		var info wire.SystemInfo
		first.call(200, "GET", "/system/info", nil, &info)
		if err := Stop(context.Background(), s.cfg); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		// An Ensure that comes after the stop starts another.
		for done := false; !done; {
			select {
			case <-stopped:
				done = true
			default:
				if err := Stop(context.Background(), s.cfg); err != nil && !errors.Is(err, ErrNotRunning) {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		}
		for i, err := range errs {
			if err != nil {
				t.Errorf("round %d: starter %d: %v", round, i, err)
			}
		}
		if err := Stop(context.Background(), s.cfg); err != nil && !errors.Is(err, ErrNotRunning) {
			t.Fatal(err)
		}
	}
}

// A path that is too long for a socket: the socket goes elsewhere, and the record says where.
func TestLongPath(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	s.cfg.StorageDir = filepath.Join(s.cfg.StorageDir, strings.Repeat("long/", 25), "end")
	t.Setenv(serveEnv, s.cfg.StorageDir)
	t.Setenv("XDG_RUNTIME_DIR", s.cfg.FabroHome)
	p := s.connect()
	p.call(200, "GET", "/runs", nil, nil)
	rec := s.cfg.readRecord()
	if len(rec.Bind.Unix) > maxSocketPath || strings.HasPrefix(rec.Bind.Unix, s.cfg.StorageDir) {
		t.Errorf("socket at %s", rec.Bind.Unix)
	}
	if info, err := os.Stat(filepath.Dir(rec.Bind.Unix)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := Stop(context.Background(), s.cfg); err != nil {
		t.Fatal(err)
	}
	// A directory that others may use is not used.
	if err := os.Chmod(filepath.Dir(rec.Bind.Unix), 0o777); err != nil {
		t.Fatal(err)
	}
	var failed *StartError
	if _, err := s.tryConnect(); !errors.As(err, &failed) || !strings.Contains(err.Error(), "others may use it") {
		t.Errorf("%v", err)
	}
}

// A server that cannot start says why: the end of its log is in the error.
func TestStartFails(t *testing.T) {
	s := newSite(t)
	if err := s.cfg.makeDir(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.cfg.dbPath(), []byte(strings.Repeat("no database ", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed *StartError
	if _, err := s.tryConnect(); !errors.As(err, &failed) || !strings.Contains(failed.Log, "is not an SQLite database") {
		t.Errorf("%v", err)
	}
	os.Remove(s.cfg.dbPath())
	s.settings("[server]\nidle_stopp = \"1h\"\n")
	if _, err := s.tryConnect(); err == nil || !strings.Contains(err.Error(), "embedded.toml:2: unknown key server.idle_stopp") {
		t.Errorf("%v", err)
	}
	if _, _, err := Ensure(context.Background(), s.cfg, []string{"/no/such/program"}); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
	s.settings("")
	s.connect()
}

func TestIdleStop(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	s.settings("[server]\nidle_stop = \"300ms\"\n")
	p := s.connect()
	id := s.start(p, oneGate)
	q := p.question(id)
	pid := s.cfg.readRecord().PID
	// A blocked run keeps it alive, for much longer than it may be idle.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	<-ctx.Done()
	if rec := s.cfg.readRecord(); rec == nil || rec.PID != pid {
		t.Fatal("the server ended although a run waits for a person")
	}
	p.answer(id, q.ID, wire.AnswerOfOption("Y"))
	p.ended(id)
	if err := s.gone(); err != nil {
		t.Fatal(err)
	}
	// It comes back with what it had.
	if run := s.connect().run(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
		t.Errorf("%+v", run.Lifecycle)
	}
}

// gone waits until no server holds the lock.
func (s *site) gone() error {
	deadline := time.Now().Add(patience)
	for {
		lock, err := s.cfg.lock(context.Background())
		if err == nil {
			return lock.Unlock()
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

func TestVersions(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	first := s.cfg.readRecord().PID
	id := s.start(p, oneGate)
	q := p.question(id)
	s.cfg.Version = "1.1.0"
	t.Setenv("FABRO_TEST_VERSION", "1.1.0")
	p = s.connect()
	if rec := s.cfg.readRecord(); rec.PID != first {
		t.Fatal("a busy server of an older version was replaced")
	}
	p.answer(id, q.ID, wire.AnswerOfOption("Y"))
	p.ended(id)
	// The engine gives its place back a moment after the last event.
	for s.cfg.readRecord().Version != "1.1.0" {
		p = s.connect()
	}
	if run := p.run(id); run.Lifecycle.Status.Kind != wire.StatusSucceeded {
		t.Errorf("%+v", run.Lifecycle)
	}
	second := s.cfg.readRecord().PID
	s.cfg.Version = "1.0.9"
	s.connect()
	if rec := s.cfg.readRecord(); rec.PID != second {
		t.Error("a newer server was replaced by an older one")
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1.0.0", "1.0.0", false}, {"1.0.0", "1.0.1", true}, {"1.10.0", "1.9.0", false}, {"v1.2.3", "1.2.3", true}, {"1.2.3-dev", "1.2.3-dev", false}, {"dev", "1.0.0", true}, {"", "1.0.0", true},
		{"2.0.0", "", false}} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) is %t", c.a, c.b, got)
		}
	}
}

// An orderly stop closes what runs, and says so in its events; the commands are gone with it.
func TestStopClosesRuns(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	p := s.connect()
	id := s.start(p, `digraph S { start [shape=Mdiamond] exit [shape=Msquare] nap [shape=parallelogram, script="echo $$ > pid; exec sleep 600"] start -> nap -> exit }`)
	p.await(id, "command.started")
	gate := s.start(p, oneGate)
	p.question(gate)
	stream := make(chan string, 1)
	go p.follow(gate, 1, func(e wire.EventEnvelope) bool {
		if wire.TerminalEvent(e.Event) {
			stream <- e.Event
			return true
		}
		return false
	})
	if err := Stop(context.Background(), s.cfg); err != nil {
		t.Fatal(err)
	}
	if end := <-stream; end != wire.EventRunFailed {
		t.Errorf("the stream ended with %s", end)
	}
	p = s.connect()
	for _, id := range []string{id, gate} {
		run := p.run(id)
		if run.Lifecycle.Status != (wire.RunStatus{Kind: wire.StatusFailed, Reason: wire.FailedTerminated}) || run.Lifecycle.Error.Message != "Fabro server shut down before the run reached a terminal state." {
			t.Errorf("%+v %+v", run.Lifecycle.Status, run.Lifecycle.Error)
		}
	}
}

func TestLoginPath(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	shell := filepath.Join(s.cfg.FabroHome, "shell")
	// A login shell that talks, and one that hangs.
	script := "#!/bin/sh\necho Welcome\nPATH=/opt/mine:/usr/bin:/bin\nexport PATH\nexec /bin/sh -c \"$3\"\n"
	if err := os.WriteFile(shell, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHELL", shell)
	t.Setenv("PATH", "/usr/bin:/bin")
	env := newEnvironment(&s.cfg, slog.New(slog.DiscardHandler)).get()
	if got := lookup(env, "PATH"); got != "/opt/mine:/usr/bin:/bin" {
		t.Errorf("PATH %q", got)
	}
	if got := lookup(env, "FABRO_STORAGE_DIR"); got != s.cfg.StorageDir {
		t.Errorf("FABRO_STORAGE_DIR %q", got)
	}
	keep := s.cfg
	keep.KeepPath = true
	if got := lookup(newEnvironment(&keep, slog.New(slog.DiscardHandler)).get(), "PATH"); got != "/usr/bin:/bin" {
		t.Errorf("PATH %q although it is to be kept", got)
	}
	if err := os.WriteFile(shell, []byte("#!/bin/sh\necho no\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := lookup(newEnvironment(&s.cfg, slog.New(slog.DiscardHandler)).get(), "PATH"); got != "/usr/bin:/bin" {
		t.Errorf("PATH %q from a shell that failed", got)
	}
	for path, want := range map[string]bool{"": true, "/usr/bin:/bin": true, "/usr/bin:/bin:/home/me/bin": false} {
		if poorPath(path) != want {
			t.Errorf("poorPath(%q) is %t", path, !want)
		}
	}
}

// lookup returns the last value of a variable, which is the one that counts.
func lookup(env []string, name string) (value string) {
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

func TestLogRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	l, err := openLog(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		fmt.Fprintf(l, "line %04d with some more text in it\n", i)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != oldLogs+1 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 1000 || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", f, info, err)
		}
	}
	if got := tail(path, 0, 1); got != "line 0199 with some more text in it" {
		t.Errorf("tail %q", got)
	}
}

func TestConfig(t *testing.T) {
	home := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(home, ConfigName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := LoadConfig(home, "rel", "1")
	if err != nil || !filepath.IsAbs(cfg.StorageDir) || cfg.idleStop() != DefaultIdleStop {
		t.Fatalf("%+v %v", cfg, err)
	}
	write("[agent]\ncommand = [\"claude\", \"-p\"]\n[server]\nidle_stop = \"never\"\nlogin_path = false\n[runs]\nmax_concurrent = 2\nmax_run_bytes = 1000\nretention = \"30d\"\n[store]\nsynchronous = \"full\"\n")
	cfg, err = LoadConfig(home, "/s", "1")
	if err != nil || strings.Join(cfg.AgentCommand, " ") != "claude -p" || cfg.idleStop() > 0 || !cfg.KeepPath || cfg.MaxConcurrentRuns != 2 || cfg.MaxRunBytes != 1000 ||
		cfg.Retention != 30*24*time.Hour || cfg.Synchronous != "full" {
		t.Fatalf("%+v %v", cfg, err)
	}
	for text, want := range map[string]string{
		"[agent]\ncommand = \"x\"\n":         "embedded.toml:2:11: ",
		"[agent]\ncommand = [\"\"]\n":        "agent.command must begin with a program",
		"[store]\nsynchronous = \"off\"\n":   "store.synchronous must be",
		"[runs]\nretention = \"soon\"\n":     `runs.retention: "soon" is not a duration above 0; write for example "36h" or "30d", or "forever"`,
		"[runs]\nmax_concurrent = -1\n":      "must be above 0",
		"[nothing]\n":                        "unknown key nothing",
		"[server\n":                          "embedded.toml:1:",
		"[server]\nidle_stop = \"-5m\"\n":    `server.idle_stop: "-5m" is not a duration above 0; write for example "45m" or "2h", or "never"`,
		"[server]\nlogin_path = \"often\"\n": "embedded.toml:2:",
	} {
		write(text)
		if _, err := LoadConfig(home, "/s", "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"36h": 36 * time.Hour, "2d": 48 * time.Hour, "1w": 7 * 24 * time.Hour, "0d": 0, "d": 0, "-1h": 0, "9999999999d": 0} {
		if got, err := ParseAge(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("ParseAge(%q) = %v, %v", text, got, err)
		}
	}
}
