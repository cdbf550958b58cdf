package transcripts

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/check"
	"fabro-mcp/conformance/transcript"
)

var freeze = flag.Bool("freeze", false, "write the digests of the sets into frozen.txt instead of comparing them")

func parseAll(t *testing.T) map[string]*transcript.Transcript {
	t.Helper()
	all := map[string]*transcript.Transcript{}
	for _, p := range Paths() {
		text, err := fs.ReadFile(FS(), p)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := transcript.Parse(p, text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all[p] = parsed
	}
	return all
}

// general leaves out the suite of our own program, which covers no requirement for
// anybody else and belongs to no revision's frozen set.
func general(t *testing.T) map[string]*transcript.Transcript {
	t.Helper()
	all := parseAll(t)
	maps.DeleteFunc(all, func(p string, _ *transcript.Transcript) bool { return strings.HasPrefix(p, "fabro/") })
	return all
}

func TestEveryTranscriptParsesAndNamesKnownRequirements(t *testing.T) {
	for p, parsed := range parseAll(t) {
		ids := map[string]bool{}
		for _, id := range parsed.Requirements {
			r, known := catalogue.Lookup(id)
			if !known {
				t.Errorf("%s: no requirement %s; the nearest is %s", p, id, catalogue.Nearest(id))
				continue
			}
			if ids[id] {
				t.Errorf("%s: %s is named twice", p, id)
			}
			ids[id] = true
			if !slices.ContainsFunc(playedAt(parsed), r.In) {
				t.Errorf("%s: %s holds in none of the revisions the file is played at", p, id)
			}
			if !r.Judged() {
				t.Errorf("%s: %s does not bind a server, or cannot be seen over stdio", p, id)
			}
		}
		if len(ids) == 0 {
			t.Errorf("%s names no requirement", p)
		}
		if dir := filepath.Dir(p); slices.Contains(catalogue.Revisions, dir) && parsed.Revisions[0] != dir {
			t.Errorf("%s: its oldest revision is %s; the file belongs there", p, parsed.Revisions[0])
		}
	}
}

// TestCoverage holds the suites to the aim: in every revision each MUST and each SHOULD that
// binds a server and can be seen over stdio. What the generic suite judges in Go
// and what no server can be made to show is listed with its reason.
func TestCoverage(t *testing.T) {
	transcripts := general(t)
	for _, revision := range catalogue.Revisions {
		covered := map[string]bool{}
		for _, tr := range transcripts {
			if slices.Contains(playedAt(tr), revision) {
				for _, id := range tr.Requirements {
					covered[id] = true
				}
			}
		}
		for id := range elsewhere {
			covered[id] = true
		}
		areas := catalogue.Coverage(revision, covered)
		must, should := catalogue.Total(areas)
		t.Logf("%s: MUST %d/%d, SHOULD %d/%d (%d %%)", revision, must.Covered, must.Total, should.Covered, should.Total, should.Percent())
		for _, a := range areas {
			for _, id := range a.MissingMust {
				t.Errorf("%s: no transcript for the MUST %s", revision, id)
			}
			for _, id := range a.MissingShould {
				t.Errorf("%s: no transcript for the SHOULD %s", revision, id)
			}
		}
	}
}

// playedAt returns the revisions that a transcript exercises: those it is played at and those
// it needs the server to speak as well.
func playedAt(tr *transcript.Transcript) []string {
	revisions := slices.Clone(tr.Revisions)
	for _, need := range tr.Needs {
		if need.Kind == transcript.NeedRevision {
			revisions = append(revisions, need.Name)
		}
	}
	return revisions
}

// elsewhere lists what is covered without a transcript naming it, and by what.
var elsewhere = map[string]string{
	"schema.dialect.valid":          "the generic suite compiles every listed schema in its dialect",
	"schema.ref.server-local":       "the generic suite walks every listed schema for references",
	"tools.x-mcp-header.unique":     "the generic suite compares the header names of a tool",
	"tools.x-mcp-header.reachable":  "the generic suite walks every input schema for header names",
	"tools.name.unique":             "the generic suite collects the names of all pages",
	"resources.resource.uri-unique": "the generic suite collects the uris of all pages",
}

func TestElsewhereIsNeeded(t *testing.T) {
	named := map[string]bool{}
	for _, tr := range parseAll(t) {
		for _, id := range tr.Requirements {
			named[id] = true
		}
	}
	for id, reason := range elsewhere {
		if _, known := catalogue.Lookup(id); !known || reason == "" || named[id] {
			t.Errorf("%s (%s): unknown, without a reason, or named by a transcript as well", id, reason)
		}
	}
}

// TestFrozen compares the digest of each revision's set with the one that was written down:
// a change to the transcripts of a revision is made on purpose, with -freeze.
func TestFrozen(t *testing.T) {
	transcripts := general(t)
	digests := map[string]string{}
	for _, revision := range catalogue.Revisions {
		var paths []string
		for p, tr := range transcripts {
			if slices.Contains(tr.Revisions, revision) {
				paths = append(paths, p)
			}
		}
		digest, err := catalogue.Digest(FS(), paths)
		if err != nil {
			t.Fatal(err)
		}
		digests[revision] = digest
	}
	if *freeze {
		var b strings.Builder
		b.WriteString("# The digest of the transcripts that are played at each revision; see TestFrozen.\n# Written by: go test ./conformance/transcripts -run TestFrozen -freeze\n")
		for _, revision := range catalogue.Revisions {
			fmt.Fprintf(&b, "%s %s\n", revision, digests[revision])
		}
		if err := os.WriteFile("frozen.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile("frozen.txt")
	if err != nil {
		t.Fatal(err)
	}
	frozen, err := catalogue.ParseFrozen(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for revision, digest := range digests {
		if frozen[revision] != digest {
			t.Errorf("the transcripts of %s changed: if that is meant, run: go test ./conformance/transcripts -run TestFrozen -freeze", revision)
		}
	}
}

func TestElsewhereIsJudgedByTheGenericSuite(t *testing.T) {
	judged := check.Requirements()
	for id := range elsewhere {
		if !slices.Contains(judged, id) {
			t.Errorf("nothing in conformance/check judges %s", id)
		}
	}
}
