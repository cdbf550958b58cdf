package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"fabro-mcp/protocol"
)

// form returns a form with these properties, of which some are required.
func form(message, properties string, required ...string) protocol.ElicitForm {
	names, _ := json.Marshal(required)
	if required == nil {
		names = []byte("[]")
	}
	return protocol.ElicitForm{Message: message, Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":%s,"required":%s}`, properties, names))}
}

// asks returns a tool without arguments that asks for one form and reports the
// answer.
func asks(name, description, key string, f protocol.ElicitForm) protocol.Tool {
	return protocol.Tool{Name: name, Description: description, InputSchema: noArguments, Call: func(ctx context.Context, c *call) (*result, error) {
		answer, err := c.Elicit(ctx, key, f)
		if err != nil {
			return nil, err
		}
		return reportAnswer(answer)
	}}
}

func reportAnswer(a protocol.ElicitAnswer) (*result, error) {
	if a.Action != protocol.ActionAccept {
		return text("Elicitation completed: action=" + a.Action), nil
	}
	content, err := json.Marshal(a.Content)
	return text("Elicitation completed: action=accept, content=" + string(content)), err
}

func sampling(prompt string, maxTokens int) json.RawMessage {
	params, _ := json.Marshal(map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": prompt}}},
		"maxTokens": maxTokens,
	})
	return params
}

// sampled is the text of a message that the client's model wrote.
func sampled(raw json.RawMessage) (string, error) {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", err
	}
	var blocks []block
	if json.Unmarshal(m.Content, &blocks) != nil {
		blocks = make([]block, 1)
		if err := json.Unmarshal(m.Content, &blocks[0]); err != nil {
			return "", fmt.Errorf("the client's message has no usable content: %w", err)
		}
	}
	var parts []string
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n"), nil
}

// rootsOf lists the uris of a roots/list result.
func rootsOf(raw json.RawMessage) (string, error) {
	var m struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", err
	}
	uris := make([]string, len(m.Roots))
	for i, r := range m.Roots {
		uris[i] = r.URI
	}
	return "Roots: " + strings.Join(uris, ", "), nil
}

