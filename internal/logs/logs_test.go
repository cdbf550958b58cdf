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

// A reader that reads nothing costs no time, neither at a line nor at the end.
func TestUnreadStderr(t *testing.T) {
	r, w := io.Pipe() // unbuffered: the first write waits for a reader
	defer r.Close()
	log, flush, err := logs.New(logs.Options{Stderr: w})
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		log.Error("nobody reads this")
	}
	flush()
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
