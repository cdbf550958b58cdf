package logs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fabro-mcp/internal/logs"
)

// A reader that reads nothing must cost a bounded amount of memory and no time.
func TestQueueNeverBlocks(t *testing.T) {
	r, w := io.Pipe() // unbuffered: the first write waits for a reader
	q := logs.NewQueue(w)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 10_000 {
		if n, err := q.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	q.Close() // returns although nothing was read
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r)
		got <- all
	}()
	// The writing goroutine goes on now that there is a reader.
	q2 := logs.NewQueue(io.Discard)
	q2.Close()
	r.Close()
	if all := <-got; len(all) > 600<<10 {
		t.Errorf("%d bytes had been kept for a reader that read nothing", len(all))
	}
}

func TestQueueSaysWhatItDropped(t *testing.T) {
	var buf bytes.Buffer
	q := logs.NewQueue(&buf)
	q.Write(make([]byte, 1<<20))
	q.Write([]byte("last\n"))
	q.Close()
	if got := buf.String(); !strings.Contains(got, "last\n") || !strings.Contains(got, "1 log lines were dropped") {
		t.Errorf("log = %q", got)
	}
}

func TestNew(t *testing.T) {
	if _, _, err := logs.New(logs.Options{Level: "loud"}); err == nil || !strings.Contains(err.Error(), "debug") {
		t.Errorf("unknown level: %v", err)
	}
	var stderr bytes.Buffer
	file := filepath.Join(t.TempDir(), "fabro.log")
	log, flush, err := logs.New(logs.Options{Level: "debug", File: file, Stderr: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	log.With("a", 1).WithGroup("g").Debug("small", "b", 2)
	log.Error("grave")
	flush()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"small", "a=1", "g.b=2", "grave"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	if got := stderr.String(); !strings.Contains(got, "grave") || strings.Contains(got, "small") {
		t.Errorf("stderr = %q; want only the error", got)
	}
}
