package transport_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fabro-mcp/transport"
)

// TestMain lets this test binary be the child of its own tests.
func TestMain(m *testing.M) {
	switch os.Getenv("TRANSPORT_TEST_CHILD") {
	case "":
		goleak.VerifyTestMain(m)
	case "echo":
		child(func(s *transport.LineStream) {})
	case "noisy":
		child(func(s *transport.LineStream) {
			fmt.Println("by fmt")
			log.New(os.Stdout, "", 0).Print("by log")
			os.Stdout.WriteString("by os.Stdout\n")
			if runtime.GOOS != "windows" {
				cmd := exec.Command("sh", "-c", "echo by a child; cat")
				cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
				cmd.Run()
			}
		})
	case "deaf":
		// Neither the end of input nor the first gentle signal is heeded.
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		<-signals
	}
}

// child echoes frames and exits 3 when its output is closed.
func child(before func(*transport.LineStream)) {
	s, err := transport.Stdio()
	if err != nil {
		os.Exit(4)
	}
	if _, err := transport.Stdio(); err == nil {
		os.Exit(5)
	}
	before(s)
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			os.Exit(0)
		}
		if s.WriteFrames(frame) != nil {
			os.Exit(3)
		}
	}
}

func start(t *testing.T, kind string, stderr io.Writer) *transport.Child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRANSPORT_TEST_CHILD="+kind)
	cmd.Stderr = stderr
	c, err := transport.Command(context.Background(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommand(t *testing.T) {
	c := start(t, "echo", nil)
	if err := c.WriteFrames([]byte("one"), []byte("two")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		if frame, err := c.ReadFrame(); err != nil || string(frame) != want {
			t.Errorf("%s %v", frame, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if code := c.ProcessState().ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestChildThatIgnoresTheEnd(t *testing.T) {
	c := start(t, "deaf", nil)
	if err := c.Close(); err == nil {
		t.Error("it was not terminated")
	}
}

// TestStdioGuard: whatever is printed goes to standard error, and a child that
// inherits the standard streams neither reads nor writes the protocol's.
func TestStdioGuard(t *testing.T) {
	var stderr strings.Builder
	c := start(t, "noisy", &stderr)
	if err := c.WriteFrames([]byte("queued before the child runs")); err != nil {
		t.Fatal(err)
	}
	if frame, err := c.ReadFrame(); err != nil || string(frame) != "queued before the child runs" {
		t.Errorf("%s %v", frame, err)
	}
	c.Close()
	want := []string{"by fmt", "by log", "by os.Stdout"}
	if runtime.GOOS != "windows" {
		want = append(want, "by a child")
	}
	for _, w := range want {
		if !strings.Contains(stderr.String(), w+"\n") {
			t.Errorf("%q is not on standard error: %s", w, &stderr)
		}
	}
}

// TestClosedOutputIsAnError: a process whose reader is gone gets an error, not a
// signal.
func TestClosedOutputIsAnError(t *testing.T) {
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRANSPORT_TEST_CHILD=echo")
	cmd.Stdin, cmd.Stdout = inR, outW
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	outR.Close()
	inW.WriteString("into the void\n")
	cmd.Wait()
	inW.Close()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d (%v)", code, cmd.ProcessState)
	}
}

func TestWatchExecutable(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	path := filepath.Join(t.TempDir(), "program")
	if _, err := transport.WatchExecutable(ctx, path); err == nil {
		t.Error("a missing file is watched")
	}
	if err := os.WriteFile(path, []byte("old"), 0o700); err != nil {
		t.Fatal(err)
	}
	gone, err := transport.WatchExecutable(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	next := path + ".new"
	if err := os.WriteFile(next, []byte("new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the replacement was not noticed")
	}
}

// blockedWriter never gets anything written until it is released.
type blockedWriter struct {
	release chan struct{}
	written strings.Builder
}

func (b *blockedWriter) Write(p []byte) (int, error) {
	<-b.release
	return b.written.Write(p)
}

func TestLossyWriter(t *testing.T) {
	b := &blockedWriter{release: make(chan struct{})}
	l := transport.NewLossyWriter(b, 2)
	for range 100 {
		if n, err := fmt.Fprintln(l, "line"); n != 5 || err != nil {
			t.Fatalf("%d %v", n, err)
		}
	}
	close(b.release)
	<-l.Close()
	got := b.written.String()
	if lines := strings.Count(got, "line\n"); lines < 2 || lines > 3 || !strings.Contains(got, "log lines dropped") {
		t.Errorf("got %q", got)
	}
	l.Write([]byte("after Close"))
}
