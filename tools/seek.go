package tools

import (
	"context"
	"slices"
	"strings"
	"sync"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// runList is the server's list of runs, newest created first, read at any offset.
type runList struct {
	client  *fabroapi.Client
	options fabroapi.ListRunsOptions
	have    *wire.List[wire.Run] // the page read last
	at      int                  // its offset
}

func (l *runList) page(ctx context.Context, offset int) (*wire.List[wire.Run], error) {
	if l.have != nil && l.at == offset {
		return l.have, nil
	}
	options := l.options
	options.Offset = offset
	page, err := l.client.ListRuns(ctx, options)
	if err != nil {
		return nil, err
	}
	l.have, l.at = page, offset
	return page, nil
}

// seek finds an offset from which on no run with an id below cursor is missed, in
// few requests: the offset remembered for the cursor, or a search in the list,
// whose ids fall. Runs that were created since a cursor was given out push it to
// a greater offset, so what is remembered never skips one.
func (l *runList) seek(ctx context.Context, cursor string, hints *offsetHints) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	low := hints.get(cursor, l.options)
	first, err := l.page(ctx, low)
	if err != nil {
		return 0, err
	}
	if low > 0 && (len(first.Data) == 0 || first.Data[0].ID < cursor) {
		// Runs were deleted: begin at the front.
		low = 0
		if first, err = l.page(ctx, 0); err != nil {
			return 0, err
		}
	}
	if !passes(first, cursor) {
		return low, nil
	}
	// Halve between here and the end. Where the server does not say where the end is,
	// go there in growing steps first.
	step, high := wire.MaxPageLimit, 0
	if total := first.Meta.Total; total != nil {
		high = max(*total, low+1)
	}
	for high == 0 {
		page, err := l.page(ctx, low+step)
		switch {
		case err != nil:
			return 0, err
		case len(page.Data) == 0 || page.Data[0].ID < cursor:
			high = low + step
		default:
			low += step
			step *= 4
		}
	}
	for high-low > wire.MaxPageLimit {
		middle := low + (high-low)/2
		page, err := l.page(ctx, middle)
		if err != nil {
			return 0, err
		}
		if len(page.Data) == 0 || page.Data[0].ID < cursor {
			high = middle
		} else {
			low = middle
		}
	}
	return low, nil
}

// passes reports whether everything on a page is at or above the cursor and more
// follows.
func passes(page *wire.List[wire.Run], cursor string) bool {
	return page.Meta.HasMore && len(page.Data) > 0 && page.Data[len(page.Data)-1].ID >= cursor
}

// maxHints bounds the cursors remembered.
const maxHints = 64

// offsetHints remembers at which offset of which list a cursor was given out. The
// zero value is empty.
type offsetHints struct {
	mu      sync.Mutex // protects the fields below
	offsets map[string]int
	order   []string
}

func hintKey(cursor string, o fabroapi.ListRunsOptions) string {
	archived := "-"
	if o.IncludeArchived {
		archived = "a"
	}
	return strings.Join([]string{cursor, o.ParentID, archived, strings.Join(o.Columns, ",")}, "|")
}

func (h *offsetHints) put(cursor string, o fabroapi.ListRunsOptions, offset int) {
	key := hintKey(cursor, o)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.offsets == nil {
		h.offsets = map[string]int{}
	}
	if _, known := h.offsets[key]; !known {
		if len(h.order) == maxHints {
			delete(h.offsets, h.order[0])
			h.order = slices.Delete(h.order, 0, 1)
		}
		h.order = append(h.order, key)
	}
	// One before the run of the cursor, so that seek sees that run itself.
	h.offsets[key] = max(offset-1, 0)
}

func (h *offsetHints) get(cursor string, o fabroapi.ListRunsOptions) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.offsets[hintKey(cursor, o)]
}
