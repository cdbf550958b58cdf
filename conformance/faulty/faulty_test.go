package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"fabro-mcp/conformance/built"
	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

// programs is the directory of the built server, faulty.
var programs string

func TestMain(m *testing.M) { os.Exit(built.Main(m.Run, &programs, ".")) }

// patience bounds each wait. A fault that keeps a reply back costs it whole, several times over,
// so the first is short; what comes out wrong is tried again with more, since on a busy machine
// a right server is late as well. A true misjudgement stays one however long is waited.
var patience = []time.Duration{3 * time.Second, 15 * time.Second, time.Minute}

// everyFault is what each fault is run against beside the transcript that shows it: an
// ordinary session, ids, errors, notifications, the lists. A fault that breaks more than
// it says shows here.
var everyFault = []string{
	"2024-11-05/framing-session", "2024-11-05/method-not-found", "2024-11-05/tools-list", "2024-11-05/tool-unknown", "2024-11-05/ping",
	"2024-11-05/notification-with-id", "2026-07-28/capabilities-work", "2026-07-28/discover",
}

func load(t *testing.T, names ...string) []*transcript.Transcript {
	t.Helper()
	var all []*transcript.Transcript
	for _, name := range names {
		text, err := fs.ReadFile(transcripts.FS(), name+".txtar")
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := transcript.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed)
	}
	return all
}

func run(t *testing.T, fault string, revisions []string, jobs int, patience time.Duration, all []*transcript.Transcript) *report.Report {
	t.Helper()
	rep, err := runner.Run(context.Background(), runner.Config{
		Command:     []string{filepath.Join(programs, "faulty"), "-fault", fault},
		Transcripts: all, Revisions: revisions, Jobs: jobs, Timeout: patience, ExitGrace: patience / 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func tell(f report.Finding) string {
	return fmt.Sprintf("%s %s: %s (%s)", f.Severity, f.Rule, f.Message, f.StepText)
}

// TestWithoutAFault plays every transcript against the server as it is: nothing may be found.
func TestWithoutAFault(t *testing.T) {
	var names []string
	for _, p := range transcripts.Paths() {
		names = append(names, strings.TrimSuffix(p, ".txtar"))
	}
	rep := run(t, "", nil, 8, patience[len(patience)-1], load(t, names...))
	count := map[report.Outcome]int{}
	for _, c := range rep.Cases {
		count[c.Outcome]++
		for _, f := range c.Findings {
			t.Errorf("%s: %s", c.ID(), tell(f))
		}
	}
	t.Logf("%v", count)
	if count[report.Pass] < 200 {
		t.Errorf("only %d cases passed: the server offers too little to prove anything by", count[report.Pass])
	}
}

// TestEachFaultIsCaught runs the suite against each fault: the requirement that it breaks is
// found, and what else is found stands in its list of consequences.
func TestEachFaultIsCaught(t *testing.T) {
	if len(faults) < 60 {
		t.Errorf("%d faults", len(faults))
	}
	// The faults wait more than they work: several are run at once, and judged in order.
	found := make([]map[string][]string, len(faults))
	var group errgroup.Group
	group.SetLimit(8)
	for i, f := range faults {
		group.Go(func() error {
			names := everyFault
			if f.shown != "" && !slices.Contains(names, f.shown) {
				names = append([]string{f.shown}, names...)
			}
			for _, p := range patience {
				found[i] = findings(run(t, f.name, []string{f.at}, 3, p, load(t, names...)))
				if len(misjudged(f, found[i])) == 0 {
					break
				}
			}
			return nil
		})
	}
	_ = group.Wait() // they report through t
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) { judge(t, f, found[i]) })
	}
}

// findings gathers what was found by the rule that it breaks.
func findings(rep *report.Report) map[string][]string {
	found := map[string][]string{}
	for _, c := range rep.Cases {
		for _, finding := range c.Findings {
			if finding.Severity != report.Note {
				found[finding.Rule] = append(found[finding.Rule], c.Name+": "+tell(finding))
			}
		}
	}
	return found
}

// misjudged says what differs between what was found and what the fault declares.
func misjudged(f fault, found map[string][]string) []string {
	var wrong []string
	if found[f.breaks] == nil {
		wrong = append(wrong, f.breaks+" was not found broken")
	}
	for _, rule := range slices.Sorted(maps.Keys(found)) {
		if rule != f.breaks && !slices.Contains(f.also, rule) {
			wrong = append(wrong, fmt.Sprintf("%s is no declared consequence:\n\t%s", rule, strings.Join(found[rule], "\n\t")))
		}
	}
	for _, rule := range f.also {
		if found[rule] == nil {
			wrong = append(wrong, "the consequence "+rule+" did not show")
		}
	}
	return wrong
}

func judge(t *testing.T, f fault, found map[string][]string) {
	if _, ok := catalogue.Lookup(f.breaks); !ok {
		t.Fatalf("no requirement %s", f.breaks)
	}
	for _, wrong := range misjudged(f, found) {
		t.Error(wrong)
	}
}
