package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/store"
)

// Get returns a run.
func (m *Manager) Get(ctx context.Context, id string) (*wire.Run, error) {
	return m.change(ctx, id, func(*run) error { return nil })
}

// List returns one page of runs and how many there are in all.
func (m *Manager) List(ctx context.Context, q store.Query) (page []wire.Run, total int, err error) {
	rows, total, err := m.store.List(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	page, err = m.views(ctx, rows)
	return page, total, err
}

// views shows rows as runs. What is loaded is newer than its row.
func (m *Manager) views(ctx context.Context, rows []store.Row) ([]wire.Run, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	children, err := m.store.Children(ctx, ids...)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Run, 0, len(rows))
	for i := range rows {
		v, err := m.viewOf(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		v.ChildrenCount = int(children[v.ID])
		out = append(out, v)
	}
	return out, nil
}

func (m *Manager) viewOf(ctx context.Context, row *store.Row) (wire.Run, error) {
	m.mu.Lock()
	r := m.loaded[row.ID]
	m.mu.Unlock()
	if r != nil {
		<-r.ready
		if r.err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.viewLocked(), nil
		}
	}
	s, err := m.stateOf(ctx, row)
	return s.Run, err
}

// Resolve finds the run a selector means: the only one whose id begins with it, else the newest whose workflow slug is
// it or whose workflow name contains it.
func (m *Manager) Resolve(ctx context.Context, selector string) (*wire.Run, error) {
	selector = strings.TrimSpace(selector)
	if selector == "" {
		return nil, badRequest("Run selector must not be empty.")
	}
	const shown = 20
	rows, err := m.store.Prefix(ctx, selector, shown+1)
	if err != nil {
		return nil, err
	}
	if len(rows) > 1 {
		return nil, m.ambiguous(ctx, selector, rows, shown)
	}
	if len(rows) == 0 {
		row, err := m.store.NewestNamed(ctx, named(selector))
		if errors.Is(err, store.ErrNotFound) {
			return nil, &Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("No run found matching '%s' (tried run ID prefix and workflow name)", selector)}
		}
		if err != nil {
			return nil, err
		}
		rows = []store.Row{*row}
	}
	views, err := m.views(ctx, rows)
	if err != nil {
		return nil, err
	}
	return &views[0], nil
}

// named reports whether a workflow goes by this name, ignoring case, and in names also - and _.
func named(selector string) func(slug, name string) bool {
	fold := strings.NewReplacer("-", "", "_", "")
	lower := strings.ToLower(selector)
	folded := fold.Replace(lower)
	return func(slug, name string) bool {
		if slug != "" && strings.EqualFold(slug, selector) {
			return true
		}
		if name == "" {
			return false
		}
		name = strings.ToLower(name)
		return strings.Contains(name, lower) || folded != "" && strings.Contains(fold.Replace(name), folded)
	}
}

func (m *Manager) ambiguous(ctx context.Context, selector string, rows []store.Row, shown int) error {
	more := len(rows) > shown
	views, err := m.views(ctx, rows[:min(len(rows), shown)])
	if err != nil {
		return err
	}
	var list []string
	for _, v := range views {
		workflow, origin := "unknown", "unknown"
		if v.Workflow.Slug != nil {
			workflow = *v.Workflow.Slug
		}
		if v.Repository != nil && v.Repository.OriginURL != nil {
			origin = *v.Repository.OriginURL
		}
		list = append(list, fmt.Sprintf("%s created_at=%s workflow=%s origin=%s", v.ID, v.Timestamps.CreatedAt.Format(time.RFC3339), workflow, origin))
	}
	count := fmt.Sprint(len(rows))
	if more {
		count = fmt.Sprintf("more than %d", shown)
		list = append(list, "…")
	}
	return badRequest("Ambiguous prefix '%s': %s runs match: %s", selector, count, strings.Join(list, ", "))
}

// Counts is what the server says about itself.
func (m *Manager) Counts(ctx context.Context) (*wire.SystemRunCounts, error) {
	kinds, err := m.store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	c := &wire.SystemRunCounts{SchedulerSlotsUsed: int64(m.SlotsUsed())}
	for kind, n := range kinds {
		c.Total += n
		if !wire.Terminal(kind) {
			c.Active += n
		}
	}
	return c, nil
}

// Blob returns a blob of a run.
func (m *Manager) Blob(ctx context.Context, id, hash string) ([]byte, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return nil, err
	}
	content, err := m.store.BlobOf(ctx, num, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &Refusal{Status: http.StatusNotFound, Detail: "Blob not found."}
	}
	return content, err
}

// PutBlob keeps a blob for a run.
func (m *Manager) PutBlob(ctx context.Context, id string, content []byte) (string, error) {
	num, err := m.number(ctx, id)
	if err != nil {
		return "", err
	}
	return m.store.PutBlob(num, content)
}

// Variable is a value that workflows refer to as {{ vars.NAME }}.
type Variable struct {
	Name        string    `json:"name"`
	Value       string    `json:"value"`
	Description string    `json:"description,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Variables returns all variables by name.
func (m *Manager) Variables(ctx context.Context) ([]Variable, error) {
	docs, err := m.store.Variables(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Variable, 0, len(docs))
	for _, doc := range docs {
		var v Variable
		if err := json.Unmarshal(doc, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (m *Manager) variables(ctx context.Context) (map[string]string, error) {
	list, err := m.Variables(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	vars := make(map[string]string, len(list))
	for _, v := range list {
		vars[v.Name] = v.Value
	}
	return vars, nil
}
