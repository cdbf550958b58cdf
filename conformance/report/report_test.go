package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() *Report {
	return &Report{
		Tool: "mcp-conformance", Command: []string{"server"}, Server: "s 1",
		Cases: []*Case{
			{Name: "a/ok", Title: "fine", Revision: "2025-11-25", Outcome: Pass, Requirements: []string{"jsonrpc.id.echoed"}},
			{Name: "a/bad", Path: "a/bad.txtar", Title: "broken # \x00", Revision: "2025-11-25", Outcome: Fail, Findings: []Finding{{
				Rule: "jsonrpc.id.echoed", Level: "MUST", Severity: Failure, Message: "the id \x1b[31m came back wrong", Step: "a/bad.txtar:7:3", Differences: []Difference{{Path: "id", Expected: "1", Got: "2"}},
			}}},
			{Name: "a/warned", Title: "so so", Revision: "2026-07-28", Outcome: Warn, Findings: []Finding{{Rule: "x.y", Severity: Warning, Message: "m"}}},
			{Name: "a/missing", Title: "no fixture", Revision: "2026-07-28", Outcome: Untestable, Reason: "missing fixture: tool x"},
			{Name: "a/absent", Title: "no feature", Revision: "2026-07-28", Outcome: NotCovered, Reason: "no prompts"},
		},
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		drop   string
		strict bool
		want   int
	}{{"a failure", "", false, 1}, {"a missing fixture", "a/bad", false, 3}, {"a warning when strict", "a/bad", true, 1}} {
		r := sample()
		for i, k := range r.Cases {
			if k.Name == c.drop {
				r.Cases = append(r.Cases[:i], r.Cases[i+1:]...)
				break
			}
		}
		if got := r.ExitCode(c.strict); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := (&Report{Aborted: "x"}).ExitCode(false); got != 1 {
		t.Errorf("an aborted run: %d", got)
	}
}

func TestBaseline(t *testing.T) {
	for _, c := range []struct {
		name, file string
		expected   []string
		stale      []string
	}{
		{"whole", "server:\n  - a/bad\n", []string{"a/bad"}, nil},
		{"at a revision", "server:\n  - a/bad@2025-11-25\n  - a/ok@2026-07-28\n", []string{"a/bad"}, nil},
		{"by rule", "server: ['a/bad:jsonrpc.id.echoed']", []string{"a/bad"}, nil},
		{"another rule", "server: ['a/bad:framing.utf8']", nil, []string{"a/bad:framing.utf8"}},
		{"stale", "server: [a/ok, a/bad]\nclient: []", []string{"a/bad"}, []string{"a/ok"}},
		{"a warning counts as failing", "server: [a/warned]", []string{"a/warned"}, nil},
		{"not played is tolerated", "server: [a/missing, a/absent, no/such]", nil, nil},
	} {
		b, err := ParseBaseline([]byte(c.file))
		if err != nil {
			t.Fatal(c.name, err)
		}
		r := sample()
		b.Apply(r)
		var expected []string
		for _, k := range r.Cases {
			if k.Expected {
				expected = append(expected, k.Name)
			}
		}
		if diff := cmp.Diff(c.expected, expected) + cmp.Diff(c.stale, r.Stale); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for _, bad := range []string{"servers: []", "server: [a, a]", "server: [a, 'a:b']", "server: {}"} {
		if _, err := ParseBaseline([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestFormatsAreWellFormed reads each format with a reader of its own.
func TestFormatsAreWellFormed(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil || suites.Tests != 5 || suites.Failures != 1 || suites.Skipped != 2 {
		t.Errorf("%v %+v\n%s", err, suites, b.String())
	}
	b.Reset()
	if err := WriteSARIF(&b, r); err != nil {
		t.Fatal(err)
	}
	var sarif struct {
		Runs []struct {
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						Region struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &sarif); err != nil {
		t.Fatal(err)
	}
	first := sarif.Runs[0].Results[0]
	if first.RuleID != "jsonrpc.id.echoed" || first.Level != "error" || first.Locations[0].PhysicalLocation.Region.StartLine != 7 {
		t.Errorf("%+v", first)
	}
	b.Reset()
	if err := WriteTAP(&b, r); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "1..5\n") || !strings.Contains(text, `not ok 2 - a/bad@2025-11-25 broken \# `) || strings.Count(text, "# SKIP") != 2 {
		t.Error(text)
	}
	b.Reset()
	if err := WriteText(&b, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "FAIL  s 1: 1 failed, 1 warned, 1 passed, 1 untestable, 1 not covered in 0.0s") {
		t.Error(text)
	}
}
