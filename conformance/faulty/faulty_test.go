package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

// serverWord as the first argument makes the test binary be the server, with the fault that
// the second one names. No variable says so: some transcripts start it without an environment.
const serverWord = "be-the-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == serverWord {
		serve(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

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

func run(t *testing.T, fault string, revisions []string, all []*transcript.Transcript) *report.Report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := runner.Run(context.Background(), runner.Config{
		Command:     []string{self, serverWord, fault},
		Transcripts: all, Revisions: revisions, Timeout: 4 * time.Second, ExitGrace: 300 * time.Millisecond,
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
	rep := run(t, "", nil, load(t, names...))
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
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if _, ok := catalogue.Lookup(f.breaks); !ok {
				t.Fatalf("no requirement %s", f.breaks)
			}
			names := everyFault
			if f.shown != "" && !slices.Contains(names, f.shown) {
				names = append([]string{f.shown}, names...)
			}
			rep := run(t, f.name, []string{f.at}, load(t, names...))
			found := map[string][]string{}
			for _, c := range rep.Cases {
				for _, finding := range c.Findings {
					if finding.Severity != report.Note {
						found[finding.Rule] = append(found[finding.Rule], c.Name+": "+tell(finding))
					}
				}
			}
			if found[f.breaks] == nil {
				t.Errorf("%s was not found broken", f.breaks)
			}
			rules := make([]string, 0, len(found))
			for rule := range found {
				rules = append(rules, rule)
			}
			sort.Strings(rules)
			for _, rule := range rules {
				if rule != f.breaks && !slices.Contains(f.also, rule) {
					t.Errorf("%s is no declared consequence:\n\t%s", rule, strings.Join(found[rule], "\n\t"))
				}
			}
			for _, rule := range f.also {
				if found[rule] == nil {
					t.Errorf("the consequence %s did not show", rule)
				}
			}
		})
	}
}
