package main

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"fabro-mcp/protocol"
)

// fixture is what the tools share.
type fixture struct {
	server  *protocol.Server
	logger  *slog.Logger
	counter atomic.Int64
	tasks   *taskStore
	once    *marks // states that were used
	handles *marks

	changing    sync.Mutex // protects the fields below
	moreTools   bool
	morePrompts bool
}

// noArguments is the schema of a tool that takes nothing.
var noArguments = json.RawMessage(`{"type":"object","additionalProperties":false}`)

// newServer puts the server together.
func newServer(s settings, logger *slog.Logger) (*protocol.Server, error) {
	f := &fixture{logger: logger}
	server := &protocol.Server{
		Info: protocol.Implementation{
			Name: "mcp-fixture", Title: "MCP fixture", Version: "1.0.0",
			Description: "A server for tests of MCP clients and harnesses.",
			Icons:       []protocol.Icon{{Src: "data:image/png;base64," + tinyPNGText, MIMEType: "image/png", Sizes: []string{"1x1"}}},
		},
		Options: protocol.Options{
			MaxMessageBytes: s.maxMessage, MaxResultBytes: s.maxResult, MaxHandlers: s.maxHandlers, MaxQueued: s.handlersQueue,
			PageSize: s.pageSize, StateTTL: s.stateTTL, ListTTL: s.listTTL, DrainGrace: s.drain, Logger: logger,
		},
	}
	f.server = server
	if s.modernOnly {
		server.Options.Revisions = []string{"2026-07-28"}
	}
	if s.minimal {
		return server, server.Check()
	}
	var err error
	if f.handles, err = openMarks(s.stateDir, "handles"); err != nil {
		return nil, err
	}
	if f.once, err = openMarks(s.stateDir, "used"); err != nil {
		return nil, err
	}
	if s.stateDir != "" {
		server.Sealer = protocol.NewFileSealer(filepath.Join(s.stateDir, "state.key"))
	}
	server.Instructions = "A server for tests. Each tool does what its description says, nothing else."
	server.Logging = true
	server.Completions = completer{}
	server.Resources = resources{}
	server.Prompts = f.prompts()
	for _, tools := range [][]protocol.Tool{f.plainTools(), f.oddTools(), f.officialTools(), f.askingTools(), f.inputTools(), f.taskTools()} {
		server.Tools = append(server.Tools, tools...)
	}
	if s.noTasks {
		for i := range server.Tools {
			server.Tools[i].Task = protocol.TaskNever
		}
	} else {
		if f.tasks, err = openTaskStore(s.stateDir, f); err != nil {
			return nil, err
		}
		server.Tasks = f.tasks
	}
	return server, server.Check()
}

// text is a result of one line.
func text(s string) *protocol.ToolResult {
	return &protocol.ToolResult{Content: []protocol.Content{protocol.Text(s)}}
}
