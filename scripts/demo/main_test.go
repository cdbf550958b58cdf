package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The demo goes well, leaves nothing behind, and the README shows what it prints.
func TestDemo(t *testing.T) {
	fabro := filepath.Join(t.TempDir(), "fabro")
	if out, err := exec.Command("go", "build", "-o", fabro, "fabro-mcp/cmd/fabro").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var story bytes.Buffer
	if err := play(t.Context(), &story, fabro, "../../examples/release"); err != nil {
		t.Fatalf("%v\n%s", err, story.Bytes())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, excerpt, _ := strings.Cut(string(readme), "<!-- demo:begin")
	_, excerpt, _ = strings.Cut(excerpt, "-->\n")
	excerpt, _, ok := strings.Cut(excerpt, "<!-- demo:end -->")
	if !ok {
		t.Fatal("the README has no excerpt of the demo")
	}
	rest := story.String()
	for line := range strings.Lines(excerpt) {
		// Which progress comes depends on when the run is looked at.
		if !strings.HasPrefix(line, " ") || strings.HasPrefix(line, "     … ") {
			continue
		}
		pattern := regexp.QuoteMeta(strings.TrimRight(line, "\n"))
		pattern = strings.ReplaceAll(pattern, "RUN", "[0-9A-Z]{26}")
		pattern = strings.ReplaceAll(pattern, "…", ".*")
		pattern = regexp.MustCompile(`(waited|after) \d+`).ReplaceAllString(pattern, `$1 \d+`)
		at := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("the README shows a line that the demo does not print there:\n%s\nthe rest of the demo:\n%s", line, rest)
		}
		rest = rest[at[1]:]
	}
}
