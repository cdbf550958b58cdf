package tools

import (
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/args"
)

// runStatuses are the values of a status filter, in the order of a run's life.
var runStatuses = []string{
	wire.StatusSubmitted, wire.StatusPending, wire.StatusRunnable, wire.StatusStarting, wire.StatusRunning, wire.StatusBlocked,
	wire.StatusPaused, wire.StatusRemoving, wire.StatusSucceeded, wire.StatusFailed, wire.StatusDead,
}

// searchParams are the arguments of fabro_run_search.
type searchParams struct {
	RunIDs        args.Opt[[]string]
	Workflow      args.Opt[string]
	Labels        args.Opt[map[string]string]
	Status        args.Opt[[]string]
	Archived      args.Opt[bool]
	CreatedAfter  args.Opt[time.Time]
	CreatedBefore args.Opt[time.Time]
	First         args.Opt[int64]
	After         string
	ParentID      string
}

func (p *searchParams) fields() args.Fields {
	return args.Fields{
		{Name: "first", Type: args.Count(&p.First, 0, 100).Default(20), Doc: "Page size."},
		{Name: "run_ids", Type: args.List(&p.RunIDs, 1, 100).Trimmed(), Doc: "Only these runs: ids, prefixes of ids, or workflow names (then the newest run of each)."},
		{Name: "workflow", Type: args.OptText(&p.Workflow), Doc: "Only runs of this workflow: its name, graph name or slug, exactly."},
		{Name: "labels", Type: args.Map(&p.Labels), Doc: "Only runs that have all these labels."},
		{Name: "status", Type: args.List(&p.Status, 0, 0).OneOf(runStatuses...).Unknown("unknown run status `%s`"), Doc: "Only runs in one of these states."},
		{Name: "archived", Type: args.Flag(&p.Archived).Default(false), Doc: "true: only archived runs; false: only runs that are not."},
		{Name: "created_after", Type: args.Date(&p.CreatedAfter), Doc: "Only runs created at or after this time: RFC 3339, or YYYY-MM-DD for midnight UTC."},
		{Name: "created_before", Type: args.Date(&p.CreatedBefore), Doc: "Only runs created at or before this time: RFC 3339, or YYYY-MM-DD for midnight UTC."},
		{Name: "after", Type: args.Text(&p.After).Trimmed(), Doc: "Cursor: next_cursor of the page before."},
		{Name: "parent_id", Type: args.Text(&p.ParentID).Trimmed().NotBlank(""), Doc: "Only children of this run (id, prefix or workflow name)."},
	}
}

func (p *searchParams) check() error { return nil }
