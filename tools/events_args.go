package tools

import (
	"math"
	"time"

	"fabro-mcp/tools/args"
)

// Limits of fabro_run_events.
const (
	maxEvents      = 200
	defaultEvents  = 50
	defaultContent = 20_000 // bytes of one event
	maxContent     = 200_000
	maxOffset      = 100_000
)

// eventsParams are the arguments of fabro_run_events.
type eventsParams struct {
	Action        string
	RunID         string
	EventTypes    args.Opt[[]string]
	Categories    args.Opt[[]string]
	Direction     string
	CreatedAfter  args.Opt[time.Time]
	CreatedBefore args.Opt[time.Time]
	First         args.Opt[int64]
	After         args.Opt[int64]
	EventIDs      args.Opt[[]string]
	Offset        args.Opt[int64]
	Limit         args.Opt[int64]
	MaxContent    args.Opt[int64]
	Query         string
}

func (p *eventsParams) fields() args.Fields {
	return args.Fields{
		{Name: "action", Required: true, Type: args.Text(&p.Action).OneOf("list", "details", "search"),
			Doc: "list: events in order; details: the events named in event_ids; search: events that contain query."},
		{Name: "run_id", Required: true, Missing: "run_id is required", Type: runSelector(&p.RunID), Doc: runSelectorDoc},
		{Name: "event_types", Type: args.List(&p.EventTypes, 0, 0), Doc: "Only events with these names, such as stage.completed."},
		{Name: "categories", Type: args.List(&p.Categories, 0, 0), Doc: "Only events whose name starts with one of these words: run, stage, command, interview, agent, …"},
		{Name: "direction", Type: args.Text(&p.Direction).OneOf("asc", "desc").Default("asc"), Doc: "asc: oldest first; desc: newest first."},
		{Name: "created_after", Type: args.Date(&p.CreatedAfter), Doc: "Only events at or after this time: RFC 3339, or YYYY-MM-DD for midnight UTC."},
		{Name: "created_before", Type: args.Date(&p.CreatedBefore), Doc: "Only events at or before this time: RFC 3339, or YYYY-MM-DD for midnight UTC."},
		{Name: "first", Type: args.Count(&p.First, 0, maxEvents).Default(defaultEvents), Doc: "Page size."},
		{Name: "after", Type: args.Count(&p.After, 0, math.MaxUint32), Doc: "Cursor: next_cursor of the page before. With asc the first sequence number to show, with desc the one to stay below."},
		{Name: "event_ids", Type: args.List(&p.EventIDs, 0, maxEvents), Doc: "Ids of events; required, and not empty, for action details."},
		{Name: "offset", Type: args.Count(&p.Offset, 0, maxOffset).Default(0), Doc: "Matching events to skip. Leave it out when following a cursor."},
		{Name: "limit", Type: args.Count(&p.Limit, 0, maxEvents), Doc: "Another name for first, used only without it."},
		{Name: "max_content_length", Type: args.Count(&p.MaxContent, 0, maxContent).Default(defaultContent), Doc: "Bytes of one event; a longer event comes as the beginning of its JSON text, with truncated true."},
		{Name: "query", Type: args.Text(&p.Query), Doc: "Text to look for in the whole event, case-sensitive; required, and not blank, for action search."},
	}
}

func (p *eventsParams) check() error {
	if p.Action == "details" && len(p.EventIDs.Value) == 0 {
		return args.Errorf("event_ids is required for details action")
	}
	if p.Action == "search" && isBlank(p.Query) {
		return args.Errorf("query is required for search action")
	}
	return nil
}

// pageSize is first, or its other name limit, or the default.
func (p *eventsParams) pageSize() int {
	switch {
	case p.First.Set:
		return int(p.First.Value)
	case p.Limit.Set:
		return int(p.Limit.Value)
	}
	return defaultEvents
}
