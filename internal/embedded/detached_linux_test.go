package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server that was started has nothing of its starter: not its session, not its directory, none of its descriptors,
// also not those that a host had left open in it. What is its own is private.
func TestDetached(t *testing.T) {
	s := newSite(t)
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil { // not close-on-exec
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	ours, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", pipe[1]))
	if err != nil {
		t.Fatal(err)
	}
	s.connect()
	rec := s.cfg.readRecord()
	proc := fmt.Sprintf("/proc/%d", rec.PID)
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if pid := fmt.Sprint(rec.PID); fields[2] != pid || fields[3] != pid {
		t.Errorf("process group %s and session %s of pid %s", fields[2], fields[3], pid)
	}
	if dir, err := os.Readlink(proc + "/cwd"); err != nil || dir != "/" {
		t.Errorf("cwd %s %v", dir, err)
	}
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		if err != nil {
			continue
		}
		switch {
		case to == ours:
			t.Errorf("descriptor %s is our pipe", fd.Name())
		case (fd.Name() == "0" || fd.Name() == "1") && to != os.DevNull:
			t.Errorf("descriptor %s is %s", fd.Name(), to)
		case fd.Name() == "2" && to != s.cfg.logPath():
			t.Errorf("descriptor 2 is %s", to)
		}
	}
	for path, mode := range map[string]os.FileMode{s.cfg.dir(): 0o700, rec.Bind.Unix: 0o600, s.cfg.tokenPath(): 0o600, s.cfg.recordPath(): 0o600, s.cfg.dbPath(): 0o600,
		s.cfg.dbPath() + "-wal": 0o600, s.cfg.logPath(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %o", path, info, err, mode)
		}
	}
}
