// Package check is the part of the generic suite that a pattern cannot say: it
// looks at everything a server lists, whatever that is. The rest of the suite
// is the transcripts that need no fixture.
//
// Each check is one row of a table: the requirements it judges and a function
// over what the server offers. Nothing here calls a tool, since a stranger's
// tools may do anything; resources are read and prompts without required
// arguments are fetched.
package check

import (
	"fmt"
	"slices"
	"time"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/strictjson"
)

// Compile checks that a text is a valid JSON Schema in its dialect (2020-12
// when it names none). It is handed in because the library that can do so is
// the command's affair. Nothing is fetched from the network.
type Compile func(schema []byte) error

// problem is one broken rule.
type problem struct {
	rule    string
	message string
}

// suspect is what a check looks at.
type suspect struct {
	*runner.Offer
	session *runner.Session
	compile Compile
	found   []problem
}

func (s *suspect) broken(rule, format string, args ...any) {
	s.found = append(s.found, problem{rule, fmt.Sprintf(format, args...)})
}

// one is a row of the table.
type one struct {
	name  string
	title string
	rules []string
	needs func(*suspect) string // "" or why there is nothing to check
	run   func(*suspect)
}

var table = slices.Concat(listingChecks, toolChecks, resourceChecks, metaChecks)

// Requirements are the ids the table judges, for coverage.
func Requirements() []string {
	var out []string
	for _, c := range table {
		out = append(out, c.rules...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Inspect returns a function for runner.Config.Inspect.
func Inspect(compile Compile) func(*runner.Offer, *runner.Session) []*report.Case {
	return func(o *runner.Offer, session *runner.Session) []*report.Case {
		var out []*report.Case
		for _, c := range table {
			if k := c.judge(&suspect{Offer: o, session: session, compile: compile}); k != nil {
				out = append(out, k)
			}
		}
		return out
	}
}

// framesCheck is the first check; it takes what the judge found while the
// server was asked what it offers.
const framesCheck = "frames"

func (c *one) judge(s *suspect) *report.Case {
	k := &report.Case{Name: "check/" + c.name, Title: c.title, Revision: s.Revision}
	for _, id := range c.rules {
		if r, ok := catalogue.Lookup(id); ok && r.In(s.Revision) {
			k.Requirements = append(k.Requirements, id)
		}
	}
	if len(k.Requirements) == 0 {
		return nil // no rule about this in this revision
	}
	if c.needs != nil {
		if why := c.needs(s); why != "" {
			k.Outcome, k.Reason = report.NotCovered, why
			return k
		}
	}
	start := time.Now()
	before := len(s.session.Findings())
	if c.name == framesCheck {
		before = 0 // all that was seen until now, the listing itself
	}
	c.run(s)
	// Whatever the judge saw while this check talked belongs to it.
	k.Findings = append(k.Findings, s.session.Findings()[before:]...)
	for _, p := range s.found {
		if !slices.Contains(k.Requirements, p.rule) {
			continue // a rule of other revisions
		}
		r, _ := catalogue.Lookup(p.rule)
		f := report.Finding{Rule: p.rule, Level: string(r.Level), Text: r.Text, Source: r.Source, Revision: s.Revision, Message: p.message, Severity: report.Note}
		if r.Level.Mandatory() {
			f.Severity = report.Failure
		} else if r.Level.Advisory() {
			f.Severity = report.Warning
		}
		k.Findings = append(k.Findings, f)
	}
	k.Duration = time.Since(start)
	k.Settle()
	return k
}

// listed returns every listed thing of all kinds, with a name for messages.
func (s *suspect) listed() []thing {
	var out []thing
	add := func(kind, member string, all []*strictjson.Value) {
		for _, v := range all {
			out = append(out, thing{kind, v.Get(member).Str(), v})
		}
	}
	add("tool", "name", s.Tools)
	add("prompt", "name", s.Prompts)
	add("resource", "uri", s.Resources)
	add("resource template", "uriTemplate", s.Templates)
	return out
}

type thing struct {
	kind, name string
	value      *strictjson.Value
}

func (t thing) String() string { return fmt.Sprintf("%s %q", t.kind, t.name) }
