package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fabro-mcp/protocol"
)

// taskTools can run as tasks, see taskStore.
func (f *fixture) taskTools() []protocol.Tool {
	return []protocol.Tool{
		{
			Name: "greet", Description: "Greets; never a task.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
			Call: func(_ context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Name string `json:"name"`
				}](c)
				return text("Hello, " + in.Name + "!"), err
			},
		},
		{
			Name: "slow_compute", Description: "Computes for so many seconds.", Task: protocol.TaskOptional,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"number","minimum":0,"maximum":600},"label":{"type":"string"}}}`),
			Call: func(ctx context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Seconds float64 `json:"seconds"`
					Label   string  `json:"label"`
				}](c)
				if err != nil {
					return nil, err
				}
				c.Progress(0, in.Seconds, "computing")
				if err := pause(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
					return nil, err
				}
				c.Progress(in.Seconds, in.Seconds, "computed")
				return text(fmt.Sprintf("Computed %s for %g s.", in.Label, in.Seconds)), nil
			},
		},
		{
			Name: "failing_job", Description: "Fails after a second; always a task.", Task: protocol.TaskRequired, InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				if err := pause(ctx, time.Second); err != nil {
					return nil, err
				}
				return nil, errors.New("the job failed, as it always does")
			},
		},
		{
			Name: "protocol_error_job", Description: "Ends in a protocol error.", Task: protocol.TaskOptional, InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				return nil, &protocol.Error{Code: protocol.CodeInternal, Message: "The job broke"}
			},
		},
		{
			Name: "task_required", Description: "Waits so many milliseconds; always a task.", Task: protocol.TaskRequired, InputSchema: json.RawMessage(millis),
			Call: func(ctx context.Context, c *call) (*result, error) { return text("done"), pause(ctx, millisOf(c)) },
		},
		{
			Name: "confirm_delete", Description: "Asks before it deletes nothing.", Task: protocol.TaskOptional,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"filename":{"type":"string"}},"required":["filename"]}`),
			Call: func(ctx context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Filename string `json:"filename"`
				}](c)
				if err != nil {
					return nil, err
				}
				answer, err := c.Elicit(ctx, "confirm", form("Delete "+in.Filename+"?", `{"confirm":{"type":"boolean"}}`, "confirm"))
				if err != nil {
					return nil, err
				}
				if answer.Action != protocol.ActionAccept || answer.Content["confirm"] != true {
					return text("Kept " + in.Filename + "."), nil
				}
				return text("Deleted " + in.Filename + "."), nil
			},
		},
		{
			Name: "multi_input", Description: "Asks two things at once.", Task: protocol.TaskOptional, InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				first, second := form("First?", `{"value":{"type":"string"}}`), form("Second?", `{"value":{"type":"string"}}`)
				responses, err := c.Ask(ctx, protocol.InputRequest{Key: "first", Form: &first}, protocol.InputRequest{Key: "second", Form: &second})
				if err != nil {
					return nil, err
				}
				return text(fmt.Sprintf("%s and %s", responses["first"].Elicit.Action, responses["second"].Elicit.Action)), nil
			},
		},
		{
			Name: "test_tool_with_task", Description: "Asks for a name, then greets from a task.", Task: protocol.TaskRequired, InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				answer, err := c.Elicit(ctx, "user_name", form("What is your name?", `{"name":{"type":"string"}}`, "name"))
				if err != nil {
					return nil, err
				}
				return text(fmt.Sprintf("Hello, %v!", answer.Content["name"])), nil
			},
		},
	}
}

// asksFirst are the tools whose question is put before the task is made.
var asksFirst = map[string]bool{"test_tool_with_task": true}
