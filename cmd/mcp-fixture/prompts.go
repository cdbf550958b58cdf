package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fabro-mcp/protocol"
)

func user(c protocol.Content) protocol.PromptMessage {
	return protocol.PromptMessage{Role: "user", Content: c}
}

func (f *fixture) prompts() []protocol.Prompt {
	constant := func(name, description string, messages ...protocol.PromptMessage) protocol.Prompt {
		return protocol.Prompt{Name: name, Description: description, Get: func(context.Context, *protocol.PromptCall) (*protocol.PromptResult, error) {
			return &protocol.PromptResult{Description: description, Messages: messages}, nil
		}}
	}
	return []protocol.Prompt{
		constant("test_simple_prompt", "A prompt of one text.", user(protocol.Text("This is a simple prompt for testing."))),
		{
			Name: "test_prompt_with_arguments", Title: "Prompt with arguments", Description: "A prompt that takes two arguments.",
			Arguments: []protocol.PromptArgument{{Name: "arg1", Description: "First test argument", Required: true}, {Name: "arg2", Description: "Second test argument", Required: true}},
			Get: func(_ context.Context, c *protocol.PromptCall) (*protocol.PromptResult, error) {
				return &protocol.PromptResult{Messages: []protocol.PromptMessage{user(protocol.Text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", c.Arguments["arg1"], c.Arguments["arg2"])))}}, nil
			},
		},
		{
			Name: "test_prompt_with_embedded_resource", Description: "A prompt that embeds a resource.",
			Arguments: []protocol.PromptArgument{{Name: "resourceUri", Description: "URI of the resource to embed", Required: true}},
			Get: func(_ context.Context, c *protocol.PromptCall) (*protocol.PromptResult, error) {
				return &protocol.PromptResult{Messages: []protocol.PromptMessage{
					user(protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: c.Arguments["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}}),
					user(protocol.Text("Please process the embedded resource above.")),
				}}, nil
			},
		},
		constant("test_prompt_with_image", "A prompt with an image.", user(protocol.ImageContent{Data: tinyPNG, MIMEType: "image/png"}), user(protocol.Text("Please analyze the image above."))),
		constant("test_prompt_with_audio", "A prompt with a sound.", user(protocol.AudioContent{Data: tinyWAV, MIMEType: "audio/wav"})),
		{
			Name: "test_input_required_result_prompt", Description: "A prompt that asks for its context.",
			Get: func(ctx context.Context, c *protocol.PromptCall) (*protocol.PromptResult, error) {
				answer, err := c.Elicit(ctx, "user_context", form("What context should the prompt use?", `{"context":{"type":"string"}}`, "context"))
				if err != nil {
					return nil, err
				}
				return &protocol.PromptResult{Messages: []protocol.PromptMessage{user(protocol.Text(fmt.Sprint("Context: ", answer.Content["context"])))}}, nil
			},
		},
		{
			Name: "broken_prompt", Description: "A prompt that fails.",
			Get: func(context.Context, *protocol.PromptCall) (*protocol.PromptResult, error) {
				return nil, errors.New("the prompt could not be made")
			},
		},
	}
}

// completer completes the arguments of prompts from a list of words.
type completer struct{}

var words = []string{"paris", "park", "party", "perth", "porto", "prague", "rome", "rotterdam"}

func (completer) Complete(_ context.Context, req *protocol.CompletionRequest) (*protocol.Completion, error) {
	found := &protocol.Completion{Values: []string{}}
	for _, w := range words {
		// The second argument is never the same as the first.
		if strings.HasPrefix(w, req.Value) && req.Context["arg1"] != w {
			found.Values = append(found.Values, w)
		}
	}
	found.Total = len(found.Values)
	return found, nil
}