// askingTools put questions to the client, in whatever way it is asked.
func (f *fixture) askingTools() []protocol.Tool {
	return []protocol.Tool{
		{
			Name: "ask", Description: "Asks for a name and says it.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				answer, err := c.Elicit(ctx, "name", form("What is your name?", `{"name":{"type":"string","title":"Name","minLength":1}}`, "name"))
				if err != nil {
					return nil, err
				}
				if answer.Action != protocol.ActionAccept {
					return text("No name: " + answer.Action), nil
				}
				return text(fmt.Sprint("Hello, ", answer.Content["name"])), nil
			},
		},
		asks("ask_age", "Asks for an age.", "age", form("How old are you?", `{"age":{"type":"integer","minimum":0,"maximum":150}}`, "age")),
		{
			Name: "ask_once", Description: "Asks for a confirmation that is good once.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				var ticket string
				if known, err := c.State(&ticket); err != nil {
					return nil, err
				} else if !known {
					ticket = randomName()
					c.SetState(ticket)
				}
				answer, err := c.Elicit(ctx, "confirm", form("Really?", `{"confirm":{"type":"boolean"}}`, "confirm"))
				if err != nil {
					return nil, err
				}
				if err := f.once.set(ticket); err != nil {
					return nil, errors.New("this confirmation was used before; call the tool again without requestState")
				}
				return reportAnswer(answer)
			},
		},
		{
			Name: "ask_url", Description: "Asks to open a page.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				responses, err := c.Ask(ctx, protocol.InputRequest{Key: "page", URL: &protocol.ElicitURL{Message: "Please confirm on this page.", URL: "https://example.com/confirm"}})
				if err != nil {
					return nil, err
				}
				return text("The page: " + responses["page"].Elicit.Action), nil
			},
		},
		{
			Name: "list_roots", Description: "Lists the client's roots.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				responses, err := c.Ask(ctx, protocol.InputRequest{Key: "roots", Roots: true})
				if err != nil {
					return nil, err
				}
				list, err := rootsOf(responses["roots"].Raw)
				return text(list), err
			},
		},
		{
			Name: "test_sampling", Description: "Asks the client's model.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"],"additionalProperties":false}`),
			Call: func(ctx context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Prompt string `json:"prompt"`
				}](c)
				if err != nil {
					return nil, err
				}
				responses, err := c.Ask(ctx, protocol.InputRequest{Key: "sample", Sampling: sampling(in.Prompt, 100)})
				if err != nil {
					return nil, err
				}
				said, err := sampled(responses["sample"].Raw)
				return text("LLM response: " + said), err
			},
		},
		{Name: "sample_tools", Description: "Asks the client's model, which may use a tool.", InputSchema: noArguments, Call: sampleTools},
		{
			Name: "test_elicitation", Description: "Asks for a user name and an address.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false}`),
			Call: func(ctx context.Context, c *call) (*result, error) {
				in, err := arguments[struct {
					Message string `json:"message"`
				}](c)
				if err != nil {
					return nil, err
				}
				answer, err := c.Elicit(ctx, "user", form(in.Message, `{"username":{"type":"string","description":"User's response"},"email":{"type":"string","format":"email","description":"User's email address"}}`, "username", "email"))
				if err != nil {
					return nil, err
				}
				return reportAnswer(answer)
			},
		},
		asks("test_elicitation_sep1034_defaults", "Asks for a form with defaults.", "form", form("Please review the values.", `{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}`)),
		asks("test_elicitation_sep1330_enums", "Asks for a form with choices of every kind.", "form", form("Please choose.", `{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}`)),
		{
			Name: "test_missing_capability", Description: "Needs a client that can sample.", InputSchema: noArguments,
			Call: func(_ context.Context, c *call) (*result, error) {
				return text("The client can sample."), c.Require(protocol.InputSampling)
			},
		},
		asks("test_streaming_elicitation", "Asks for a word.", "word", form("A word, please.", `{"word":{"type":"string"}}`, "word")),
	}
}

// maxToolRounds ends a loop of a model that never stops calling tools.
const maxToolRounds = 5

// sampleTools lets the client's model call a tool, answers those calls, and asks
// again, until the model is done.
func sampleTools(ctx context.Context, c *call) (*result, error) {
	type object = map[string]any
	messages := []any{object{"role": "user", "content": object{"type": "text", "text": "What is the weather? Use the tool."}}}
	for round := 1; round <= maxToolRounds; round++ {
		params, err := json.Marshal(object{
			"messages": messages, "maxTokens": 200,
			"tools": []any{object{"name": "get_weather", "description": "Tells the weather.", "inputSchema": object{"type": "object"}}},
		})
		if err != nil {
			return nil, err
		}
		key := "sample"
		if round > 1 {
			key = fmt.Sprint("sample_", round)
		}
		responses, err := c.Ask(ctx, protocol.InputRequest{Key: key, Sampling: params})
		if err != nil {
			return nil, err
		}
		raw := responses[key].Raw
		var answer struct {
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return nil, err
		}
		var blocks []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}
		if answer.Content[0] != '[' {
			answer.Content = json.RawMessage("[" + string(answer.Content) + "]")
		}
		if err := json.Unmarshal(answer.Content, &blocks); err != nil {
			return nil, fmt.Errorf("the client's message has no usable content: %w", err)
		}
		var results []any
		for _, b := range blocks {
			if b.Type == "tool_use" {
				results = append(results, object{"type": "tool_result", "toolUseId": b.ID, "content": []any{object{"type": "text", "text": "Sunny."}}})
			}
		}
		if results == nil {
			said, err := sampled(raw)
			return text(said), err
		}
		messages = append(messages, object{"role": "assistant", "content": answer.Content}, object{"role": "user", "content": results})
	}
	return nil, fmt.Errorf("the model still wants the tool after %d rounds", maxToolRounds)
}
