package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/plural"
	"fabro-mcp/tools/plain"
)

// Limits of a search.
const (
	goalPreview = 240 // characters
	// maxScan bounds the runs that one call looks at; a filter that matches little
	// then returns a cursor to go on from.
	maxScan = 2_000
)

type searchRow struct {
	runSummary
	// Goal hides the complete goal of runSummary.
	Goal          *struct{} `json:"goal,omitempty"`
	GoalPreview   string    `json:"goal_preview"`
	GoalTruncated bool      `json:"goal_truncated"`
}

type searchResult struct {
	Runs       []searchRow `json:"runs"`
	NextCursor *string     `json:"next_cursor"`
	Scanned    int         `json:"scanned"`
}

const searchSchema = `{"type":"object","properties":{"runs":{"type":"array","items":{"type":"object","properties":{` + summaryHead + `,` +
	`"goal_preview":{"type":"string"},"goal_truncated":{"type":"boolean"}},"required":[` + summaryRequired + `,"goal_preview","goal_truncated"]}},` +
	`"next_cursor":{"type":["string","null"],"description":"Pass as after for the next page; null at the end"},` +
	`"scanned":{"type":"integer","minimum":0,"description":"Runs looked at"}},"required":["runs","next_cursor","scanned"]}`

func (p *searchParams) run(ctx context.Context, r *request) (*reply, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	parent := ""
	if p.ParentID != "" {
		run, err := client.ResolveRun(ctx, p.ParentID)
		if err != nil {
			return nil, fmt.Errorf("parent run %q: %w", p.ParentID, err)
		}
		parent = run.ID
	}
	if !isULID(p.After) {
		p.After = "" // no cursor of ours; Fabro begins anew, too
	}
	s := &scan{p: p, parent: parent, want: int(p.First.Value)}
	if p.RunIDs.Set {
		err = s.named(ctx, client)
	} else {
		err = s.pages(ctx, client, &r.hints)
	}
	if err != nil {
		return nil, err
	}
	return r.searchReply(p, s), nil
}

// scan collects the runs that match, newest created first.
type scan struct {
	p      *searchParams
	parent string
	want   int
	found  []*wire.Run
	looked int
	cursor string // where to go on; "" at the end
}

// named looks at the runs that were named, all of them at once.
func (s *scan) named(ctx context.Context, client *fabroapi.Client) error {
	runs, err := resolve(ctx, client, s.p.RunIDs.Value)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var matching []*wire.Run
	for _, run := range runs {
		if !seen[run.ID] {
			seen[run.ID] = true
			s.looked++
			if s.matches(run) {
				matching = append(matching, run)
			}
		}
	}
	slices.SortFunc(matching, newerFirst)
	if after := s.p.After; after != "" {
		matching = slices.DeleteFunc(matching, func(run *wire.Run) bool { return run.ID >= after })
	}
	s.take(matching)
	return nil
}

func (s *scan) take(runs []*wire.Run) {
	if len(runs) > s.want {
		runs = runs[:s.want]
		if s.want > 0 {
			s.cursor = runs[len(runs)-1].ID
		}
	}
	s.found = runs
}

// newerFirst orders by creation, newest first. Run ids carry their time of
// creation, so they order runs of the same moment, and a cursor that is an id
// always finds its place.
func newerFirst(a, b *wire.Run) int { return strings.Compare(b.ID, a.ID) }

