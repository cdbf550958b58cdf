package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/plain"
)

// Table prints runs one a line, as they come.
func Table(w io.Writer, runs []wire.Run, now time.Time) error {
	if len(runs) == 0 {
		fmt.Fprintln(w, "No runs. Start one with: fabro mcp call fabro_run_create '{\"runs\":[\"WORKFLOW\"]}'")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tSTATUS\tAGE\tWORKFLOW\tTITLE")
	for _, r := range runs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.ID, status(r), age(now.Sub(r.Timestamps.CreatedAt)), Plain(workflowOf(r)), Plain(r.Title))
	}
	return t.Flush()
}

// Show prints one run with its stages and open questions. Only its settings, which
// may be absent, tell a dry run.
func Show(w io.Writer, r wire.Run, settings json.RawMessage, stages []wire.RunStage, open []wire.Question) {
	mode := ""
	if wire.DryRun(settings) {
		mode = ", dry run"
	}
	fmt.Fprintf(w, "%s  %s%s\n", r.ID, status(r), mode)
	fmt.Fprintf(w, "%s (workflow %s)\n", Plain(r.Title), Plain(workflowOf(r)))
	if r.SourceDirectory != nil {
		fmt.Fprintf(w, "in %s\n", Plain(*r.SourceDirectory))
	}
	if r.Lifecycle.Error != nil {
		fmt.Fprintf(w, "error: %s\n", Plain(r.Lifecycle.Error.Message))
	}
	if len(stages) > 0 {
		fmt.Fprintln(w, "\nStages")
		for _, s := range stages {
			fmt.Fprintf(w, "  %-10s %s%s\n", s.Status, Plain(s.ID), wall(s))
		}
	}
	for _, q := range open {
		fmt.Fprintf(w, "\nQuestion %s (stage %s)\n  %s\n  %s:\n  fabro run answer %s ANSWER\n", q.ID, Plain(q.Stage), Plain(q.Text), Expected(q), r.ID)
	}
}

func wall(s wire.RunStage) string {
	if s.WallTimeMS == nil {
		return ""
	}
	return "  " + (time.Duration(*s.WallTimeMS) * time.Millisecond).String()
}

func status(r wire.Run) string {
	text := r.Lifecycle.Status.String()
	if r.Lifecycle.Archived {
		text += ", archived"
	}
	return text
}

func workflowOf(r wire.Run) string {
	for _, name := range []*string{r.Workflow.Name, r.Workflow.Slug, r.Workflow.GraphName} {
		if name != nil && *name != "" {
			return *name
		}
	}
	return "-"
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// maxPlain bounds one text of a run in what is printed for a person, in bytes.
const maxPlain = 2000

// Plain makes text of a run harmless on a terminal: one line, not endless, nothing
// that moves, colours or hides other text.
func Plain(s string) string { return plain.Line(s, maxPlain) }
