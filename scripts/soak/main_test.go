package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The short form of `make soak`.
func TestSoak(t *testing.T) {
	fixture := filepath.Join(t.TempDir(), "mcp-fixture")
	if out, err := exec.Command("go", "build", "-race", "-o", fixture, "fabro-mcp/cmd/mcp-fixture").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// The race detector's own memory grows at first; the long form is about memory.
	if err := soak(20_000, 1, 10, []string{fixture}); err != nil {
		t.Fatal(err)
	}
}
