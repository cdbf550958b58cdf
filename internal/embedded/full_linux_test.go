package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fabro-mcp/fabroapi/wire"
)

// A file system that is full in the middle of a run, and then is not: the run fails and says why, others go on
// afterwards, nothing is damaged.
func TestFullFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to mount a small file system, which only root may")
	}
	s := newSite(t)
	if err := os.MkdirAll(s.cfg.StorageDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", s.cfg.StorageDir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		s.end()
		// Lazily: the server has given up its lock and may still be on its way out.
		if err := syscall.Unmount(s.cfg.StorageDir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	p := s.connect()
	id := s.start(p, `digraph F { graph [goal="Fill it", max_node_visits=100000] start [shape=Mdiamond] exit [shape=Msquare] fill [shape=parallelogram, script="head -c 60000 /dev/urandom | base64"]
		start -> fill  fill -> fill [condition="outcome=succeeded"]  fill -> exit }`)
	c := &crash{site: s}
	for {
		status, _, err := p.try("GET", "/runs/"+id, nil)
		if err != nil {
			t.Fatalf("the server died: %v", err)
		}
		if status == 200 && p.run(id).Lifecycle.Status.Terminal() || strings.Contains(tail(s.cfg.logPath(), 0, 50), "cannot close a run") {
			break
		}
		var fs syscall.Statfs_t
		if syscall.Statfs(s.cfg.StorageDir, &fs) == nil && fs.Bavail == 0 && status != 200 {
			break
		}
		c.pause()
	}
	if err := syscall.Mount("tmpfs", s.cfg.StorageDir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	run := p.ended(id)
	if run.Lifecycle.Status.Kind != wire.StatusFailed || run.Lifecycle.Error == nil {
		t.Fatalf("%+v", run.Lifecycle)
	}
	t.Logf("the run says: %s", run.Lifecycle.Error.Message)
	if again := p.ended(s.start(p, oneCommand)); again.Lifecycle.Status.Kind != wire.StatusSucceeded {
		t.Errorf("%+v %+v", again.Lifecycle.Status, again.Lifecycle.Error)
	}
	p.log(id)
	s.stopUndamaged()
}

// A server that has no room even for its log: the error says so all the same.
func TestStartOnAFullFileSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to mount a small file system, which only root may")
	}
	s := newSite(t)
	if err := os.MkdirAll(s.cfg.StorageDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", s.cfg.StorageDir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		s.end()
		if err := syscall.Unmount(s.cfg.StorageDir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	// The write is meant to fail when the room is used up.
	_ = os.WriteFile(filepath.Join(s.cfg.StorageDir, "fill"), make([]byte, 128<<10), 0o600)
	if _, err := s.tryConnect(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
}
