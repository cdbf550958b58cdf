package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// request is one call on its way through an operation.
type request struct {
	*host
	tool  *toolSpec
	call  *protocol.ToolCall
	began time.Time
	state roundState
}

// roundState is what a call keeps while the peer collects answers and calls again
// (sealed by the protocol).
type roundState struct {
	// Chosen are values picked for missing arguments, by the argument's path.
	Chosen map[string]string `json:"chosen,omitempty"`
	// Offered are the candidates that were shown for them.
	Offered map[string][]formChoice `json:"offered,omitempty"`
	// Gather is where a gather stands.
	Gather *gatherState `json:"gather,omitempty"`
}

// reply is what an operation answers.
type reply struct {
	text       string
	structured any
	links      []protocol.Content
	// failed marks a result that is an error and still carries what was done.
	failed bool
	// outcome is the audit's word, default "ok".
	outcome string
}

// call decodes, runs and renders one tool call.
func (h *host) call(ctx context.Context, t *toolSpec, call *protocol.ToolCall) (*protocol.ToolResult, error) {
	r := &request{host: h, tool: t, call: call, began: h.now()}
	if _, err := call.State(&r.state); err != nil {
		return nil, err
	}
	op, arguments, err := r.decode(ctx)
	if err != nil {
		return h.finish(nil, err)
	}
	began := h.now()
	out, err := op.run(ctx, r)
	var pending *pendingAsk
	if m, partly := op.(mutator); !t.readOnly && (!partly || m.mutates()) && !errors.As(err, &pending) {
		h.audit.record(r, arguments, began, out, err)
	}
	return h.finish(out, err)
}

// mutates says that a gather changes nothing by itself; the answers it passes on
// are recorded one by one.
func (p *gatherParams) mutates() bool { return false }

func (h *host) finish(out *reply, err error) (*protocol.ToolResult, error) {
	var pending *pendingAsk
	var protocolError *protocol.Error
	switch {
	case errors.As(err, &pending):
		return nil, pending.err // the protocol knows its own error
	case errors.Is(err, context.Canceled), errors.As(err, &protocolError):
		return nil, err
	case err != nil:
		return protocol.ErrorResult(h.sentence(err)), nil
	}
	structured, err := cleanValue(out.structured)
	if err != nil {
		return nil, fmt.Errorf("the result cannot be encoded: %w", err)
	}
	content := append([]protocol.Content{protocol.Text(out.text)}, out.links...)
	return &protocol.ToolResult{Content: content, Structured: structured, IsError: out.failed}, nil
}

// cleanValue encodes a structured value without what a terminal or a model could
// stumble over; what runs wrote may hold anything.
func cleanValue(v any) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	return plain.CleanJSON(text), err
}

// decode reads the arguments. A required one that is missing is asked for where a
// person could choose it and the host can ask.
func (r *request) decode(ctx context.Context) (operation, json.RawMessage, error) {
	arguments := r.call.Arguments
	for {
		op := r.tool.make()
		err := op.fields().Decode(arguments)
		if err == nil {
			err = op.check()
		}
		if err == nil {
			return op, arguments, nil
		}
		var rule *args.Error
		if !errors.As(err, &rule) || rule.Missing == "" || !r.canAsk() {
			return nil, nil, fmt.Errorf("%w.%s", err, r.schemaHint())
		}
		chosen, askErr := r.askMissing(ctx, rule.Missing, arguments)
		switch {
		case errors.Is(askErr, errNoCandidates):
			return nil, nil, fmt.Errorf("%w, and there is nothing that the person could choose from.%s", err, r.schemaHint())
		case askErr != nil:
			return nil, nil, askErr
		}
		if arguments, err = withMissing(arguments, rule.Missing, chosen); err != nil {
			return nil, nil, err
		}
	}
}

// schemaHint closes an error about arguments.
func (r *request) schemaHint() string {
	return " Nothing was done; correct the arguments of " + r.tool.name + " and call again."
}

// client connects to the Fabro API.
func (h *host) client(ctx context.Context) (*fabroapi.Client, error) { return h.cfg.Connect(ctx) }
