package fabroapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"fabro-mcp/fabroapi/wire"
)

// EventsOptions select events of a run. SinceSeq goes with ascending order,
// BeforeSeq with descending; both may be 0.
type EventsOptions struct {
	// SinceSeq is the first sequence number wanted.
	SinceSeq int64
	// BeforeSeq is the first sequence number not wanted.
	BeforeSeq int64
	// Limit is 1 to 1000; 0 leaves it to the server (100).
	Limit int
	// Desc lists the newest first.
	Desc bool
}

func (o EventsOptions) query() (url.Values, error) {
	switch {
	case o.BeforeSeq > 0 && !o.Desc:
		return nil, errors.New("before_seq requires descending order")
	case o.SinceSeq > 0 && o.Desc:
		return nil, errors.New("since_seq cannot be combined with descending order; use before_seq instead")
	}
	q := url.Values{}
	if o.SinceSeq > 0 {
		q.Set("since_seq", strconv.FormatInt(o.SinceSeq, 10))
	}
	if o.BeforeSeq > 0 {
		q.Set("before_seq", strconv.FormatInt(o.BeforeSeq, 10))
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Desc {
		q.Set("order", "desc")
	}
	return q, nil
}

// Events reads one page of a run's event log.
func (c *Client) Events(ctx context.Context, id string, opts EventsOptions) (*wire.List[wire.EventEnvelope], error) {
	query, err := opts.query()
	if err != nil {
		return nil, err
	}
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	return getList[wire.EventEnvelope](ctx, c, withQuery(runPath(id, "events"), query))
}

// Event reads one event, its long text cut to maxContent characters (1 to
// 200,000; 0 leaves it to the server, 20,000).
func (c *Client) Event(ctx context.Context, id string, seq int64, maxContent int) (*wire.EventDetail, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	query := url.Values{}
	if maxContent > 0 {
		query.Set("max_content_length", strconv.Itoa(maxContent))
	}
	var out wire.EventDetail
	if err := c.get(ctx, withQuery(runPath(id, "events", strconv.FormatInt(seq, 10)), query), &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// maxStagePages bounds how many pages Stages reads of a server that pages.
const maxStagePages = 100

// Stages lists the stages of a run in the order they started.
func (c *Client) Stages(ctx context.Context, id string) ([]wire.RunStage, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	var all []wire.RunStage
	for range maxStagePages {
		page, err := getList[wire.RunStage](ctx, c, withQuery(runPath(id, "stages"), url.Values{
			"page[limit]": {strconv.Itoa(wire.MaxPageLimit)}, "page[offset]": {strconv.Itoa(len(all))}}))
		if err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if !page.Meta.HasMore || len(page.Data) == 0 {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the run has more than %d stages", maxStagePages*wire.MaxPageLimit)
}

// StageEvents reads one page of the events of one stage, oldest first.
func (c *Client) StageEvents(ctx context.Context, id, stageID string, sinceSeq int64, limit int) (*wire.List[wire.EventEnvelope], error) {
	query, err := EventsOptions{SinceSeq: sinceSeq, Limit: limit}.query()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(needID("run id", id), needID("stage id", stageID)); err != nil {
		return nil, err
	}
	return getList[wire.EventEnvelope](ctx, c, withQuery(runPath(id, "stages", stageID, "events"), query))
}

// StageLog reads a part of what a command stage wrote: limit bytes (1 to
// wire.MaxLogLimit; 0 means the default) from offset on.
func (c *Client) StageLog(ctx context.Context, id, stageID string, offset int64, limit int) (*wire.CommandLog, error) {
	if err := errors.Join(needID("run id", id), needID("stage id", stageID)); err != nil {
		return nil, err
	}
	query := url.Values{}
	if offset > 0 {
		query.Set("offset", strconv.FormatInt(offset, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var out wire.CommandLog
	if err := c.get(ctx, withQuery(runPath(id, "stages", stageID, "logs", "output"), query), &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// RunLog reads the log of the worker that executed a run. ErrNotFound when there
// is none.
func (c *Client) RunLog(ctx context.Context, id string) (string, error) {
	if err := needID("run id", id); err != nil {
		return "", err
	}
	text, err := c.text(ctx, runPath(id, "logs"), "text/plain")
	return string(text), err
}

// GraphSource reads the text of a run's graph.
func (c *Client) GraphSource(ctx context.Context, id string) (string, error) {
	if err := needID("run id", id); err != nil {
		return "", err
	}
	text, err := c.text(ctx, runPath(id, "graph", "source"), "text/vnd.graphviz")
	return string(text), err
}

// Artifacts lists the files that a run kept.
func (c *Client) Artifacts(ctx context.Context, id string) ([]wire.Artifact, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	page, err := getList[wire.Artifact](ctx, c, runPath(id, "artifacts"))
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}

// StageArtifact reads one file of a stage. Retry is the attempt that kept it,
// from 0.
func (c *Client) StageArtifact(ctx context.Context, id, stageID, filename string, retry int) ([]byte, error) {
	if err := errors.Join(needID("run id", id), needID("stage id", stageID)); err != nil {
		return nil, err
	}
	return c.text(ctx, withQuery(runPath(id, "stages", stageID, "artifacts", "download"), url.Values{
		"filename": {filename}, "retry": {strconv.Itoa(retry)}}), "application/octet-stream")
}
