package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"fabro-mcp/conformance/catalogue"
	"fabro-mcp/conformance/check"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
	"fabro-mcp/internal/plural"
)

type explainCmd struct {
	ID string `arg:"" help:"A requirement id, such as jsonrpc.id.echoed (see: list requirements)."`
}

// Run prints one requirement and what checks it.
func (c *explainCmd) Run(w *world) error {
	r, ok := catalogue.Lookup(c.ID)
	if !ok {
		hint := "; mcp-conformance list requirements prints them all"
		if near := catalogue.Nearest(c.ID); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		return usageError{fmt.Errorf("no requirement %q%s", c.ID, hint)}
	}
	testable := map[catalogue.Testable]string{
		catalogue.Always: "on any server", catalogue.WithFixture: "with a fixture", catalogue.Never: "not over stdio from outside",
	}
	out := w.stdout
	fmt.Fprintf(out, "%s\n\n  %s\n\n", r.ID, r.Text)
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "  keyword\t%s\n", r.Level)
	fmt.Fprintf(tw, "  binds\t%s\n", map[string]string{"both": "client and server"}[r.Role]+strings.TrimPrefix(r.Role, "both"))
	fmt.Fprintf(tw, "  revisions\t%s\n", strings.Join(r.Revisions, ", "))
	fmt.Fprintf(tw, "  specification\t%s\n", strings.ReplaceAll(r.Source, "; ", "\n  \t"))
	fmt.Fprintf(tw, "  testable\t%s\n", testable[r.Testable])
	fmt.Fprintf(tw, "  how\t%s\n", r.How)
	if err := tw.Flush(); err != nil {
		return err
	}
	ts, err := runner.LoadFS(transcripts.FS(), ".")
	if err != nil {
		return err
	}
	for _, t := range ts {
		if slices.Contains(t.Requirements, r.ID) {
			fmt.Fprintf(out, "  checked by  %s: %s\n", runner.Name(t.Path), t.Title)
		}
	}
	if slices.Contains(check.Requirements(), r.ID) {
		fmt.Fprintln(out, "  checked by  mcp-conformance check")
	}
	return nil
}

type listCmd struct {
	What     string `arg:"" optional:"" enum:"suites,transcripts,requirements,coverage" default:"suites" help:"suites, transcripts, requirements or coverage."`
	Revision string `short:"r" placeholder:"REV" help:"Only what holds at this revision."`
}

// Run lists what is built in.
func (c *listCmd) Run(w *world) error {
	ts, err := runner.LoadFS(transcripts.FS(), ".")
	if err != nil {
		return err
	}
	if c.Revision != "" {
		if _, err := transcript.ParseRevisions(c.Revision); err != nil {
			return usageError{err}
		}
		ts = slices.DeleteFunc(ts, func(t *transcript.Transcript) bool { return !slices.Contains(t.Revisions, c.Revision) })
	}
	tw := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	switch c.What {
	case "suites":
		listSuites(tw, ts)
	case "transcripts":
		for _, t := range ts {
			fmt.Fprintf(tw, "%s\t%s\t%s\n", runner.Name(t.Path), span(t.Revisions), t.Title)
		}
	case "requirements":
		for _, r := range catalogue.All() {
			if c.Revision == "" || r.In(c.Revision) {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.ID, r.Level, span(r.Revisions), r.Text)
			}
		}
	case "coverage":
		covered := map[string]bool{}
		for _, t := range ts {
			for _, id := range t.Requirements {
				covered[id] = true
			}
		}
		for _, id := range check.Requirements() {
			covered[id] = true
		}
		return catalogue.WriteCoverage(w.stdout, c.Revision, covered)
	}
	return tw.Flush()
}

func listSuites(w io.Writer, ts []*transcript.Transcript) {
	count := map[string]int{}
	for _, t := range ts {
		suite, _, _ := strings.Cut(runner.Name(t.Path), "/")
		count[suite]++
	}
	for _, s := range transcripts.Suites() {
		fmt.Fprintf(w, "%s\t%s\n", s, plural.Count(count[s], "transcript"))
	}
}

// span writes revisions as a range where they are one.
func span(revs []string) string {
	if len(revs) > 2 {
		first, last := slices.Index(transcript.Revisions, revs[0]), slices.Index(transcript.Revisions, revs[len(revs)-1])
		if last-first == len(revs)-1 {
			return revs[0] + ".." + revs[len(revs)-1]
		}
	}
	return strings.Join(revs, ",")
}
