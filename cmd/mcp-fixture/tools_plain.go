package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"fabro-mcp/protocol"
)

type (
	call   = protocol.ToolCall
	result = protocol.ToolResult
)

// arguments decodes the arguments of a call, which the engine has held against the
// tool's schema.
func arguments[T any](c *call) (v T, err error) {
	return v, json.Unmarshal(c.Arguments, &v)
}

// plainTools do one harmless thing each.
func (f *fixture) plainTools() []protocol.Tool {
	yes, no := true, false
	return []protocol.Tool{
		{
			Name: "echo", Title: "Echo", Description: "Gives the text back.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"what to give back"}},"required":["text"],"additionalProperties":false}`),
			Annotations: &protocol.ToolAnnotations{Title: "Echo", ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
			Icons:       []protocol.Icon{{Src: "data:image/png;base64," + tinyPNGText, MIMEType: "image/png", Sizes: []string{"any"}, Theme: "light"}},
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Text string `json:"text"`
				}](c)
				return text(in.Text), err
			},
		},
		{
			Name: "echo_json", Description: "Gives its arguments back as they were written, digits and all.", InputSchema: json.RawMessage(`{"type":"object"}`),
			Call: func(_ context.Context, c *call) (*result, error) { return text(string(c.Arguments)), nil },
		},
		{
			Name: "noargs", Description: "Takes no arguments.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) { return text("ok"), nil },
		},
		{
			Name: "opt", Description: "Has an optional argument.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"limit":{"type":["integer","null"],"minimum":1,"maximum":100,"default":10}},"required":["a"],"additionalProperties":false}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					A     string `json:"a"`
					Limit *int   `json:"limit"`
				}](c)
				limit := 10
				if in.Limit != nil {
					limit = *in.Limit
				}
				return text(fmt.Sprintf("a=%s limit=%d", in.A, limit)), err
			},
		},
		{
			Name: "structured", Description: "Doubles a number.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"double":{"type":"integer"}},"required":["n","double"]}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					N int `json:"n"`
				}](c)
				return &result{Structured: map[string]int{"n": in.N, "double": 2 * in.N}}, err
			},
		},
		{
			Name: "structured_list", Description: "Counts to n (at most 1000).",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":1000}},"required":["n"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"integer"}}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					N int `json:"n"`
				}](c)
				list := make([]int, in.N)
				for i := range list {
					list[i] = i + 1
				}
				return &result{Structured: list}, err
			},
		},
		{
			Name: "link", Description: "Points to a resource.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				return &result{Content: []protocol.Content{protocol.ResourceLink{URI: "test://static-text", Name: "static-text", Title: "Static text", MIMEType: "text/plain"}}}, nil
			},
		},
		{
			Name: "with_meta", Description: "Adds a key of its own to the result's _meta.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				return &result{Content: []protocol.Content{protocol.Text("ok")}, Meta: map[string]any{"com.example/own": map[string]any{"kept": true}}}, nil
			},
		},
		{
			Name: "region", Description: "Says which region was asked for; over HTTP the region is also a header.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"],"additionalProperties":false}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Region string `json:"region"`
				}](c)
				return text("region " + in.Region), err
			},
		},
		{
			Name: "counter_inc", Description: "Counts up by one.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) { return text(fmt.Sprint(f.counter.Add(1))), nil },
		},
		{
			Name: "counter_get", Description: "Says how far the counter is.", InputSchema: noArguments,
			Annotations: &protocol.ToolAnnotations{ReadOnly: &yes},
			Call:        func(context.Context, *call) (*result, error) { return text(fmt.Sprint(f.counter.Load())), nil },
		},
		{
			Name: "handle_open", Description: "Returns a handle for handle_use.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				handle := randomName()
				return text(handle), f.handles.set(handle)
			},
		},
		{
			Name: "handle_use", Description: "Uses a handle of handle_open.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"handle":{"type":"string"}},"required":["handle"],"additionalProperties":false}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Handle string `json:"handle"`
				}](c)
				if err == nil && !f.handles.has(in.Handle) {
					err = errors.New("this handle is unknown or has expired; call handle_open for a new one")
				}
				return text("used"), err
			},
		},
		{
			Name: "steps", Description: "Reports n steps of progress (3 where n is absent).",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":100000},"ms":{"type":"integer","minimum":0,"description":"pause between steps"}},"additionalProperties":false}`),
			Call:        steps,
		},
		{
			Name: "log_levels", Description: "Logs one message at each level.", InputSchema: noArguments,
			Call: func(_ context.Context, c *call) (*result, error) {
				for l := protocol.LevelDebug; l <= protocol.LevelEmergency; l++ {
					c.Log(l, "fixture", "a message at level "+l.String())
				}
				return text("logged"), nil
			},
		},
		{
			Name: "log_burst", Description: "Logs n messages as fast as it can.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":100000}},"required":["n"],"additionalProperties":false}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					N int `json:"n"`
				}](c)
				for i := range in.N {
					c.Log(protocol.LevelInfo, "fixture", fmt.Sprint("message ", i))
				}
				return text("logged"), err
			},
		},
		{
			Name: "blob", Description: "Returns a text of so many bytes.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"bytes":{"type":"integer","minimum":0,"maximum":100000000}},"required":["bytes"],"additionalProperties":false}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Bytes int `json:"bytes"`
				}](c)
				return text(strings.Repeat("x", in.Bytes)), err
			},
		},
	}
}

func steps(ctx context.Context, c *call) (*result, error) {
	in, err := arguments[struct {
		N  *int `json:"n"`
		MS int  `json:"ms"`
	}](c)
	if err != nil {
		return nil, err
	}
	n := 3
	if in.N != nil {
		n = *in.N
	}
	for i := 1; i <= n; i++ {
		if err := pause(ctx, time.Duration(in.MS)*time.Millisecond); err != nil {
			return nil, err
		}
		c.Progress(float64(i), float64(n), fmt.Sprintf("step %d of %d", i, n))
	}
	// A reporter that is still at work after the reply must not be heard.
	go func() {
		for i := range 5 {
			c.Progress(float64(n+1+i), float64(n+5), "too late")
			time.Sleep(time.Millisecond)
		}
	}()
	return text(fmt.Sprintf("%d steps", n)), nil
}

// pause waits unless the call is cancelled.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
