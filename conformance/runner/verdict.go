package runner

import (
	"fmt"
	"strings"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/judge"
	"fabro-mcp/conformance/report"
)

// applicable keeps the requirement ids that hold at a revision; ids the
// catalogue does not know are kept.
func applicable(ids []string, revision string) []string {
	var out []string
	for _, id := range ids {
		if r, ok := catalogue.Lookup(id); !ok || r.In(revision) {
			out = append(out, id)
		}
	}
	return out
}

// weigh picks the strongest rule among those that hold, and what breaking it
// means. Without any rule, or with one the catalogue does not know, it is a
// failure: a transcript states what must be.
func weigh(ids []string, revision string, should bool) (id string, severity report.Severity) {
	severity = report.Failure
	best := -1
	for _, candidate := range applicable(ids, revision) {
		strength, s := 3, report.Failure
		if r, ok := catalogue.Lookup(candidate); ok && r.Level.Advisory() {
			strength, s = 2, report.Warning
		} else if ok && !r.Level.Mandatory() {
			strength, s = 1, report.Note
		}
		if strength > best {
			best, id, severity = strength, candidate, s
		}
	}
	if should && severity == report.Failure {
		severity = report.Warning
	}
	return id, severity
}

// describe fills in what the catalogue says about a rule.
func describe(f *report.Finding) {
	if r, ok := catalogue.Lookup(f.Rule); ok {
		f.Level, f.Text, f.Source = string(r.Level), r.Text, r.Source
	}
}

// fromJudge turns a finding of the judge into one of the report. Where no rule
// holds at the revision in question there is nothing to report.
func fromJudge(j judge.Finding) (report.Finding, bool) {
	for _, id := range j.Rules {
		r, ok := catalogue.Lookup(id)
		if !ok || !r.In(j.Revision) {
			continue
		}
		f := report.Finding{Rule: id, Revision: j.Revision, Message: j.Message}
		_, f.Severity = weigh([]string{id}, j.Revision, j.Advice)
		describe(&f)
		return f, true
	}
	return report.Finding{}, false
}

// maxSame bounds how often one rule is reported in one case.
const maxSame = 3

// add appends a finding, or counts it where the rule was reported often.
func (p *player) add(f report.Finding, wire []report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := 0
	for _, other := range p.c.Findings {
		if other.Rule == f.Rule && other.Step == "" && f.Step == "" {
			same++
		}
	}
	if same >= maxSame {
		return
	}
	f.Wire = wire
	p.c.Findings = append(p.c.Findings, f)
}

// abbreviate shortens a line for people.
func abbreviate(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(line[:limit], ""), len(line))
}
