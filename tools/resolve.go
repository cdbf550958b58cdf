package tools

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// resolve finds the runs that selectors mean, in their order, duplicates included.
// One that means no run fails all.
func resolve(ctx context.Context, client *fabroapi.Client, selectors []string) ([]*wire.Run, error) {
	runs := make([]*wire.Run, len(selectors))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	first := make(map[string]int, len(selectors))
	for i, selector := range selectors {
		if _, again := first[selector]; again {
			continue
		}
		first[selector] = i
		group.Go(func() error {
			run, err := client.ResolveRun(ctx, selector)
			if err != nil {
				return fmt.Errorf("run %q: %w", selector, err)
			}
			runs[i] = run
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, selector := range selectors {
		runs[i] = runs[first[selector]]
	}
	return runs, nil
}
