package plural_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fabro-mcp/internal/plural"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 runs": plural.Count(0, "run"), "1 run": plural.Count(1, "run"), "2 runs": plural.Count(int64(2), "run"),
		"1 entry": plural.Count(1, "entry", "entries"), "3 entries": plural.Count(3, "entry", "entries"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// counted are the things whose number varies and is told to people. Limits are
// written out: they are constants, and more than one.
const counted = `run|stage|node|edge|event|workflow|question|call|error|warning|match|entr|transcript|child`

// TestNobodyElseCounts finds numbers that would read "1 runs" or "1 run(s)".
func TestNobodyElseCounts(t *testing.T) {
	bad := regexp.MustCompile(`%d (?:[a-zA-Z]+ )?(?:` + counted + `)(?:s|es|ies|ren)\b|\b(?:` + counted + `)\((?:s|es)\)`)
	// What is said of a limit, or of a number that cannot be 1.
	fine := regexp.MustCompile(`(?:more than|at most|must name 1 to|sends? up to|Only) %d |%d exit nodes|the run asks %d|has %d open questions|has %d freeform edges|has %d errors`)
	for _, room := range []string{"cmd", "tools", "internal", "fabroapi"} {
		err := filepath.WalkDir(filepath.Join("../..", room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range bytes.Split(text, []byte("\n")) {
				if bad.Match(line) && !fine.Match(line) {
					t.Errorf("%s:%d: use plural.Count: %s", path, i+1, bytes.TrimSpace(line))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
