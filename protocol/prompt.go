package protocol

import (
	"context"
)

// Prompt is a template of messages that a person can pick.
type Prompt struct {
	Name, Title, Description string
	Arguments                []PromptArgument
	Icons                    []Icon
	Meta                     map[string]any
	// Get fills in the template. Required arguments are there.
	Get func(ctx context.Context, call *PromptCall) (*PromptResult, error)
}

// PromptArgument is a parameter of a prompt.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
}

// PromptCall is one request for a prompt.
type PromptCall struct {
	Name      string
	Arguments map[string]string
	*Exchange
}

// PromptResult is a filled-in prompt.
type PromptResult struct {
	Description string
	Messages    []PromptMessage
	Meta        map[string]any
}

// PromptMessage is one message of a prompt. Role is "user" or "assistant"; empty
// is "user".
type PromptMessage struct {
	Role    string
	Content Content
}

func (p *Prompt) append(b []byte, rev *revision) []byte {
	b = keyString(append(b, '{'), "name", p.Name)
	if rev.has(featTitles) {
		b = keyText(b, "title", p.Title)
	}
	b = keyText(b, "description", p.Description)
	if len(p.Arguments) > 0 {
		b = append(key(b, "arguments"), '[')
		for _, a := range p.Arguments {
			b = keyString(append(comma(b), '{'), "name", a.Name)
			if rev.has(featTitles) {
				b = keyText(b, "title", a.Title)
			}
			b = keyText(b, "description", a.Description)
			if a.Required {
				b = keyBool(b, "required", true)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if rev.has(featIcons) {
		b = appendIcons(b, p.Icons)
	}
	return appendDefinitionEnd(b, rev, nil, p.Meta)
}

func servePromptsGet(r *request, b []byte) ([]byte, error) {
	name, bad := r.stringParam("name")
	if bad != nil {
		return b, bad
	}
	p := r.conn.server.prompts.Load().byName[name]
	if p == nil {
		return b, invalidParams("Unknown prompt: %s", clip(name))
	}
	args, bad := r.stringMap("arguments", r.param("arguments"))
	if bad != nil {
		return b, bad
	}
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; a.Required && !ok {
			return b, invalidParams("Missing argument of prompt %s: %s", clip(name), a.Name)
		}
	}
	if err := r.x.openState(); err != nil {
		return b, err
	}
	result, err := guard(r, func() (*PromptResult, error) {
		return p.Get(&r.ctx, &PromptCall{Name: name, Arguments: args, Exchange: &r.x})
	})
	if asked := asInputRequired(err); asked != nil {
		return r.appendInputRequired(b, asked)
	}
	if err != nil {
		return b, err
	}
	if result == nil {
		result = &PromptResult{}
	}
	r.resultMeta = result.Meta
	b = keyText(b, "description", result.Description)
	b = append(key(b, "messages"), '[')
	for _, m := range result.Messages {
		role := m.Role
		if role == "" {
			role = "user"
		}
		b = keyString(append(comma(b), '{'), "role", role)
		content := m.Content
		if content == nil {
			content = TextContent{}
		}
		b = append(content.appendContent(key(b, "content"), r.rev), '}')
	}
	return append(b, ']'), nil
}

// stringMap reads an object of strings; absent and null are empty.
func (r *request) stringMap(name string, raw []byte) (map[string]string, *Error) {
	if raw == nil || isNull(raw) {
		return nil, nil
	}
	if !isObject(raw) {
		return nil, invalidParams("Parameter %s must be an object", name)
	}
	values := make(map[string]string)
	var bad *Error
	members(raw, func(n, v []byte) bool {
		s, ok := stringValue(v)
		if !ok {
			bad = invalidParams("Parameter %s.%s must be a string", name, clip(string(n)))
			return false
		}
		values[string(n)] = s
		return true
	})
	return values, bad
}
