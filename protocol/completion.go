package protocol

import "context"

// Completer completes arguments of prompts and variables of resource templates.
type Completer interface {
	Complete(ctx context.Context, req *CompletionRequest) (*Completion, error)
}

// The kinds of reference in a completion request.
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// CompletionRequest asks for the values that Argument of a prompt or template may
// take.
type CompletionRequest struct {
	RefType  string // RefPrompt or RefResource
	RefName  string // the prompt's name
	URI      string // the template
	Argument string
	Value    string            // what was typed so far
	Context  map[string]string // arguments that are settled already
	*Exchange
}

// Completion is a list of values, the most relevant first. Of more than 100 the
// first 100 are sent.
type Completion struct {
	Values  []string
	Total   int  // of all matches; 0 is unknown
	HasMore bool // there are matches beyond Values; false is said only beside a Total
}

// maxCompletions is the most values that a result may have.
const maxCompletions = 100

func serveComplete(r *request, b []byte) ([]byte, error) {
	req := &CompletionRequest{Exchange: &r.x}
	ref := r.param("ref")
	if !isObject(ref) {
		return b, invalidParams("Parameter ref must be an object")
	}
	req.RefType, _ = stringValue(field(ref, "type"))
	var ok bool
	switch req.RefType {
	case RefPrompt:
		if req.RefName, ok = stringValue(field(ref, "name")); !ok {
			return b, invalidParams("Parameter ref.name must be a string")
		}
		if r.conn.server.prompts.Load().byName[req.RefName] == nil {
			return b, invalidParams("Unknown prompt: %s", clip(req.RefName))
		}
	case RefResource:
		if req.URI, ok = stringValue(field(ref, "uri")); !ok {
			return b, invalidParams("Parameter ref.uri must be a string")
		}
	default:
		return b, invalidParams("Parameter ref.type must be %s or %s", RefPrompt, RefResource)
	}
	argument := r.param("argument")
	if req.Argument, ok = stringValue(field(argument, "name")); !ok {
		return b, invalidParams("Parameter argument.name must be a string")
	}
	if req.Value, ok = stringValue(field(argument, "value")); !ok {
		return b, invalidParams("Parameter argument.value must be a string")
	}
	if context := r.param("context"); context != nil {
		if !isObject(context) {
			return b, invalidParams("Parameter context must be an object")
		}
		var bad *Error
		if req.Context, bad = r.stringMap("context.arguments", field(context, "arguments")); bad != nil {
			return b, bad
		}
	}
	result, err := guard(r, func() (*Completion, error) { return r.conn.server.Completions.Complete(&r.ctx, req) })
	if err != nil {
		return b, err
	}
	if result == nil {
		result = &Completion{}
	}
	values, more, total := result.Values, result.HasMore, result.Total
	if len(values) > maxCompletions {
		total, more = max(total, len(values)), true
		values = values[:maxCompletions]
	}
	b = append(key(b, "completion"), `{"values":[`...)
	for _, v := range values {
		b = quote(comma(b), v)
	}
	b = append(b, ']')
	if total > 0 {
		b = keyInt(b, "total", int64(total))
	}
	if more || total > 0 { // neither is said where nothing is known
		b = keyBool(b, "hasMore", more)
	}
	return append(b, '}'), nil
}
