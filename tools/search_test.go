package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
)

// ids of the runs of a search result.
func (r *searchResult) ids() []string {
	out := []string{}
	for _, run := range r.Runs {
		out = append(out, run.RunID)
	}
	return out
}

func TestSearchFilters(t *testing.T) {
	api := newFakeAPI(t)
	parent := api.add(wire.StatusSucceeded)
	child, other, archived := api.add(wire.StatusRunning), api.add(wire.StatusFailed), api.add(wire.StatusDead)
	child.ParentID = &parent.ID
	child.Labels = map[string]string{"team": "a", "tier": "1"}
	other.Workflow.Slug, other.Workflow.Name, other.Workflow.GraphName = wire.Ptr("nightly"), wire.Ptr("Nightly Build"), wire.Ptr("Nightly")
	other.Goal = strings.Repeat("ü", 300)
	archived.Lifecycle.Archived = true
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	for _, c := range []struct {
		name, arguments string
		want            []string
	}{
		{"all, newest first", `{}`, []string{other.ID, child.ID, parent.ID}},
		{"by id and by name", `{"run_ids":["` + parent.ID + `","nightly","` + parent.ID + `"]}`, []string{other.ID, parent.ID}},
		{"slug", `{"workflow":"nightly"}`, []string{other.ID}},
		{"name", `{"workflow":"Nightly Build"}`, []string{other.ID}},
		{"graph name", `{"workflow":"Nightly"}`, []string{other.ID}},
		{"exactly", `{"workflow":"night"}`, []string{}},
		{"labels", `{"labels":{"team":"a","tier":"1"}}`, []string{child.ID}},
		{"all labels", `{"labels":{"team":"a","tier":"2"}}`, []string{}},
		{"no labels", `{"labels":{}}`, []string{other.ID, child.ID, parent.ID}},
		{"status", `{"status":["failed","running"]}`, []string{other.ID, child.ID}},
		{"status within a column", `{"status":["dead"]}`, []string{}},
		{"no status", `{"status":[]}`, []string{}},
		{"archived", `{"archived":true}`, []string{archived.ID}},
		{"archived by status", `{"archived":true,"status":["dead"]}`, []string{archived.ID}},
		{"parent", `{"parent_id":"` + parent.ID + `"}`, []string{child.ID}},
		{"created after, inclusive", `{"created_after":"2026-05-11T20:01:00Z"}`, []string{other.ID, child.ID}},
		{"created before, inclusive", `{"created_before":"2026-05-11T20:01:00Z"}`, []string{child.ID, parent.ID}},
		{"before a day", `{"created_before":"2026-05-11"}`, []string{}},
		{"nothing wanted", `{"first":0}`, []string{}},
		{"no cursor", `{"after":"0","first":100}`, []string{other.ID, child.ID, parent.ID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got searchResult
			s.call(nameSearch, c.arguments).structured(&got)
			if diff := cmp.Diff(c.want, got.ids()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.NextCursor != nil {
				t.Errorf("cursor %s at the end", *got.NextCursor)
			}
		})
	}
	var got searchResult
	s.call(nameSearch, `{"workflow":"nightly"}`).structured(&got)
	if row := got.Runs[0]; row.GoalPreview != strings.Repeat("ü", 240)+"..." || !row.GoalTruncated {
		t.Errorf("goal preview %q, truncated %v", row.GoalPreview, row.GoalTruncated)
	}
}

// TestSearchPages walks through many runs and counts the requests.
func TestSearchPages(t *testing.T) {
	const many = 2_600
	api := newFakeAPI(t)
	api.mu.Lock()
	for i := range many {
		run := api.addLocked(wire.StatusSucceeded)
		if i == 17 {
			run.Labels = map[string]string{"rare": "yes"}
		}
	}
	api.mu.Unlock()
	s := open(t, Config{Connect: api.connect}, rev2607, nil)
	limit := func(what string, most int) {
		t.Helper()
		if n := len(api.seen()); n > most {
			t.Errorf("%s: %d requests", what, n)
		}
	}

	var first, second searchResult
	s.call(nameSearch, `{"first":20}`).structured(&first)
	limit("first page", 1)
	s.call(nameSearch, `{"first":20,"after":"`+*first.NextCursor+`"}`).structured(&second)
	limit("second page", 1)
	want := []string{}
	for i := range 40 {
		want = append(want, api.runs[many-1-i].ID)
	}
	if diff := cmp.Diff(want, append(first.ids(), second.ids()...)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// A cursor of another process, in the middle; and runs that came meanwhile.
	api.add(wire.StatusRunning)
	var middle searchResult
	s.call(nameSearch, `{"first":3,"after":"`+api.runs[1300].ID+`"}`).structured(&middle)
	limit("an unknown cursor", 8)
	if diff := cmp.Diff([]string{api.runs[1299].ID, api.runs[1298].ID, api.runs[1297].ID}, middle.ids()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// The time window is found without reading everything before it.
	var old searchResult
	s.call(nameSearch, fmt.Sprintf(`{"created_before":%q,"first":1}`, api.runs[99].Timestamps.CreatedAt.Format("2006-01-02T15:04:05Z"))).structured(&old)
	limit("created_before", 8)
	if diff := cmp.Diff([]string{api.runs[99].ID}, old.ids()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var recent searchResult
	s.call(nameSearch, fmt.Sprintf(`{"created_after":%q,"labels":{"rare":"yes"}}`, api.runs[many-50].Timestamps.CreatedAt.Format("2006-01-02T15:04:05Z"))).structured(&recent)
	limit("created_after", 1)
	if len(recent.Runs) != 0 || recent.NextCursor != nil {
		t.Errorf("%+v", recent)
	}

	// A filter that matches little goes on by cursor and finds the one.
	cursor, calls := "", 0
	for {
		var got searchResult
		s.call(nameSearch, `{"labels":{"rare":"yes"},"after":"`+cursor+`"}`).structured(&got)
		limit("a rare label", 22)
		calls++
		if len(got.Runs) > 0 {
			if diff := cmp.Diff([]string{api.runs[17].ID}, got.ids()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			break
		}
		if got.NextCursor == nil || calls > 10 {
			t.Fatalf("not found after %d calls", calls)
		}
		cursor = *got.NextCursor
	}
}

// TestSearchWalk visits every run exactly once, whatever the page size, while runs
// come and go.
func TestSearchWalk(t *testing.T) {
	for _, first := range []int{1, 7, 100} {
		api := newFakeAPI(t)
		for range 230 {
			api.add(wire.StatusSucceeded)
		}
		s := open(t, Config{Connect: api.connect}, rev2607, nil)
		var seen []string
		cursor := ""
		for page := 0; ; page++ {
			var got searchResult
			s.call(nameSearch, fmt.Sprintf(`{"first":%d,"after":%q}`, first, cursor)).structured(&got)
			seen = append(seen, got.ids()...)
			if got.NextCursor == nil {
				break
			}
			cursor = *got.NextCursor
			if page == 3 {
				api.add(wire.StatusRunning) // newer: not on this walk
				api.mu.Lock()
				api.runs[229].gone = true // already visited
				api.mu.Unlock()
			}
		}
		var want []string
		for i := range 230 {
			want = append(want, api.runs[229-i].ID)
		}
		if first == 100 { // three pages only: the changes come too late to matter
			want = want[:230]
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("pages of %d (-want +got)\n%s", first, diff)
		}
		if !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Error("not newest first")
		}
	}
}
