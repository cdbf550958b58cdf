package main

import (
	"context"
	"errors"
	"fmt"

	"fabro-mcp/protocol"
)

// inputTools ask in the way of 2026-07-28, with the keys that the official suite
// expects. To sessions the same handlers send requests.
func (f *fixture) inputTools() []protocol.Tool {
	askName := form("What is your name?", `{"name":{"type":"string"}}`, "name")
	confirm := form("Please confirm", `{"ok":{"type":"boolean"}}`, "ok")
	tool := func(name, description string, do func(ctx context.Context, c *call) (*result, error)) protocol.Tool {
		return protocol.Tool{Name: "test_input_required_result_" + name, Description: description, InputSchema: noArguments, Call: do}
	}
	return []protocol.Tool{
		tool("elicitation", "Asks for a name.", func(ctx context.Context, c *call) (*result, error) {
			answer, err := c.Elicit(ctx, "user_name", askName)
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprintf("Hello, %v!", answer.Content["name"])), nil
		}),
		tool("sampling", "Asks the client's model.", func(ctx context.Context, c *call) (*result, error) {
			responses, err := c.Ask(ctx, protocol.InputRequest{Key: "capital_question", Sampling: sampling("What is the capital of France?", 100)})
			if err != nil {
				return nil, err
			}
			said, err := sampled(responses["capital_question"].Raw)
			return text(said), err
		}),
		tool("list_roots", "Asks for the roots.", func(ctx context.Context, c *call) (*result, error) {
			responses, err := c.Ask(ctx, protocol.InputRequest{Key: "client_roots", Roots: true})
			if err != nil {
				return nil, err
			}
			list, err := rootsOf(responses["client_roots"].Raw)
			return text(list), err
		}),
		tool("request_state", "Keeps state between two rounds.", func(ctx context.Context, c *call) (*result, error) {
			var kept string
			secondRound, err := c.State(&kept)
			if err != nil {
				return nil, err
			}
			c.SetState("kept")
			if _, err := c.Elicit(ctx, "confirm", confirm); err != nil {
				return nil, err
			}
			if secondRound && kept != "kept" {
				return nil, errors.New("the state of the first round came back changed")
			}
			return text("state-ok"), nil
		}),
		tool("multiple_inputs", "Asks three things at once.", func(ctx context.Context, c *call) (*result, error) {
			responses, err := c.Ask(ctx,
				protocol.InputRequest{Key: "user_name", Form: &askName},
				protocol.InputRequest{Key: "greeting", Sampling: sampling("Generate a greeting", 50)},
				protocol.InputRequest{Key: "client_roots", Roots: true})
			if err != nil {
				return nil, err
			}
			greeting, err := sampled(responses["greeting"].Raw)
			if err != nil {
				return nil, err
			}
			list, err := rootsOf(responses["client_roots"].Raw)
			return text(fmt.Sprintf("%s %v. %s", greeting, responses["user_name"].Elicit.Content["name"], list)), err
		}),
		tool("multi_round", "Asks twice.", func(ctx context.Context, c *call) (*result, error) {
			name, err := c.Elicit(ctx, "step1", form("Step 1: What is your name?", `{"name":{"type":"string"}}`, "name"))
			if err != nil {
				return nil, err
			}
			color, err := c.Elicit(ctx, "step2", form("Step 2: What is your favorite color?", `{"color":{"type":"string"}}`, "color"))
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprintf("%v likes %v.", name.Content["name"], color.Content["color"])), nil
		}),
		tool("tampered_state", "Keeps state that must not be altered.", func(ctx context.Context, c *call) (*result, error) {
			c.SetState("sealed")
			if _, err := c.Elicit(ctx, "confirm", confirm); err != nil {
				return nil, err
			}
			return text("The state was intact."), nil
		}),
		tool("capabilities", "Asks whatever the client can answer.", func(ctx context.Context, c *call) (*result, error) {
			var questions []protocol.InputRequest
			for _, q := range []struct {
				kind protocol.InputKind
				ask  protocol.InputRequest
			}{
				{protocol.InputForm, protocol.InputRequest{Key: "user_name", Form: &askName}},
				{protocol.InputSampling, protocol.InputRequest{Key: "greeting", Sampling: sampling("Generate a greeting", 50)}},
				{protocol.InputRoots, protocol.InputRequest{Key: "client_roots", Roots: true}},
			} {
				if c.CanAsk(q.kind) {
					questions = append(questions, q.ask)
				}
			}
			if questions == nil {
				return text("The client can answer nothing."), nil
			}
			responses, err := c.Ask(ctx, questions...)
			return text(fmt.Sprintf("%d answers.", len(responses))), err
		}),
	}
}
