// Package rooms keeps the import rules of docs/architecture.md: which room of
// this module may import which other.
package rooms

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const module = "fabro-mcp"

// rules maps a room to the rooms it may import. A room covers the packages
// below it, and may always import those.
var rules = map[string][]string{
	"transport":           {},
	"internal/workflow":   {"internal/plural"},
	"fabroapi/wire":       {},
	"internal/hosts":      {"internal/atomicfile"},
	"internal/atomicfile": {},
	"conformance":         {},
	"protocol":            {"transport", "internal/plural"},
	"internal/mcpclient":  {"transport"},
	"fabroapi":            {"fabroapi/wire", "internal/workflow", "internal/atomicfile"},
	"tools/plain":         {"internal/plural"},
	"tools":               {"tools/plain", "protocol", "fabroapi", "fabroapi/wire", "internal/workflow", "internal/atomicfile", "internal/plural"},
	"internal/embedded":   {"fabroapi/wire", "internal/workflow", "internal/atomicfile", "internal/plural"},
	"cmd/fabro":           {"*"},
	"cmd/mcp-conformance": {"*"},
	"cmd/mcp-fixture":     {"*"},
	"internal/rooms":      {},
	"internal/plural":     {},
	"internal/openapi":    {},
	"internal/logs":       {"transport"},
	"internal/runs":       {"fabroapi", "fabroapi/wire", "tools/plain"},
	"scripts":             {"*"},
}

// roomOf finds the room of a package path: the longest rule that covers it.
func roomOf(pkg string) string {
	best := ""
	for room := range rules {
		if (pkg == room || strings.HasPrefix(pkg, room+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(pkg.ImportPath, module+"/")
		room := roomOf(path)
		if room == "" {
			t.Errorf("package %s belongs to no room: add it to the rules and to docs/architecture.md", path)
			continue
		}
		for _, imported := range pkg.Imports {
			target, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			to := roomOf(target)
			if to != room && !slices.Contains(rules[room], to) && !slices.Contains(rules[room], "*") {
				t.Errorf("%s imports %s: room %s may not import room %s", path, target, room, to)
			}
		}
	}
}

// TestArchitecture holds the table of docs/architecture.md against the rules.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| room | may import |\n|---|---|\n")
	if !ok {
		t.Fatal("docs/architecture.md has no table of imports")
	}
	documented := map[string][]string{}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		var may []string
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			may = append(may, m[1])
		}
		if strings.Contains(cells[2], "everything") {
			may = []string{"*"}
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			documented[m[1]] = may
		}
	}
	if diff := cmp.Diff(rules, documented, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("docs/architecture.md and the rules differ (-rules +page):\n%s", diff)
	}
}
