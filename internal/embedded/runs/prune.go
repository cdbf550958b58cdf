package runs

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"fabro-mcp/internal/embedded/store"
)

// Prune removes the runs that ended longer ago than age. It returns how many, and how many bytes of events they took.
func (m *Manager) Prune(ctx context.Context, age time.Duration) (n int, bytes int64, err error) {
	rows, err := m.Prunable(ctx, age)
	if err != nil {
		return 0, 0, err
	}
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return n, bytes, err
		}
		if err := m.Delete(ctx, rows[i].ID, false, nil); err != nil {
			if err == errNoRun {
				continue
			}
			return n, bytes, err
		}
		n++
		bytes += rows[i].Bytes
	}
	return n, bytes, nil
}

// Prunable returns the rows of the runs that Prune would remove.
func (m *Manager) Prunable(ctx context.Context, age time.Duration) ([]store.Row, error) {
	return m.store.EndedBefore(ctx, m.cfg.Now().Add(-age))
}

// Prune is Manager.Prune for a store that nobody serves: the runs in st that ended before a time, and their files in dir.
func Prune(ctx context.Context, st *store.Store, dir string, before time.Time) (n int, bytes int64, err error) {
	rows, err := st.EndedBefore(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return n, bytes, err
		}
		if err := st.Delete(rows[i].Num); err != nil {
			return n, bytes, err
		}
		n++
		bytes += rows[i].Bytes
		if err := os.RemoveAll(filepath.Join(dir, rows[i].ID)); err != nil {
			return n, bytes, err
		}
	}
	return n, bytes, nil
}
