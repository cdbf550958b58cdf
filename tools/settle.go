package tools

import (
	"context"
	"fmt"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// Fabro's API has no key that makes a creation safe to repeat. So a run that is
// created under a request_key carries a label, and before it is created the record
// of the key says so. A call that finds such an entry looks for the label.

// keyLabel marks the runs that were created under a request_key.
const keyLabel = "fabro_mcp_request"

// settleSlack is how far the clocks of this machine and of the server may differ.
const settleSlack = 12 * time.Hour

// marks are the labels of the run at place i.
func (c *creation) marks(i int) map[string]string {
	if c.record == nil {
		return nil
	}
	return map[string]string{keyLabel: c.record.mark(i)}
}

// settle finds out what became of the run that an earlier call with this
// request_key was creating when it was killed, or when the answer got lost.
func (c *creation) settle(ctx context.Context) error {
	begun := c.record.Begun
	if begun == nil {
		return nil
	}
	run, err := c.marked(ctx, c.record.mark(len(c.record.Runs)), begun.At.Add(-settleSlack))
	if err != nil {
		return fmt.Errorf("an earlier call with this request_key did not end, and what it has created cannot be looked up: %w", err)
	}
	if run == nil {
		c.record.Begun = nil
		return nil
	}
	c.keep(keyRun{RunID: run.ID, Workflow: begun.Workflow, Start: begun.Start})
	return nil
}

// keep records a run. Where that fails the record still says that the run was
// begun, and the next call finds it by its label.
func (c *creation) keep(run keyRun) {
	if err := c.record.add(run); err != nil {
		c.r.log.Warn("a run is not on the record of its request_key", "run_id", run.RunID, "error", err)
	}
}

// marked finds the run with a mark among those created since a moment; nil where
// there is none.
func (c *creation) marked(ctx context.Context, mark string, since time.Time) (*wire.Run, error) {
	options := fabroapi.ListRunsOptions{Limit: wire.MaxPageLimit, IncludeArchived: true}
	for {
		page, err := c.client.ListRuns(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Data {
			run := &page.Data[i]
			if run.Labels[keyLabel] == mark {
				return run, nil
			}
			if run.Timestamps.CreatedAt.Before(since) {
				return nil, nil
			}
		}
		if !page.Meta.HasMore || len(page.Data) == 0 {
			return nil, nil
		}
		options.Offset += len(page.Data)
	}
}
