package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// auditParams are the arguments of fabro_agent_audit.
type auditParams struct {
	Minutes args.Opt[int64]
	Limit   args.Opt[int64]
	Tool    string
	RunID   string
}

const maxAuditMinutes = 525_600 // a year

func (p *auditParams) fields() args.Fields {
	return args.Fields{
		{Name: "minutes", Type: args.Count(&p.Minutes, 1, maxAuditMinutes).Default(10_080), Doc: "How far back to look; the default is a week."},
		{Name: "limit", Type: args.Count(&p.Limit, 1, 500).Default(50), Doc: "How many entries, newest first."},
		{Name: "tool", Type: args.Text(&p.Tool).Trimmed(), Doc: "Only calls of this tool."},
		{Name: "run_id", Type: args.Text(&p.RunID).Trimmed(), Doc: "Only calls whose arguments or results name this run (its complete id)."},
	}
}

func (p *auditParams) check() error { return nil }

type auditResult struct {
	Entries []auditEntry `json:"entries"`
	Minutes int64        `json:"minutes"`
	More    bool         `json:"more"`
}

const auditSchema = `{"type":"object","properties":{"entries":{"type":"array","items":{"type":"object","properties":{"time":{"type":"string"},"tool":{"type":"string"},"client":{"type":"string"},` +
	`"arguments":{},"outcome":{"type":"string"},"duration_ms":{"type":"integer"},"runs":{"type":"array","items":{"type":"string"}}},"required":["time","tool","client","arguments","outcome","duration_ms"]}},` +
	`"minutes":{"type":"integer"},"more":{"type":"boolean","description":"There are older entries in this time"}},"required":["entries","minutes","more"]}`

func (p *auditParams) run(_ context.Context, r *request) (*reply, error) {
	out := auditResult{Entries: []auditEntry{}, Minutes: p.Minutes.Value}
	oldest := r.now().Add(-time.Duration(p.Minutes.Value) * time.Minute)
	err := r.audit.read(func(e auditEntry) bool {
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil || p.Tool != "" && e.Tool != p.Tool || p.RunID != "" && !e.names(p.RunID) {
			return true
		}
		if at.Before(oldest) {
			return false
		}
		if len(out.Entries) == int(p.Limit.Value) {
			out.More = true
			return false
		}
		out.Entries = append(out.Entries, e)
		return true
	})
	if err != nil {
		return nil, err
	}
	page := &plain.Page{Rest: "Ask for fewer entries (limit), or a shorter time (minutes)."}
	switch {
	case r.audit.path == "":
		page.Line("This server keeps no audit log: it has no state directory.")
	case len(out.Entries) == 0:
		page.Line("Nothing was changed through this server's tools in the last %s.", inWords(out.Minutes))
	default:
		page.Line("%s that changed something, or tried to, in the last %s, newest first:", plural.Count(len(out.Entries), "call"), inWords(out.Minutes))
	}
	for _, e := range out.Entries {
		at, _, _ := strings.Cut(strings.TrimSuffix(e.Time, "Z"), ".") // to the second
		page.Line("> %sZ %s by %s: %s, arguments %s", at, e.Tool, plain.Line(e.Client, 60), plain.Line(e.Outcome, 200), plain.Line(string(e.Arguments), 300))
	}
	if out.More {
		page.Line("There are more; raise limit to see them.")
	}
	return &reply{text: page.String(), structured: out}, nil
}

// inWords says a number of minutes in the largest unit that fits.
func inWords(minutes int64) string {
	for _, unit := range []struct {
		minutes int64
		name    string
	}{{24 * 60, "day"}, {60, "hour"}, {1, "minute"}} {
		if n := minutes / unit.minutes; n > 0 && minutes%unit.minutes == 0 {
			if n == 1 {
				return unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "moment"
}

// names reports whether the call was about a run.
func (e *auditEntry) names(run string) bool {
	for _, id := range e.Runs {
		if id == run {
			return true
		}
	}
	return strings.Contains(string(e.Arguments), run)
}
