// Package report is what a run of the harness found, as data, and the forms in
// which it is told: text for people, JSON, JUnit, TAP and SARIF for machines.
// It depends on nothing but the catalogue's words, so that a report can be
// written, read and compared without running anything.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Outcome is the verdict on one transcript at one revision.
type Outcome string

// The outcomes. A broken MUST fails, a broken SHOULD warns; a missing fixture
// makes a case untestable; what a server does not offer is not covered.
const (
	Pass       Outcome = "pass"
	Fail       Outcome = "fail"
	Warn       Outcome = "warn"
	Untestable Outcome = "untestable"
	NotCovered Outcome = "not covered"
)

// Outcomes lists all, in the order they are counted in.
var Outcomes = []Outcome{Pass, Fail, Warn, Untestable, NotCovered}

// Severity says how much a finding weighs.
type Severity string

// A failure breaks a MUST, a warning a SHOULD; a note binds nobody.
const (
	Failure Severity = "failure"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is one thing that was seen to be wrong.
type Finding struct {
	Rule     string   `json:"rule,omitempty"`  // requirement id
	Level    string   `json:"level,omitempty"` // its keyword
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`               // what happened, with the values
	Text     string   `json:"requirement,omitempty"` // the rule in our words
	Source   string   `json:"source,omitempty"`      // page and section of the specification
	Revision string   `json:"revision,omitempty"`    // the revision in force for what was judged
	Step     string   `json:"step,omitempty"`        // file:line:column of the step, if one looked
	StepText string   `json:"step_text,omitempty"`

	Differences []Difference `json:"differences,omitempty"` // where what came is not what was expected
	Wire        []Event      `json:"wire,omitempty"`        // the exchange around it
}

// Difference is one place of a message that is not as expected. Both sides are
// JSON, or a phrase where no single value was expected; "nothing" is absence.
type Difference struct {
	Path     string `json:"path"` // such as result.tools[0].name; "" is the whole message
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Place is the path in words.
func (d Difference) Place() string { return cmp.Or(d.Path, "the message") }

func (d Difference) String() string {
	return fmt.Sprintf("%s: expected %s, got %s", d.Place(), d.Expected, d.Got)
}

// Event is one thing that passed between harness and server.
type Event struct {
	At      time.Duration `json:"at_ns"` // since the process started
	Process string        `json:"process,omitempty"`
	Dir     string        `json:"dir"`  // ">" to the server, "<" from it, "!" stderr, "*" the harness
	Text    string        `json:"text"` // a line without its newline, abbreviated when long
}

// Case is one transcript, or one check, at one revision.
type Case struct {
	Name         string        `json:"name"` // suite-relative path without extension
	Path         string        `json:"path,omitempty"`
	Title        string        `json:"title"`
	Revision     string        `json:"revision"`
	Requirements []string      `json:"requirements,omitempty"`
	Outcome      Outcome       `json:"outcome"`
	Reason       string        `json:"reason,omitempty"` // why untestable or not covered
	Findings     []Finding     `json:"findings,omitempty"`
	Duration     time.Duration `json:"duration_ns"`
	Expected     bool          `json:"expected_failure,omitempty"` // by the baseline
	Wire         []Event       `json:"wire,omitempty"`             // with --verbose
}

// ID names a case in a baseline and in reports: name@revision.
func (c *Case) ID() string { return c.Name + "@" + c.Revision }

// Report is one run.
type Report struct {
	Tool     string        `json:"tool"`
	Command  []string      `json:"command"`
	Server   string        `json:"server,omitempty"` // name and version as it says itself
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Spoken   []string      `json:"revisions_spoken"` // revisions the server answered to
	Cases    []*Case       `json:"cases"`
	Stale    []string      `json:"stale_baseline_entries,omitempty"`
	Aborted  string        `json:"aborted,omitempty"` // why the run ended early

	ShortWaits []ShortWaits `json:"short_waits,omitempty"`
}

// ShortWaits says what was not waited for in full any more, since it had not come in
// some full waits before, and did not come.
type ShortWaits struct {
	For   string `json:"for"`
	Waits int    `json:"waits"` // that were shortened
	After int    `json:"after"` // full waits in vain
}

// Count counts the cases by outcome. Expected failures are counted apart.
func (r *Report) Count() (byOutcome map[Outcome]int, expected int) {
	byOutcome = map[Outcome]int{}
	for _, c := range r.Cases {
		if c.Expected {
			expected++
			continue
		}
		byOutcome[c.Outcome]++
	}
	return byOutcome, expected
}

// Exit codes of the command.
const (
	ExitGood       = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitUntestable = 3
)

// ExitCode is 1 when something failed, a baseline entry is stale, the run was
// cut short, or (strict) something warned; 3 when nothing failed but a fixture
// was missing; else 0.
func (r *Report) ExitCode(strict bool) int {
	n, _ := r.Count()
	switch {
	case n[Fail] > 0 || len(r.Stale) > 0 || r.Aborted != "" || strict && n[Warn] > 0:
		return ExitFailed
	case n[Untestable] > 0:
		return ExitUntestable
	}
	return ExitGood
}

// Settle derives a case's outcome from its findings.
func (c *Case) Settle() {
	c.Outcome = Pass
	for _, f := range c.Findings {
		switch {
		case f.Severity == Failure:
			c.Outcome = Fail
		case f.Severity == Warning && c.Outcome == Pass:
			c.Outcome = Warn
		}
	}
}

// Broken lists the ids of the rules that failures and warnings name, sorted.
func (c *Case) Broken() []string {
	var out []string
	for _, f := range c.Findings {
		if f.Rule != "" && f.Severity != Note && !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return out
}

// Covered returns, for a revision, the requirement ids that cases with a
// verdict (pass, warn or fail) exercised.
func (r *Report) Covered(revision string) map[string]bool {
	out := map[string]bool{}
	for _, c := range r.Cases {
		if c.Revision != revision || c.Outcome == Untestable || c.Outcome == NotCovered {
			continue
		}
		for _, id := range c.Requirements {
			out[id] = true
		}
	}
	return out
}
