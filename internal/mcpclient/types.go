package mcpclient

import (
	"encoding/json"
	"strings"
)

// Info names a program at one end of a conversation.
type Info struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Server is what a server says of itself when a conversation opens.
type Server struct {
	Info         Info
	Revision     string   // in force for this conversation
	Revisions    []string // all that the server speaks, as far as it says
	Capabilities json.RawMessage
	Instructions string
}

// Tool is one entry of tools/list, as far as a caller needs it.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Result is what a tool returned.
type Result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// Text joins the text blocks of the result, one below the other.
func (r *Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Error is a server's refusal of a request.
type Error struct {
	Code    int64 // of JSON-RPC or MCP
	Message string
}

func (e *Error) Error() string { return e.Message }

// Progress is one report of a call that is under way. Total is 0 when the
// server does not know it.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

// Question is what a server wants from the person behind the client.
type Question struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"` // an object of primitive members
}

// Answer is what the person did: Action is accept, decline or cancel, and
// Content, only with accept, has the members that the schema asks for.
type Answer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}
