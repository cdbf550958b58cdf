package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"
)

// handler takes what the server sends of its own accord.
type handler struct{ c *Client }

// Handle runs in the connection's reading loop. Notifications are handled at
// once, so that progress stays in order and before the reply; a question may
// take a person minutes and gets a goroutine, which ends with the connection.
func (h handler) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if req.Notif {
		if req.Method == "notifications/progress" && req.Params != nil {
			h.c.report(*req.Params)
		}
		return
	}
	go func() {
		result, rpcErr := h.c.serve(ctx, req)
		// A reply that cannot be sent has nobody left to be sent to.
		if rpcErr != nil {
			_ = conn.ReplyWithError(ctx, req.ID, rpcErr)
			return
		}
		_ = conn.Reply(ctx, req.ID, result)
	}()
}

func (c *Client) report(params json.RawMessage) {
	var p struct {
		Token string `json:"progressToken"`
		Progress
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.progress[p.Token]; f != nil {
		f(p.Progress)
	}
}

// serve answers a request of the server: elicitation/create in the revisions
// that send it, and ping.
func (c *Client) serve(ctx context.Context, req *jsonrpc2.Request) (any, *jsonrpc2.Error) {
	switch req.Method {
	case "ping":
		return map[string]any{}, nil
	case "elicitation/create":
		if req.Params == nil {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "params are missing"}
		}
		answer, err := c.answer(ctx, *req.Params)
		if err != nil {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: err.Error()}
		}
		return answer, nil
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "method not found: " + req.Method}
}

func (c *Client) answer(ctx context.Context, params json.RawMessage) (Answer, error) {
	if c.options.Answer == nil {
		return Answer{Action: "cancel"}, nil
	}
	var q Question
	if err := json.Unmarshal(params, &q); err != nil {
		return Answer{}, fmt.Errorf("a question that cannot be read: %w", err)
	}
	return c.options.Answer(ctx, q)
}

// answerAll answers the requests of an input_required result.
func (c *Client) answerAll(ctx context.Context, requests map[string]json.RawMessage) (map[string]any, error) {
	responses := map[string]any{}
	for key, raw := range requests {
		var req struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(raw, &req); err != nil {
			return nil, fmt.Errorf("input request %s cannot be read: %w", key, err)
		}
		if req.Method != "elicitation/create" {
			return nil, fmt.Errorf("input request %s wants %s, which was not declared", key, req.Method)
		}
		answer, err := c.answer(ctx, req.Params)
		if err != nil {
			return nil, err
		}
		responses[key] = answer
	}
	return responses, nil
}
