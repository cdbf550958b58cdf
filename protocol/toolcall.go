package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"unicode"
	"unicode/utf8"
)

func serveToolsCall(r *request, b []byte) ([]byte, error) {
	tool := r.conn.server.tools.Load().called(r)
	if tool == nil {
		name, err := r.stringParam("name")
		if err != nil {
			return b, err
		}
		return b, invalidParams("Unknown tool: %s", clip(name))
	}
	name := tool.Name
	args, err := r.arguments()
	if err != nil {
		return b, err
	}
	r.call = ToolCall{Name: name, Arguments: args, Exchange: &r.x}
	asTask, err := r.wantsTask(tool.Tool)
	if err != nil {
		return b, err
	}
	if err := r.x.openState(); err != nil {
		return b, err
	}
	if !tool.ChecksArguments {
		if fault := tool.input.get().check(args); fault != nil {
			return appendToolError(b, "Invalid arguments for "+name+": "+fault.Error()), nil
		}
	}
	if asTask {
		made, body, err := r.createTask(b, tool)
		if made || err != nil {
			return body, err
		}
	}
	result, cause := r.callTool(tool.Tool)
	return r.appendToolOutcome(b, tool, result, cause)
}

// appendToolOutcome appends what came of a call, or returns the protocol error
// that it ended in.
func (r *request) appendToolOutcome(b []byte, tool *compiledTool, result *ToolResult, cause error) ([]byte, error) {
	if cause != nil {
		return r.appendToolFailure(b, cause)
	}
	r.resultMeta = result.Meta
	return r.appendToolResult(b, tool, result), nil
}

func (r *request) appendToolFailure(b []byte, cause error) ([]byte, error) {
	var wire *Error
	var asked *inputRequired
	switch {
	case errors.As(cause, &asked):
		return r.appendInputRequired(b, asked)
	case errors.As(cause, &wire):
		return b, wire
	}
	return appendToolError(b, cause.Error()), nil
}

// callTool runs the handler. A panic is the tool's failure, not the server's end.
func (r *request) callTool(t *Tool) (result *ToolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.conn.opts.Logger.Error("a tool panicked", "tool", t.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, fmt.Errorf("%s failed: internal error", t.Name)
		}
	}()
	result, err = t.Call(&r.ctx, &r.call)
	if err == nil && result == nil {
		result = &ToolResult{}
	}
	return result, err
}

// appendToolError appends a result whose text tells the model what went wrong.
func appendToolError(b []byte, text string) []byte {
	b = append(key(b, "content"), `[{"type":"text","text":`...)
	b = quote(b, text)
	b = append(b, "}]"...)
	return keyBool(b, "isError", true)
}

// appendToolResult appends a result, its structured part held against the tool's
// output schema.
func (r *request) appendToolResult(b []byte, tool *compiledTool, result *ToolResult) []byte {
	var structured []byte
	if result.Structured != nil {
		m := newMarshaller()
		defer m.free()
		var err error
		if structured, err = m.marshal(result.Structured); err != nil {
			r.conn.opts.Logger.Error("a tool's result cannot be marshalled", "tool", tool.Name, "error", err)
			return appendToolError(b, tool.Name+" failed: its result cannot be written as JSON")
		}
	}
	if tool.OutputSchema != nil {
		fault := errNoStructured
		if structured != nil {
			fault = tool.output.get().check(structured)
		}
		switch {
		case fault == nil:
		case result.IsError:
			structured = nil
		default:
			r.conn.opts.Logger.Error("a tool's result breaks its output schema", "tool", tool.Name, "error", fault)
			return appendToolError(b, tool.Name+" failed: its result does not fit its output schema: "+fault.Error())
		}
	}
	b = append(key(b, "content"), '[')
	for _, c := range result.Content {
		if c != nil {
			b = c.appendContent(comma(b), r.rev)
		}
	}
	if structured != nil && len(result.Content) == 0 {
		b = append(b, `{"type":"text","text":`...)
		b = append(quote(b, structured), '}')
	}
	b = append(b, ']')
	if structured != nil && r.rev.has(featStructured) && (r.rev.has(featAnyStructured) || isObject(structured)) {
		b = keyRaw(b, "structuredContent", structured)
	}
	if result.IsError {
		b = keyBool(b, "isError", true)
	}
	return b
}

var errNoStructured = errors.New("it has no structured content")

func capitalised(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func trimSpace(raw []byte) []byte { return bytes.TrimSpace(raw) }
