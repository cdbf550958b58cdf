// Package mcpclient is a small MCP client: enough to connect to a server of
// either era, list its tools, call one and answer what it asks. The demo,
// `fabro mcp call` and probes of a host's configuration use it.
//
// Messages travel over a jsonrpc2.Conn. Ids are strings chosen here, because
// that type knows no others that every server echoes faithfully.
package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"
)

// Revisions that the client speaks: one per request, and one by handshake.
const (
	Modern = "2026-07-28" // server/discover, everything in each request's _meta
	Legacy = "2025-06-18" // initialize; what most hosts speak
)

// maxRounds bounds how often one call may ask for further input.
const maxRounds = 32

// Options say who the client is and what it can do for a server.
type Options struct {
	Name, Version string
	// Answer is asked when the server wants something from a person. Nil: the
	// client declares that it can ask nobody.
	Answer func(ctx context.Context, question Question) (Answer, error)
}

// Client talks to one server. Its methods may be called concurrently once
// Discover or Initialize has returned.
type Client struct {
	conn    *jsonrpc2.Conn
	options Options
	modern  bool
	ids     atomic.Int64

	mu       sync.Mutex // protects progress
	progress map[string]func(Progress)
}

// New starts a client on the stream and owns it from then on: Close closes it.
func New(ctx context.Context, stream jsonrpc2.ObjectStream, options Options) *Client {
	c := &Client{options: options, progress: map[string]func(Progress){}}
	c.conn = jsonrpc2.NewConn(ctx, stream, handler{c})
	return c
}

// Close ends the connection. A server on a pipe sees the end of its input.
func (c *Client) Close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, jsonrpc2.ErrClosed) {
		return err
	}
	return nil
}

// Discover opens the conversation as hosts of 2026-07-28 do.
func (c *Client) Discover(ctx context.Context) (*Server, error) {
	c.modern = true
	var result struct {
		SupportedVersions []string        `json:"supportedVersions"`
		Capabilities      json.RawMessage `json:"capabilities"`
		Instructions      string          `json:"instructions"`
		Meta              struct {
			ServerInfo Info `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := c.call(ctx, "server/discover", map[string]any{}, &result, nil); err != nil {
		c.modern = false
		return nil, err
	}
	return &Server{Info: result.Meta.ServerInfo, Revision: Modern, Revisions: result.SupportedVersions,
		Capabilities: result.Capabilities, Instructions: result.Instructions}, nil
}

// Initialize opens the conversation by the handshake of earlier revisions.
func (c *Client) Initialize(ctx context.Context, revision string) (*Server, error) {
	c.modern = false
	var result struct {
		ProtocolVersion string          `json:"protocolVersion"`
		ServerInfo      Info            `json:"serverInfo"`
		Capabilities    json.RawMessage `json:"capabilities"`
		Instructions    string          `json:"instructions"`
	}
	params := map[string]any{
		"protocolVersion": revision,
		"capabilities":    c.capabilities(),
		"clientInfo":      c.info(),
	}
	if err := c.call(ctx, "initialize", params, &result, nil); err != nil {
		return nil, err
	}
	if err := c.conn.Notify(ctx, "notifications/initialized", map[string]any{}); err != nil {
		return nil, err
	}
	return &Server{Info: result.ServerInfo, Revision: result.ProtocolVersion, Revisions: []string{result.ProtocolVersion},
		Capabilities: result.Capabilities, Instructions: result.Instructions}, nil
}

// ListTools returns all tools, following the pages of the list.
func (c *Client) ListTools(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	params := map[string]any{}
	for range 1000 {
		var page struct {
			Tools      []Tool `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := c.call(ctx, "tools/list", params, &page, nil); err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		if page.NextCursor == "" {
			return tools, nil
		}
		params = map[string]any{"cursor": page.NextCursor}
	}
	return nil, errors.New("tools/list never came to an end: 1000 pages, each with a further cursor")
}

// CallTool calls a tool and answers what it asks meanwhile. A tool that failed
// is a Result with IsError; the error is for a call that got no result.
// progress, if not nil, is called in order and never after CallTool returns.
func (c *Client) CallTool(ctx context.Context, name string, arguments any, progress func(Progress)) (*Result, error) {
	params := map[string]any{"name": name, "arguments": arguments}
	for range maxRounds {
		var result struct {
			Result
			ResultType    string                     `json:"resultType"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
			RequestState  string                     `json:"requestState"`
		}
		if err := c.call(ctx, "tools/call", params, &result, progress); err != nil {
			return nil, err
		}
		if result.ResultType != "input_required" {
			return &result.Result, nil
		}
		responses, err := c.answerAll(ctx, result.InputRequests)
		if err != nil {
			return nil, err
		}
		params = map[string]any{"name": name, "arguments": arguments, "inputResponses": responses}
		if result.RequestState != "" {
			params["requestState"] = result.RequestState
		}
	}
	return nil, fmt.Errorf("tool %s asked for input %d times without ending", name, maxRounds)
}

// call sends one request. When ctx ends first, the server is told that nobody
// waits for the answer any more.
func (c *Client) call(ctx context.Context, method string, params map[string]any, result any, progress func(Progress)) error {
	id := "c" + strconv.FormatInt(c.ids.Add(1), 10)
	meta := map[string]any{}
	if c.modern {
		meta["io.modelcontextprotocol/protocolVersion"] = Modern
		meta["io.modelcontextprotocol/clientCapabilities"] = c.capabilities()
		meta["io.modelcontextprotocol/clientInfo"] = c.info()
	}
	if progress != nil {
		meta["progressToken"] = id
		c.mu.Lock()
		c.progress[id] = progress
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			delete(c.progress, id)
			c.mu.Unlock()
		}()
	}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	err := c.conn.Call(ctx, method, params, result, jsonrpc2.PickID(jsonrpc2.ID{Str: id, IsString: true}))
	if err != nil && ctx.Err() != nil {
		// The connection may be gone as well; then there is nobody to tell.
		_ = c.conn.Notify(context.WithoutCancel(ctx), "notifications/cancelled", map[string]any{"requestId": id})
		return ctx.Err()
	}
	if errors.Is(err, jsonrpc2.ErrClosed) {
		return fmt.Errorf("%s: the server closed the connection before it answered", method)
	}
	var refused *jsonrpc2.Error
	if errors.As(err, &refused) {
		return &Error{Code: refused.Code, Message: refused.Message}
	}
	return err
}

func (c *Client) info() Info { return Info{Name: c.options.Name, Version: c.options.Version} }

func (c *Client) capabilities() map[string]any {
	if c.options.Answer == nil {
		return map[string]any{}
	}
	return map[string]any{"elicitation": map[string]any{}}
}
