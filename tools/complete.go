package tools

import (
	"context"
	"slices"
	"strings"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
)

const (
	maxCompletions = 100
	// completeTimeout bounds the time a completion may take: somebody is typing.
	completeTimeout = 3 * time.Second
)

// completer suggests run ids, workflow names, stage ids and question ids.
type completer struct{ host *host }

// candidate is a value with what it may be found by.
type candidate struct {
	value string
	also  string
}

// Complete ranks the values that fit what was typed. A server that cannot be
// reached has no suggestions, which is no error.
func (c *completer) Complete(ctx context.Context, req *protocol.CompletionRequest) (*protocol.Completion, error) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	var all []candidate
	switch req.Argument {
	case argRun:
		all = c.runs(ctx, req)
	case argWorkflow, "name":
		for _, w := range c.host.listWorkflows("") {
			all = append(all, candidate{w.Name, w.Title + " " + w.Description})
		}
	case argStage:
		all = c.stages(ctx, req.Context[argRun])
	case argQuestion:
		all = c.questions(ctx, req.Context[argRun])
	}
	values := rank(all, req.Value)
	out := &protocol.Completion{Values: values, Total: len(values)}
	if len(values) > maxCompletions {
		out.Values, out.HasMore = values[:maxCompletions], true
	}
	return out, nil
}

// runs are the newest runs; for answers those that wait come first, for diagnosis
// those that failed.
func (c *completer) runs(ctx context.Context, req *protocol.CompletionRequest) []candidate {
	client, err := c.host.client(ctx)
	if err != nil {
		return nil
	}
	var out []candidate
	add := func(options fabroapi.ListRunsOptions) {
		options.Limit = wire.MaxPageLimit
		page, err := client.ListRuns(ctx, options)
		if err != nil {
			return
		}
		for i := range page.Data {
			run := &page.Data[i]
			out = append(out, candidate{run.ID, workflowLabel(run) + " " + run.Title})
		}
	}
	if first, special := firstColumn[req.RefName]; special {
		add(fabroapi.ListRunsOptions{Columns: []string{first}})
	}
	add(fabroapi.ListRunsOptions{})
	return out
}

// firstColumn is the column of the board whose runs a prompt is most likely about.
var firstColumn = map[string]string{
	promptAnswer: wire.ColumnBlocked, promptDiagnose: wire.ColumnFailed, promptWatch: wire.ColumnRunning, promptReview: wire.ColumnSucceeded,
}

func (c *completer) stages(ctx context.Context, runID string) []candidate {
	client, run := c.run(ctx, runID)
	if run == nil {
		return nil
	}
	stages, err := client.Stages(ctx, run.ID)
	if err != nil {
		return nil
	}
	var out []candidate
	for _, s := range stages {
		out = append(out, candidate{s.ID, s.Name})
	}
	return out
}

func (c *completer) questions(ctx context.Context, runID string) []candidate {
	client, run := c.run(ctx, runID)
	if run == nil {
		return nil
	}
	questions, err := client.Questions(ctx, run.ID)
	if err != nil {
		return nil
	}
	var out []candidate
	for _, q := range questions {
		out = append(out, candidate{q.ID, q.Text})
	}
	return out
}

func (c *completer) run(ctx context.Context, selector string) (*fabroapi.Client, *wire.Run) {
	if selector == "" {
		return nil, nil
	}
	client, err := c.host.client(ctx)
	if err != nil {
		return nil, nil
	}
	run, err := client.ResolveRun(ctx, selector)
	if err != nil {
		return nil, nil
	}
	return client, run
}

// rank keeps the candidates that fit and orders them: value begins with what was
// typed, value contains it, the description contains it. Within a rank the given
// order stays.
func rank(all []candidate, typed string) []string {
	typed = strings.ToLower(strings.TrimSpace(typed))
	values := []string{}
	for _, fits := range []func(candidate) bool{
		func(c candidate) bool { return strings.HasPrefix(strings.ToLower(c.value), typed) },
		func(c candidate) bool { return strings.Contains(strings.ToLower(c.value), typed) },
		func(c candidate) bool { return strings.Contains(strings.ToLower(c.also), typed) },
	} {
		for _, c := range all {
			if fits(c) && !slices.Contains(values, c.value) {
				values = append(values, c.value)
			}
		}
	}
	return values
}
