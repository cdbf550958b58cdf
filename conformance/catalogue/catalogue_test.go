package catalogue

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestTheCatalogueIsWhole(t *testing.T) {
	all := All()
	if len(all) < 835 {
		t.Errorf("the catalogue has %d rows; it started with 835 and no row is ever taken out", len(all))
	}
	perRevision := map[string]int{}
	for _, r := range all {
		for _, revision := range r.Revisions {
			perRevision[revision]++
		}
		if got, ok := Lookup(r.ID); !ok || got.Text != r.Text {
			t.Errorf("Lookup(%q) does not find its row", r.ID)
		}
	}
	for _, revision := range Revisions {
		if perRevision[revision] == 0 {
			t.Errorf("no requirement holds in %s", revision)
		}
	}
}

func TestParseRefusesABrokenTable(t *testing.T) {
	row := "a.b\tMUST\tarea\ty\t-\t-\t-\ty\tserver\ty\ttext\tsource\thow\n"
	for name, tc := range map[string]struct{ text, want string }{
		"header":        {"id\tlevel\n" + row, "line 1: the header"},
		"columns":       {header + "\na.b\tMUST\n", "line 2: 2 columns"},
		"twice":         {header + "\n" + row + row, "line 3: id a.b is already on line 2"},
		"level":         {header + "\n" + strings.Replace(row, "MUST", "OUGHT", 1), `level "OUGHT"`},
		"role":          {header + "\n" + strings.Replace(row, "server", "host", 1), `role "host"`},
		"mark":          {header + "\n" + strings.Replace(row, "-", "?", 1), `"?" marks a revision`},
		"empty text":    {header + "\n" + strings.Replace(row, "text", "", 1), "an empty column"},
		"testable":      {header + "\n" + strings.Replace(row, "server\ty", "server\tz", 1), `stdio_testable "z"`},
		"holds nowhere": {header + "\n" + strings.Replace(row, "y\t-\t-\t-\ty", "-\t-\t-\t-\t-", 1), "holds in no revision"},
	} {
		if _, err := parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for given, want := range map[string]string{
		"framing.utf-8":          "framing.utf8",
		"jsonrpc.id.echo":        "jsonrpc.id.echoed",
		"nothing like it at all": "",
	} {
		if got := Nearest(given); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestCoverageCountsWhatBindsAServer(t *testing.T) {
	covered := map[string]bool{"framing.utf8": true, "framing.newline-delimited": true, "framing.client-stdin-only-mcp": true}
	var framing AreaCoverage
	for _, a := range Coverage("2024-11-05", covered) {
		if a.Area == "framing" {
			framing = a
		}
	}
	// framing.utf8 does not hold in 2024-11-05 and the third id binds clients.
	if framing.Must.Covered != 1 {
		t.Errorf("covered MUSTs of framing in 2024-11-05: %d, want 1", framing.Must.Covered)
	}
	if len(framing.MissingMust) != framing.Must.Total-1 {
		t.Errorf("%d missing of %d, one covered", len(framing.MissingMust), framing.Must.Total)
	}
	var out bytes.Buffer
	if err := WriteCoverage(&out, "", covered); err != nil || !strings.Contains(out.String(), "framing") {
		t.Errorf("WriteCoverage: %v\n%s", err, out.String())
	}
	if diff := cmp.Diff([]string{"no.such.id"}, Unknown(map[string]bool{"no.such.id": true, "framing.utf8": true})); diff != "" {
		t.Errorf("Unknown (-want +got):\n%s", diff)
	}
}

func TestDigestSeesEveryChange(t *testing.T) {
	digest := func(files map[string]string) string {
		fsys, paths := fstest.MapFS{}, []string{}
		for name, content := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(content)}
			paths = append(paths, name)
		}
		d, err := Digest(fsys, paths)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(map[string]string{"r/a.txt": "one", "r/b.txt": "two"})
	for name, changed := range map[string]map[string]string{
		"content": {"r/a.txt": "one!", "r/b.txt": "two"},
		"name":    {"r/a.txt": "one", "r/c.txt": "two"},
		"moved":   {"r/a.txt": "onet", "r/b.txt": "wo"},
		"gone":    {"r/a.txt": "one"},
	} {
		if digest(changed) == base {
			t.Errorf("%s: the digest did not change", name)
		}
	}
	if _, err := Digest(fstest.MapFS{}, []string{"missing.txt"}); err == nil {
		t.Error("a missing file has a digest")
	}
	frozen, err := ParseFrozen("# why\n\n2024-11-05 " + base + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"2024-11-05": base}, frozen); diff != "" {
		t.Errorf("ParseFrozen (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"2024-11-05", "a b", "a " + base + "\na " + base} {
		if _, err := ParseFrozen(bad); err == nil {
			t.Errorf("ParseFrozen(%q) succeeded", bad)
		}
	}
}
