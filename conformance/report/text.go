package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"fabro-mcp/conformance/catalogue"
)

// TextOptions says how much a person wants to read.
type TextOptions struct {
	Color   bool
	Verbose bool // every case and the whole exchange
	Strict  bool // warnings fail
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

func (o TextOptions) paint(color, text string) string {
	if !o.Color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// marks are the words a case is introduced with, and their colours.
var marks = map[Outcome][2]string{
	Pass: {"pass", green}, Fail: {"FAIL", red}, Warn: {"warn", yellow}, Untestable: {"untestable", yellow}, NotCovered: {"not covered", dim},
}

// WriteText tells a person what was found: the findings, what could not be
// tested and why, coverage, and last the verdict.
func WriteText(w io.Writer, r *Report, o TextOptions) error {
	var b strings.Builder
	for _, c := range r.Cases {
		writeCase(&b, c, o)
	}
	writeBroken(&b, r, o)
	writeReasons(&b, r, o)
	for _, s := range r.ShortWaits {
		fmt.Fprintf(&b, "%s waits for %s: %d (nothing had come in %d full ones)\n", o.paint(yellow, "shortened"), printable(s.For), s.Waits, s.After)
	}
	writeCoverage(&b, r)
	for _, e := range r.Stale {
		fmt.Fprintf(&b, "%s the baseline entry %s: this passes now, take it out\n", o.paint(red, "stale"), e)
	}
	writeVerdict(&b, r, o)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCase(b *strings.Builder, c *Case, o TextOptions) {
	if !o.Verbose && (c.Expected || c.Outcome != Fail && c.Outcome != Warn) {
		return
	}
	mark := marks[c.Outcome]
	suffix := ""
	if c.Expected {
		suffix = " (expected by the baseline)"
	}
	fmt.Fprintf(b, "%s %s  %s%s\n", o.paint(mark[1], mark[0]), o.paint(bold, c.ID()), c.Title, suffix)
	if c.Reason != "" {
		fmt.Fprintf(b, "  %s\n", c.Reason)
	}
	for i := range c.Findings {
		writeFinding(b, &c.Findings[i], o)
	}
	if o.Verbose && len(c.Wire) > 0 {
		writeWire(b, "the whole exchange", c.Wire, o)
	}
}

func writeFinding(b *strings.Builder, f *Finding, o TextOptions) {
	if f.Rule != "" {
		color := yellow
		if f.Severity == Failure {
			color = red
		}
		fmt.Fprintf(b, "  %s %s", o.paint(color, strings.TrimSpace(f.Level+" "+f.Rule)), cmp.Or(f.Text, "is not in the catalogue of requirements"))
		if f.Source != "" {
			fmt.Fprintf(b, " %s", o.paint(dim, "["+f.Source+"]"))
		}
		b.WriteByte('\n')
	}
	if f.Step != "" {
		fmt.Fprintf(b, "  %s  %s\n", o.paint(dim, f.Step), f.StepText)
	}
	fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(printable(f.Message), "\n", "\n    "))
	writeDifferences(b, f.Differences, o)
	if len(f.Wire) > 0 && !o.Verbose {
		writeWire(b, "the exchange before", f.Wire, o)
	}
}

// maxDifferences is how many a person is shown; the JSON report has all.
const maxDifferences = 10

func writeDifferences(b *strings.Builder, all []Difference, o TextOptions) {
	for i, d := range all {
		if i == maxDifferences {
			fmt.Fprintf(b, "    and %d more differences\n", len(all)-i)
			return
		}
		fmt.Fprintf(b, "    %s\n      expected  %s\n      got       %s\n", o.paint(bold, printable(d.Place())),
			o.paint(green, printable(d.Expected)), o.paint(red, printable(d.Got)))
	}
}

func writeWire(b *strings.Builder, title string, wire []Event, o TextOptions) {
	fmt.Fprintf(b, "    %s (> sent, < received, ! stderr):\n", title)
	for _, e := range wire {
		name := ""
		if e.Process != "" {
			name = "@" + e.Process + " "
		}
		fmt.Fprintf(b, "    %s %s%s %s\n", o.paint(dim, fmt.Sprintf("%8.3fs", e.At.Seconds())), name, e.Dir, strings.ReplaceAll(printable(e.Text), "\n", "\n"+strings.Repeat(" ", 17)))
	}
}

// printable makes control characters visible: a server's bytes must not drive
// the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return '\u00b7'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// writeBroken counts, for each rule, the cases in which it was broken, the most first:
// one mistake may fail a hundred cases.
func writeBroken(b *strings.Builder, r *Report, o TextOptions) {
	type broken struct {
		rule, level string
		severity    Severity
		cases       int
	}
	var all []*broken
	for _, c := range r.Cases {
		seen := map[string]bool{}
		for _, f := range c.Findings {
			if f.Rule == "" || f.Severity == Note || seen[f.Rule] || c.Expected {
				continue
			}
			seen[f.Rule] = true
			i := slices.IndexFunc(all, func(one *broken) bool { return one.rule == f.Rule })
			if i < 0 {
				i = len(all)
				all = append(all, &broken{rule: f.Rule, level: f.Level, severity: f.Severity})
			}
			all[i].cases++
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(x, y *broken) int {
		if (x.severity == Failure) != (y.severity == Failure) {
			return map[bool]int{true: -1, false: 1}[x.severity == Failure]
		}
		return cmp.Compare(y.cases, x.cases)
	})
	b.WriteString("\nbroken, and in how many cases:\n")
	for _, one := range all {
		fmt.Fprintf(b, "%6d  %s %s\n", one.cases, o.paint(map[bool]string{true: red, false: yellow}[one.severity == Failure], one.level), one.rule)
	}
	b.WriteByte('\n')
}

// writeReasons groups what was not played by why.
func writeReasons(b *strings.Builder, r *Report, o TextOptions) {
	type group struct {
		outcome Outcome
		reason  string
	}
	count := map[group]int{}
	var order []group
	for _, c := range r.Cases {
		if c.Reason == "" {
			continue
		}
		g := group{c.Outcome, c.Reason}
		if count[g] == 0 {
			order = append(order, g)
		}
		count[g]++
	}
	for _, g := range order {
		mark := marks[g.outcome]
		fmt.Fprintf(b, "%s %d: %s\n", o.paint(mark[1], mark[0]), count[g], g.reason)
	}
}

// writeCoverage prints, per area, how many of the MUSTs and SHOULDs of each
// spoken revision a case with a verdict has exercised.
func writeCoverage(b *strings.Builder, r *Report) {
	byRevision := map[string]map[string]catalogue.AreaCoverage{}
	var revisions []string
	for _, rev := range r.Spoken {
		covered := r.Covered(rev)
		if must, should := catalogue.Total(catalogue.Coverage(rev, covered)); must.Covered+should.Covered == 0 {
			continue
		}
		revisions = append(revisions, rev)
		byRevision[rev] = map[string]catalogue.AreaCoverage{}
		for _, a := range catalogue.Coverage(rev, covered) {
			byRevision[rev][a.Area] = a
		}
	}
	if len(revisions) == 0 {
		return
	}
	b.WriteByte('\n')
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	cell := func(m, s catalogue.Count) string {
		return fmt.Sprintf("%d/%d %d/%d", m.Covered, m.Total, s.Covered, s.Total)
	}
	fmt.Fprintf(tw, "covered: MUST SHOULD\t%s\n", strings.Join(revisions, "\t"))
	for _, area := range catalogue.Areas() {
		line, touched := area, false
		for _, rev := range revisions {
			a, ok := byRevision[rev][area]
			if !ok {
				line += "\t-"
				continue
			}
			touched = touched || a.Must.Covered+a.Should.Covered > 0
			line += "\t" + cell(a.Must, a.Should)
		}
		if touched {
			fmt.Fprintln(tw, line)
		}
	}
	line := "all areas"
	for _, rev := range revisions {
		must, should := catalogue.Total(catalogue.Coverage(rev, r.Covered(rev)))
		line += "\t" + cell(must, should)
	}
	fmt.Fprintln(tw, line)
	tw.Flush()
}

func writeVerdict(b *strings.Builder, r *Report, o TextOptions) {
	n, expected := r.Count()
	var parts []string
	words := map[Outcome]string{Pass: "passed", Fail: "failed", Warn: "warned", Untestable: "untestable", NotCovered: "not covered"}
	for _, outcome := range []Outcome{Fail, Warn, Pass, Untestable, NotCovered} {
		if n[outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[outcome], words[outcome]))
		}
	}
	if expected > 0 {
		parts = append(parts, fmt.Sprintf("%d failed as expected", expected))
	}
	if len(r.Stale) > 0 {
		entries := "entries"
		if len(r.Stale) == 1 {
			entries = "entry"
		}
		parts = append(parts, fmt.Sprintf("%d stale baseline %s", len(r.Stale), entries))
	}
	if len(parts) == 0 {
		parts = []string{"nothing was played"}
	}
	verdict, color := "PASS", green
	switch r.ExitCode(o.Strict) {
	case ExitFailed:
		verdict, color = "FAIL", red
	case ExitUntestable:
		verdict, color = "INCOMPLETE", yellow
	}
	server := ""
	if r.Server != "" {
		server = r.Server + ": "
	}
	if r.Aborted != "" {
		fmt.Fprintf(b, "\n%s\n", r.Aborted)
	}
	fmt.Fprintf(b, "\n%s  %s%s in %.1fs\n", o.paint(color, verdict), server, strings.Join(parts, ", "), r.Duration.Seconds())
}

// WriteVerdict writes only the last line of WriteText.
func WriteVerdict(w io.Writer, r *Report, o TextOptions) error {
	var b strings.Builder
	writeVerdict(&b, r, o)
	_, err := io.WriteString(w, strings.TrimLeft(b.String(), "\n"))
	return err
}