// pages reads the server's list, which is newest first, until the page is full,
// the time window is left, or maxScan runs were looked at.
func (s *scan) pages(ctx context.Context, client *fabroapi.Client, hints *offsetHints) error {
	if s.want == 0 {
		return nil
	}
	list := &runList{client: client, options: fabroapi.ListRunsOptions{
		Limit: wire.MaxPageLimit, IncludeArchived: s.p.Archived.Value, ParentID: s.parent, Columns: s.columns(),
	}}
	if s.p.Status.Set && len(s.p.Status.Value) == 0 {
		return nil // no status matches nothing
	}
	offset, err := list.seek(ctx, s.p.After, hints)
	if err != nil {
		return err
	}
	if before := s.p.CreatedBefore; before.Set && s.p.After == "" {
		// The first id of the moment after the bound: everything newer is skipped.
		bound, err := ulid.New(uint64(max(before.Value.UnixMilli()+1, 0)), nil)
		if err == nil {
			if offset, err = list.seek(ctx, bound.String(), hints); err != nil {
				return err
			}
		}
	}
	last := ""
	for {
		page, err := list.page(ctx, offset)
		if err != nil {
			return err
		}
		for i := range page.Data {
			run := &page.Data[i]
			offset++
			if s.p.After != "" && run.ID >= s.p.After {
				continue // created since the cursor was given out, or before it
			}
			if after := s.p.CreatedAfter; after.Set && run.Timestamps.CreatedAt.Before(after.Value.Add(-clockSlack)) {
				return nil // everything further is older
			}
			s.looked++
			last = run.ID
			if !s.matches(run) {
				continue
			}
			if len(s.found) == s.want {
				s.cursor = s.found[len(s.found)-1].ID
				hints.put(s.cursor, list.options, offset-1)
				return nil
			}
			s.found = append(s.found, run)
		}
		if !page.Meta.HasMore || len(page.Data) == 0 {
			return nil
		}
		if s.looked >= maxScan {
			s.cursor = last
			hints.put(last, list.options, offset)
			return nil
		}
	}
}

// clockSlack is how far the time in a run id and its created_at may differ.
const clockSlack = time.Minute

// columns narrows the server's list: its filter knows board columns only.
func (s *scan) columns() []string {
	var out []string
	for _, kind := range s.p.Status.Value {
		if c := wire.Column(kind); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	if len(out) > 0 && s.p.Archived.Value {
		return nil // archived runs have a column of their own, whatever their status
	}
	return out
}

// matches applies every filter to a run.
func (s *scan) matches(run *wire.Run) bool {
	p := s.p
	if s.parent != "" && (run.ParentID == nil || *run.ParentID != s.parent) {
		return false
	}
	if p.Workflow.Set && !slices.ContainsFunc([]*string{run.Workflow.Name, run.Workflow.GraphName, run.Workflow.Slug},
		func(name *string) bool { return name != nil && *name == p.Workflow.Value }) {
		return false
	}
	for key, value := range p.Labels.Value {
		if got, has := run.Labels[key]; !has || got != value {
			return false
		}
	}
	if p.Status.Set && !slices.Contains(p.Status.Value, run.Lifecycle.Status.Kind) {
		return false
	}
	if run.Lifecycle.Archived != p.Archived.Value {
		return false
	}
	created := run.Timestamps.CreatedAt
	if p.CreatedAfter.Set && created.Before(p.CreatedAfter.Value) {
		return false
	}
	return !p.CreatedBefore.Set || !created.After(p.CreatedBefore.Value)
}

func (h *host) searchReply(p *searchParams, s *scan) *reply {
	out := searchResult{Runs: []searchRow{}, Scanned: s.looked}
	page := &plain.Page{Rest: "Ask for a smaller page (first), or narrow the search."}
	switch {
	case len(s.found) == 0 && s.cursor != "":
		page.Line("No run of the %d looked at matches.", s.looked)
	case len(s.found) == 0:
		page.Line("No run matches.%s", h.searchAdvice(p))
	default:
		page.Line("%s, newest first:", plural.Count(len(s.found), "run"))
	}
	for _, run := range s.found {
		row := searchRow{runSummary: summarize(run)}
		row.GoalPreview, row.GoalTruncated = preview(run.Goal)
		out.Runs = append(out.Runs, row)
		page.Line("%s", h.listLine(run))
		if goal := plain.Line(run.Goal, 80); goal != "" {
			page.Line("> goal: %s", goal)
		}
	}
	if s.cursor != "" {
		out.NextCursor = &s.cursor
		page.Line(`More may follow: the same call with "after":"%s".`, s.cursor)
	}
	return &reply{text: page.String(), structured: out, links: listLinks(s.found)}
}

// searchAdvice says what an empty result may be due to.
func (h *host) searchAdvice(p *searchParams) string {
	switch {
	case p.After != "":
		return " That was the last page."
	case p.Workflow.Set:
		return " workflow must equal the workflow's name, graph name or slug exactly."
	case !p.Archived.Value:
		return " Archived runs are only listed with archived true."
	}
	return ""
}

// preview is the beginning of a goal.
func preview(goal string) (string, bool) {
	count := 0
	for i := range goal {
		if count == goalPreview {
			return goal[:i] + "...", true
		}
		count++
	}
	return goal, false
}
