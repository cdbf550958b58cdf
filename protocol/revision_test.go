package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fabro-mcp/transport"
)

// invented is the row of docs/adding-a-revision.md, which shows the lines between
// the marks.
func invented() *revision {
	return /* row */ &revision{
		name:             "2099-01-01",
		features:         features2026_07_28 &^ featListen,
		resourceNotFound: CodeInvalidParams,
	} /* row */
}

// TestAddingARevision adds a row to the table, and nothing else, and speaks it.
func TestAddingARevision(t *testing.T) {
	before := revisions
	defer func() { revisions = before }()
	revisions = append(revisions[:len(revisions):len(revisions)], invented())

	s := &Server{Info: Implementation{Name: "t", Version: "1"}, Tools: []Tool{{
		Name: "which", InputSchema: json.RawMessage(`{"type":"object"}`),
		Call: func(_ context.Context, c *ToolCall) (*ToolResult, error) {
			return &ToolResult{Content: []Content{Text(c.Revision())}}, nil
		},
	}}}
	ours, theirs := transport.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), theirs) }()
	ask := func(revision, method, members string) string {
		t.Helper()
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{%q:%q,%q:{}}}}`, method, members, metaVersion, revision, metaClientCaps)
		if err := ours.WriteFrames([]byte(line)); err != nil {
			t.Fatal(err)
		}
		frame, err := ours.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		return string(frame)
	}
	for _, c := range []struct{ revision, method, members, want string }{
		{"2099-01-01", "tools/call", `"name":"which",`, `"text":"2099-01-01"`},
		{"2026-07-28", "tools/call", `"name":"which",`, `"text":"2026-07-28"`},
		{"2099-01-01", "server/discover", "", `"supportedVersions":["2099-01-01","2026-07-28",`},
		{"2099-01-01", "tools/list", "", `"resultType":"complete"`},
		{"2099-01-01", "subscriptions/listen", `"notifications":{},`, `"code":-32601`},
		{"2099-01-02", "tools/list", "", `"supported":["2099-01-01","2026-07-28",`},
		{"2025-06-18", "tools/list", "", `"supported":["2099-01-01","2026-07-28"]`},
	} {
		if got := ask(c.revision, c.method, c.members); !strings.Contains(got, c.want) {
			t.Errorf("%s in %s: %s", c.method, c.revision, got)
		}
	}
	ours.CloseWrite()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPagesAreTrue: the page shows the row that is tried, and the table of
// combinations names every subtest.
func TestPagesAreTrue(t *testing.T) {
	source, err := os.ReadFile("revision_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(source), "return /* row */ ")
	row, _, _ = strings.Cut(row, " /* row */")
	page, err := os.ReadFile("../docs/adding-a-revision.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if !strings.Contains(plain(string(page)), plain(row)) {
		t.Errorf("docs/adding-a-revision.md does not show the row\n%s", row)
	}
	table, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[int]bool{}
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for part := range strings.SplitSeq(cells[1], ",") {
			var from, to int
			if n, _ := fmt.Sscanf(strings.TrimSpace(part), "%d–%d", &from, &to); n == 1 {
				to = from
			}
			for i := from; i > 0 && i <= to; i++ {
				named[i] = true
			}
		}
	}
	for i := 1; i <= 71; i++ {
		if !named[i] {
			t.Errorf("docs/protocol.md has no row %d", i)
		}
	}
}

// comparesRevision finds the revision of a request beside a comparison.
var comparesRevision = regexp.MustCompile(`\bRevision\(\) *(<|>|==|!=)|(<|>|<=|>=|==|!=) *[\w.]+\.Revision\(\)`)

// TestRevisionsAreNamedOnce: outside the table no code knows the name of a
// revision, or compares it; what is built on this package asks an Exchange.
func TestRevisionsAreNamedOnce(t *testing.T) {
	seen := map[string]int{}
	for _, room := range []string{".", "../tools", "../cmd/fabro"} {
		err := filepath.WalkDir(room, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || file == "revision.go" || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			seen[room]++
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, r := range revisions {
				if bytes.Contains(source, []byte(`"`+r.name+`"`)) || bytes.Contains(source, []byte("`"+r.name+"`")) {
					t.Errorf("%s knows %s: make what it is about a feature of the table in protocol/revision.go", file, r.name)
				}
			}
			if found := comparesRevision.Find(source); found != nil {
				t.Errorf("%s compares revisions (%s): let the Exchange answer what it wants to know", file, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if seen[room] == 0 {
			t.Errorf("no source in %s", room)
		}
	}
}
