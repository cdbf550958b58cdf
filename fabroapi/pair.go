package fabroapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"fabro-mcp/fabroapi/wire"
)

// PairStatus says which conversation is open and with which stages one can
// pair.
func (c *Client) PairStatus(ctx context.Context, id string) (*wire.PairStatus, error) {
	var out wire.PairStatus
	if err := c.runGet(ctx, id, &out, "pair"); err != nil {
		return nil, err
	}
	return &out, nil
}

// PairStart opens a conversation with the agent of a stage.
func (c *Client) PairStart(ctx context.Context, id, stageID string) (*wire.PairRecord, error) {
	return pairCall[wire.PairRecord](ctx, c, http.MethodPost, id, wire.PairStartRequest{StageID: stageID}, false, "pair")
}

// PairGet reads one conversation's record.
func (c *Client) PairGet(ctx context.Context, id, pairID string) (*wire.PairRecord, error) {
	return pairCall[wire.PairRecord](ctx, c, http.MethodGet, id, nil, true, "pair", pairID)
}

// PairMessage says something. With a clientMessageID, which may be empty, the
// server takes the same message only once.
func (c *Client) PairMessage(ctx context.Context, id, pairID, text, clientMessageID string) (*wire.PairMessage, error) {
	return pairCall[wire.PairMessage](ctx, c, http.MethodPost, id, wire.PairMessageRequest{Text: text, ClientMessageID: clientMessageID},
		clientMessageID != "", "pair", pairID, "messages")
}

// PairEnd ends a conversation.
func (c *Client) PairEnd(ctx context.Context, id, pairID string) (*wire.PairRecord, error) {
	return pairCall[wire.PairRecord](ctx, c, http.MethodDelete, id, nil, false, "pair", pairID)
}

// PairTranscript reads what was said, from sinceSeq on. 0 leaves sinceSeq (1)
// and limit (100, at most 1000) to the server.
func (c *Client) PairTranscript(ctx context.Context, id, pairID string, sinceSeq int64, limit int) (*wire.PairTranscript, error) {
	if err := needID("pair id", pairID); err != nil {
		return nil, err
	}
	query := url.Values{}
	if sinceSeq > 0 {
		query.Set("since_seq", strconv.FormatInt(sinceSeq, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	var out wire.PairTranscript
	if err := c.get(ctx, withQuery(runPath(id, "pair", pairID, "transcript"), query), &out); err != nil {
		return nil, err
	}
	return &out, nil
}

func pairCall[T any](ctx context.Context, c *Client, method, id string, body any, safe bool, rest ...string) (*T, error) {
	if err := needID("run id", id); err != nil {
		return nil, err
	}
	for _, part := range rest {
		if err := needID("pair id", part); err != nil {
			return nil, err
		}
	}
	var out T
	if err := c.call(ctx, request{method: method, path: wire.APIPrefix + runPath(id, rest...), body: body, safe: safe}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}
