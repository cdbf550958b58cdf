package bridge

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// headerParam is a tool argument that a caller repeats as an HTTP header.
type headerParam struct {
	header string   // Mcp-Param-<name>
	path   []string // member names from the arguments' root
}

// headerParams reads the x-mcp-header annotations of an input schema, which
// stand on properties that a chain of properties reaches.
func headerParams(schema json.RawMessage, path []string) []headerParam {
	var s struct {
		Header     string                     `json:"x-mcp-header"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var out []headerParam
	if s.Header != "" && len(path) > 0 {
		out = append(out, headerParam{"Mcp-Param-" + s.Header, path})
	}
	for name, property := range s.Properties {
		out = append(out, headerParams(property, append(path[:len(path):len(path)], name))...)
	}
	return out
}

// argument finds the value at a path and writes it as a header has it. Null is
// as good as absent.
func argument(arguments json.RawMessage, path []string) (text string, present bool) {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(arguments, &object) != nil || object[name] == nil {
			return "", false
		}
		arguments = object[name]
	}
	raw := strings.TrimSpace(string(arguments))
	if raw == "null" {
		return "", false
	}
	if json.Unmarshal(arguments, &text) == nil {
		return text, true
	}
	return raw, true
}

// headerValue decodes the =?base64?…?= form, strictly. Anything without both
// ends of that form stands for itself.
func headerValue(v string) (string, error) {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if ok {
		inner, ok = strings.CutSuffix(inner, "?=")
	}
	if !ok {
		for i := range len(v) {
			if v[i] < 0x20 && v[i] != '\t' || v[i] > 0x7e {
				return "", fmt.Errorf("has the byte 0x%02x, which is to be sent as base64", v[i])
			}
		}
		return v, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil {
		return "", fmt.Errorf("is no valid base64 form")
	}
	return string(b), nil
}

// paramProblem holds the Mcp-Param headers of a tools/call to its arguments.
func (c *child) paramProblem(r *http.Request, m *message) string {
	if m.Method != "tools/call" {
		return ""
	}
	tool, _ := m.name()
	for _, p := range c.toolHeaders(tool) {
		want, present := argument(m.params["arguments"], p.path)
		values := r.Header.Values(p.header)
		switch {
		case !present && len(values) == 0:
		case !present:
			return fmt.Sprintf("the header %s is there, but the body has no such argument", p.header)
		case len(values) == 0:
			return fmt.Sprintf("the header %s is missing; the argument %s is in the body", p.header, strings.Join(p.path, "."))
		default:
			got, err := headerValue(values[0])
			if err != nil {
				return fmt.Sprintf("the header %s %v", p.header, err)
			}
			if got != want {
				return fmt.Sprintf("the header %s is %q and the body says %q", p.header, got, want)
			}
		}
	}
	return ""
}

// toolHeaders asks the server for its tools once, and again after it said that
// they changed.
func (c *child) toolHeaders(tool string) []headerParam {
	c.tools.Lock()
	defer c.tools.Unlock()
	if c.headers == nil {
		c.headers = map[string][]headerParam{}
		cursor := ""
		for range 100 {
			result := c.listTools(cursor)
			for _, t := range result.Tools {
				c.headers[t.Name] = headerParams(t.InputSchema, nil)
			}
			if cursor = result.NextCursor; cursor == "" {
				break
			}
		}
	}
	return c.headers[tool]
}

type toolPage struct {
	Tools []struct {
		Name        string
		InputSchema json.RawMessage
	}
	NextCursor string
}

// listTools asks for one page on the bridge's own account; a server that has no
// answer has no headers.
func (c *child) listTools(cursor string) (page toolPage) {
	params := map[string]any{"_meta": map[string]any{
		metaPrefix + "protocolVersion": "2026-07-28", metaPrefix + "clientCapabilities": map[string]any{},
	}}
	if cursor != "" {
		params["cursor"] = cursor
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params})
	if err != nil {
		return page
	}
	m, err := parseMessage(body)
	if err != nil {
		return page
	}
	x := c.ask(m)
	defer c.forget(x)
	for {
		select {
		case <-x.out.ready():
			for _, item := range x.out.take() {
				if item.final {
					var reply struct{ Result toolPage }
					_ = json.Unmarshal(item.data, &reply) // an error reply has no tools
					return reply.Result
				}
			}
		case <-c.proc.Done():
			return page
		}
	}
}
