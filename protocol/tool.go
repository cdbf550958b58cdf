package protocol

import (
	"context"
	"encoding/json"
	"fmt"
)

// Tool is something the model can call.
type Tool struct {
	Name, Title, Description string
	// InputSchema is a JSON Schema with "type":"object" at its root. Required.
	InputSchema json.RawMessage
	// OutputSchema describes ToolResult.Structured; nil is absent. Peers of
	// revisions that only know objects see it only if its root is one.
	OutputSchema json.RawMessage
	Annotations  *ToolAnnotations
	Icons        []Icon
	Meta         json.RawMessage // _meta of the definition, an object; nil is absent
	// ChecksArguments says that Call checks its arguments itself. Otherwise the
	// engine holds them against InputSchema and answers a result with isError.
	ChecksArguments bool
	// Waits says that calls mostly wait for something: they do not count among
	// the handlers that work.
	Waits bool
	// Task says whether calls can become tasks, where the server has a
	// TaskProvider.
	Task TaskSupport
	// Call runs the tool. A plain error becomes a result with isError and its
	// text; an *Error becomes a protocol error; an error of [Exchange.Ask] must be
	// returned unchanged.
	Call func(ctx context.Context, call *ToolCall) (*ToolResult, error)
}

// ToolAnnotations are hints; clients do not trust them. A nil hint is absent.
type ToolAnnotations struct {
	Title                                        string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// TaskSupport says whether a tool's calls can become tasks.
type TaskSupport uint8

const (
	TaskNever    TaskSupport = iota // calls are answered directly
	TaskOptional                    // calls become tasks for peers that can follow one
	TaskRequired                    // peers that cannot follow a task are refused
)

// ToolCall is one call of a tool.
type ToolCall struct {
	Name string
	// Arguments is always an object; {} when the peer sent none. It stays valid.
	Arguments json.RawMessage
	*Exchange
}

// ToolResult is what a tool gives back.
type ToolResult struct {
	Content []Content
	// Structured is marshalled by encoding/json; nil is absent. A tool with an
	// OutputSchema must give it, and it must conform. Where Content is empty the
	// engine adds the JSON as text.
	Structured any
	IsError    bool
	Meta       map[string]any
}

// ErrorResult returns a result that tells the model what went wrong.
func ErrorResult(text string) *ToolResult {
	return &ToolResult{Content: []Content{Text(text)}, IsError: true}
}

// append renders the definition.
func (t *Tool) append(b []byte, rev *revision, tasks bool) ([]byte, error) {
	b = append(b, '{')
	b = keyString(b, "name", t.Name)
	if rev.has(featTitles) {
		b = keyText(b, "title", t.Title)
	}
	b = keyText(b, "description", t.Description)
	schema, err := compact(t.InputSchema)
	if err != nil {
		return b, err
	}
	b = keyRaw(b, "inputSchema", schema)
	if t.OutputSchema != nil && rev.has(featStructured) {
		schema, err := compact(t.OutputSchema)
		if err != nil {
			return b, err
		}
		if rev.has(featAnyStructured) || string(field(schema, "type")) == `"object"` {
			b = keyRaw(b, "outputSchema", schema)
		}
	}
	if a := t.Annotations; a != nil && rev.has(featToolAnnotations) {
		b = append(key(b, "annotations"), '{')
		b = keyText(b, "title", a.Title)
		for _, hint := range []struct {
			name  string
			value *bool
		}{{"readOnlyHint", a.ReadOnly}, {"destructiveHint", a.Destructive}, {"idempotentHint", a.Idempotent}, {"openWorldHint", a.OpenWorld}} {
			if hint.value != nil {
				b = keyBool(b, hint.name, *hint.value)
			}
		}
		b = append(b, '}')
	}
	if rev.has(featIcons) {
		b = appendIcons(b, t.Icons)
	}
	if rev.has(featCoreTasks) && tasks && t.Task != TaskNever {
		support := "optional"
		if t.Task == TaskRequired {
			support = "required"
		}
		b = append(keyString(append(key(b, "execution"), '{'), "taskSupport", support), '}')
	}
	if rev.has(featTitles) && t.Meta != nil {
		meta, err := compact(t.Meta)
		if err != nil {
			return b, err
		}
		b = keyRaw(b, "_meta", meta)
	}
	return append(b, '}'), nil
}

// check finds what is wrong with a definition.
func (t *Tool) check() error {
	if err := checkToolName(t.Name); err != nil {
		return err
	}
	if t.Call == nil {
		return fmt.Errorf("tool %s: Call is missing", t.Name)
	}
	var s scanner
	if s.scan(t.InputSchema, nil, nil) != scanOK || string(field(t.InputSchema, "type")) != `"object"` {
		return fmt.Errorf(`tool %s: the input schema must be a JSON object with "type":"object"`, t.Name)
	}
	if t.OutputSchema != nil && (s.scan(t.OutputSchema, nil, nil) != scanOK || !isObject(t.OutputSchema[skipSpace(t.OutputSchema, 0):])) {
		return fmt.Errorf("tool %s: the output schema must be a JSON object", t.Name)
	}
	if t.Meta != nil && (s.scan(t.Meta, nil, nil) != scanOK || !isObject(t.Meta[skipSpace(t.Meta, 0):])) {
		return fmt.Errorf("tool %s: _meta must be a JSON object", t.Name)
	}
	return nil
}

// maxToolName keeps names within what clients that add a prefix can pass on.
const maxToolName = 64

func checkToolName(name string) error {
	if name == "" || len(name) > maxToolName {
		return fmt.Errorf("tool name %q: must have 1 to %d characters", clip(name), maxToolName)
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return fmt.Errorf("tool name %q: only letters, digits, _ and - are understood by every client", name)
		}
	}
	return nil
}
