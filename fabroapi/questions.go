package fabroapi

import (
	"context"
	"net/url"
	"strconv"

	"fabro-mcp/fabroapi/wire"
)

// Questions lists the open questions of a run, all of them: servers accept page
// parameters here and ignore them.
func (c *Client) Questions(ctx context.Context, id string) ([]wire.Question, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	page, err := getList[wire.Question](ctx, c, withQuery(runPath(id, "questions"), url.Values{
		"page[limit]": {strconv.Itoa(wire.MaxPageLimit)}, "page[offset]": {"0"}}))
	if err != nil {
		return nil, err
	}
	return page.Data, nil
}

// Answer answers a question. ErrConflict means that it was answered already.
func (c *Client) Answer(ctx context.Context, id, questionID string, answer wire.SubmitAnswer) error {
	if err := needID("question id", questionID); err != nil {
		return err
	}
	return c.post(ctx, id, answer, "questions", questionID, "answer")
}
