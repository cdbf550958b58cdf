package embedded

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// A token file that holds no token is replaced at the start; one that was changed or lost while the server lives gets
// the server's token back.
func TestTokenFileDamaged(t *testing.T) {
	s := newSite(t)
	if err := s.cfg.makeDir(); err != nil {
		t.Fatal(err)
	}
	damage := func(text string) {
		t.Helper()
		if err := os.WriteFile(s.cfg.tokenPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(strings.Repeat("\x00", 4096))
	s.connect()
	pid, token := s.cfg.readRecord().PID, s.cfg.readToken()
	if !goodToken(token) {
		t.Fatalf("the token is %q", token)
	}
	for _, text := range []string{"", "\x00\xff", strings.Repeat("f", 64), strings.Repeat("long ", 1000)} {
		damage(text)
		s.connect()
		if s.cfg.readToken() != token {
			t.Errorf("after %.20q the token is %q", text, s.cfg.readToken())
		}
	}
	if err := os.Remove(s.cfg.tokenPath()); err != nil {
		t.Fatal(err)
	}
	if rec, state, err := Status(context.Background(), s.cfg); state != Running || err != nil || rec.PID != pid {
		t.Errorf("without a token file: %v %v", state, err)
	}
}

// What a stale record names is removed only if it can have been a server's.
func TestStaleRecordOfAnotherFile(t *testing.T) {
	s := newSite(t)
	if err := s.cfg.makeDir(); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(s.cwd, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.cfg.writeRecord(&wire.ServerRecord{PID: 1, Bind: wire.ServerBind{Unix: precious}}); err != nil {
		t.Fatal(err)
	}
	if _, state, err := Status(context.Background(), s.cfg); state != Stopped || err != nil {
		t.Fatalf("%v %v", state, err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if s.cfg.readRecord() != nil {
		t.Error("the stale record is still there")
	}
}

// serveHere runs a server in this process until its end or that of the test.
func (s *site) serveHere(cfg Config) (stop func(), ended <-chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, cfg) }()
	for deadline := time.Now().Add(patience); ; {
		if _, state, err := Status(ctx, s.cfg); err != nil {
			s.t.Fatal(err)
		} else if state == Running {
			return cancel, done
		}
		if time.Now().After(deadline) {
			s.t.Fatal("the server does not come up")
		}
	}
}

// Somebody removes the storage directory: the server has nothing left to serve, and leaves what comes after it alone.
func TestStorageRemoved(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	cfg := s.cfg
	cfg.LookEvery = 10 * time.Millisecond
	_, ended := s.serveHere(cfg)
	if err := os.RemoveAll(s.cfg.StorageDir); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended: // what it says of files that are gone is its own affair
	case <-time.After(patience):
		t.Fatal("it lives on without its directory")
	}

	stop, ended := s.serveHere(s.cfg)
	if err := os.RemoveAll(s.cfg.StorageDir); err != nil {
		t.Fatal(err)
	}
	s.connect()
	pid := s.cfg.readRecord().PID
	stop()
	<-ended
	if rec, state, err := Status(context.Background(), s.cfg); state != Running || err != nil || rec.PID != pid {
		t.Errorf("the old server took the new one's place away: %v %v", state, err)
	}
}

// A server whose record is lost or damaged while it lives can be found again.
func TestRecordLost(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	cfg := s.cfg
	cfg.LookEvery = 10 * time.Millisecond
	stop, ended := s.serveHere(cfg)
	for _, damage := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(s.cfg.recordPath(), []byte("{"), 0o600) },
		func() error { return os.Mkdir(s.cfg.recordPath(), 0o700) },
	} {
		// The server may put its record back at any moment, also before the damage is done.
		os.Remove(s.cfg.recordPath())
		if err := damage(); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		s.connect()
		if rec := s.cfg.readRecord(); rec == nil || rec.PID != os.Getpid() {
			t.Errorf("the record is %+v", rec)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// loseSocket damages the socket of a living server in every way there is; after each, call is to find the server again.
func (s *site) loseSocket(call func()) {
	s.t.Helper()
	socket := s.cfg.readRecord().Bind.Unix
	for what, damage := range map[string]func() error{
		"removed":                   func() error { return nil },
		"replaced by a file":        func() error { return os.WriteFile(socket, []byte("x"), 0o600) },
		"replaced by a directory":   func() error { return os.Mkdir(socket, 0o700) },
		"replaced by a dead socket": func() error { return deadSocket(socket) },
	} {
		// The server may make its socket again at any moment, also before the damage is done.
		os.Remove(socket)
		if err := damage(); err != nil && !os.IsExist(err) && !errors.Is(err, syscall.EADDRINUSE) {
			s.t.Fatalf("%s: %v", what, err)
		}
		call()
		if info, err := os.Lstat(socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
			s.t.Errorf("%s: %v %v", what, info, err)
		}
	}
}

// deadSocket makes a socket that nobody listens on.
func deadSocket(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l.Close()
}

// A server whose socket is lost while it lives listens anew, and what is under way goes on.
func TestSocketLost(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	setenv(t, "FABRO_TEST_LOOK_EVERY", "10ms")
	p := s.connect()
	pid := s.cfg.readRecord().PID
	id := s.start(p, oneGate)
	blocked, followed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		p.follow(id, 1, func(e wire.EventEnvelope) bool {
			if e.Event == "run.blocked" {
				close(blocked)
			}
			return wire.TerminalEvent(e.Event)
		})
	}()
	<-blocked
	s.loseSocket(func() {
		if got := s.connect().run(id).Lifecycle.Status.Kind; got != wire.StatusBlocked {
			t.Errorf("the run is %s", got)
		}
		if rec := s.cfg.readRecord(); rec.PID != pid {
			t.Errorf("another server, %d, came into the place of %d", rec.PID, pid)
		}
	})
	q := p.question(id)
	p.answer(id, q.ID, wire.AnswerOfOption("Y"))
	<-followed
	if err := Stop(context.Background(), s.cfg); err != nil {
		t.Error(err)
	}
	if _, state, err := Status(context.Background(), s.cfg); state != Stopped || err != nil {
		t.Errorf("%v %v", state, err)
	}
}

// A living server that does not answer is named, with the way to be rid of it, and no second one is started.
func TestDeafServer(t *testing.T) {
	needsUnix(t)
	s := newSite(t)
	if err := s.cfg.makeDir(); err != nil {
		t.Fatal(err)
	}
	lock, err := s.cfg.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the end of the site, which would end whoever the record names
		os.Remove(s.cfg.recordPath())
		lock.Unlock()
	})
	socket := s.cfg.file("embedded.sock")
	const nobody = 1 << 30
	if err := s.cfg.writeRecord(&wire.ServerRecord{PID: nobody, Bind: wire.ServerBind{Unix: socket}}); err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.StartTimeout = 50 * time.Millisecond
	_, _, err = Ensure(t.Context(), cfg, []string{"/nonexistent"})
	for _, part := range []string{"another one (pid 1073741824) holds " + s.cfg.lockPath(), "did not answer on " + socket, "fabro server stop"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
}

// A lock file that cannot be opened is not somebody who takes too long.
func TestStartLockUnusable(t *testing.T) {
	s := newSite(t)
	if err := s.cfg.makeDir(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.cfg.file("start.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tryConnect(); err == nil || !strings.Contains(err.Error(), "start.lock") || strings.Contains(err.Error(), "somebody else") {
		t.Errorf("%v", err)
	}
}
