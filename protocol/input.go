package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// InputKind is a way of asking, for [Exchange.CanAsk].
type InputKind uint8

const (
	InputForm     InputKind = iota // a person fills in a form
	InputURL                       // a person visits a URL
	InputSampling                  // the client's model writes a message
	InputRoots                     // the client lists its roots
)

// InputRequest is one question. Exactly one of Form, URL, Sampling and Roots is
// set. Key tells it from the other questions of the same call and must stay the
// same when the handler runs again.
type InputRequest struct {
	Key      string
	Form     *ElicitForm
	URL      *ElicitURL
	Sampling json.RawMessage // params of sampling/createMessage
	Roots    bool
}

// ElicitForm asks a person to fill in a form. Schema is an object schema whose
// properties are primitives, in the shape of revision 2025-11-25; older peers get
// it in theirs.
type ElicitForm struct {
	Message string
	Schema  json.RawMessage
}

// ElicitURL asks a person to visit a URL. An accepting answer means consent, not
// that anything was done there.
type ElicitURL struct {
	Message string
	URL     string
	// ID names the elicitation for peers of 2025-11-25; made up where empty.
	ID string
}

// ElicitAnswer is what came of an elicitation.
type ElicitAnswer struct {
	Action  string         // ActionAccept, ActionDecline or ActionCancel
	Content map[string]any // the form's values, when accepted
}

// What a person can do with a question.
const (
	ActionAccept  = "accept"
	ActionDecline = "decline"
	ActionCancel  = "cancel"
)

// InputResponse is the response to one question: Elicit for forms and URLs, Raw
// (the client's result object) for all.
type InputResponse struct {
	Elicit *ElicitAnswer
	Raw    json.RawMessage
}

func (q *InputRequest) kind() InputKind {
	switch {
	case q.Form != nil:
		return InputForm
	case q.URL != nil:
		return InputURL
	case q.Sampling != nil:
		return InputSampling
	}
	return InputRoots
}

// CanAsk reports whether the peer declared, for this request, that it takes
// questions of a kind.
func (x *Exchange) CanAsk(kind InputKind) bool {
	r := x.request
	if !r.rev.has(featHandshake) && !r.rev.has(featInputRequired) {
		return false
	}
	switch kind {
	case InputForm:
		return r.caps.form
	case InputURL:
		return r.caps.url
	case InputSampling:
		return r.caps.sampling
	case InputRoots:
		return r.caps.roots
	}
	return false
}

// Require returns nil where CanAsk does, and otherwise the error to return to a
// peer without which the request cannot go on: it names the missing capability in
// the way of the peer's revision.
func (x *Exchange) Require(kind InputKind) error {
	if x.CanAsk(kind) {
		return nil
	}
	if !x.request.rev.has(featInputRequired) {
		return ErrCannotAsk
	}
	none := map[string]any{}
	needs := map[InputKind]map[string]any{
		InputForm:     {"elicitation": map[string]any{"form": none}},
		InputURL:      {"elicitation": map[string]any{"url": none}},
		InputSampling: {"sampling": none},
		InputRoots:    {"roots": none},
	}[kind]
	return &Error{Code: CodeMissingCapability, Message: "This request needs a client capability that was not declared", Data: map[string]any{"requiredCapabilities": needs}}
}

// AsksTogether reports whether the peer takes several questions in one go: those
// of one Ask travel in one input_required result (page basic/patterns/mrtr of the
// specification). From other peers Ask gets one answer after another.
func (x *Exchange) AsksTogether() bool { return x.request.rev.has(featInputRequired) }

// FormsHoldLists reports whether a form may hold a list of choices (page
// client/elicitation of the specification, the requested schema). For other peers
// Ask makes a line of text of it; a handler that has something better asks first.
func (x *Exchange) FormsHoldLists() bool { return x.request.rev.has(featRichForms) }

func (x *Exchange) checkQuestions(requests []InputRequest) error {
	if len(requests) == 0 {
		return errors.New("protocol: Ask without a question")
	}
	seen := make(map[string]bool, len(requests))
	for i := range requests {
		q := &requests[i]
		if q.Key == "" || seen[q.Key] {
			return fmt.Errorf("protocol: the key of question %d is empty or used twice", i+1)
		}
		seen[q.Key] = true
		if !x.CanAsk(q.kind()) {
			return ErrCannotAsk
		}
		if q.Sampling != nil && !x.canSample(q.Sampling) {
			return ErrCannotAsk
		}
	}
	return nil
}

// canSample reports whether the peer takes what a sampling request makes use of:
// tools, and the context of servers. Before there was a capability for the latter
// every peer that samples took it.
func (x *Exchange) canSample(params json.RawMessage) bool {
	r := x.request
	if !r.caps.samplingTools && (field(params, "tools") != nil || field(params, "toolChoice") != nil) {
		return false
	}
	context, _ := stringValue(field(params, "includeContext"))
	return context == "" || context == "none" || r.caps.samplingContext || !r.rev.has(featSamplingTools)
}

// Ask puts questions to the person, or model, behind the peer and returns the
// responses by key.
//
// What happens depends on the peer. Where results can ask for input, the first
// call returns an error that the handler must return unchanged: the peer gets the
// questions, asks, and repeats its request; the handler runs again from the start,
// and this time Ask returns the responses. So before Ask a handler has no effect
// on the world except through SetState. In a session, Ask sends the questions one
// after another and waits. In work that was detached for a task, the task asks.
//
// ErrCannotAsk means that the peer did not declare what a question needs.
func (x *Exchange) Ask(ctx context.Context, requests ...InputRequest) (map[string]InputResponse, error) {
	if err := x.checkQuestions(requests); err != nil {
		return nil, err
	}
	switch {
	case x.ask != nil:
		return x.ask(ctx, requests)
	case x.request.rev.has(featInputRequired):
		return x.askByResult(requests)
	}
	return x.askSession(ctx, requests)
}

// Elicit asks for one form, see [Exchange.Ask].
func (x *Exchange) Elicit(ctx context.Context, key string, form ElicitForm) (ElicitAnswer, error) {
	responses, err := x.Ask(ctx, InputRequest{Key: key, Form: &form})
	if err != nil {
		return ElicitAnswer{}, err
	}
	return *responses[key].Elicit, nil
}

// read turns the client's response to a question into what the handler gets.
func (q *InputRequest) read(raw []byte) (InputResponse, error) {
	resp := InputResponse{Raw: append(json.RawMessage(nil), raw...)}
	if !isObject(raw) {
		return resp, errors.New("it must be an object")
	}
	switch q.kind() {
	case InputForm, InputURL:
		action, _ := stringValue(field(raw, "action"))
		answer := &ElicitAnswer{Action: action}
		switch action {
		case ActionDecline, ActionCancel:
		case ActionAccept:
			if q.Form != nil {
				content := field(raw, "content")
				if content == nil || isNull(content) {
					content = []byte("{}")
				}
				if err := q.Form.check(content); err != nil {
					return resp, err
				}
				if err := json.Unmarshal(content, &answer.Content); err != nil {
					return resp, err
				}
			}
		default:
			return resp, errors.New("action must be accept, decline or cancel")
		}
		resp.Elicit = answer
	case InputSampling:
		if field(raw, "content") == nil || !isString(field(raw, "role")) {
			return resp, errors.New("a message needs role and content")
		}
	case InputRoots:
		if !isArray(field(raw, "roots")) {
			return resp, errors.New("roots must be an array")
		}
	}
	return resp, nil
}

// check holds a filled-in form against its schema.
func (f *ElicitForm) check(content []byte) error {
	if !isObject(content) {
		return errors.New("content must be an object")
	}
	schema, err := compileSchema(f.Schema)
	if err != nil {
		return nil // the handler's own schema; its own business
	}
	if err := schema.check(content); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	return nil
}

// append renders the question as the object {method, params} without envelope.
func (q *InputRequest) append(b []byte, rev *revision) ([]byte, error) {
	b = append(b, '{')
	switch q.kind() {
	case InputForm:
		schema, err := formSchema(q.Form.Schema, rev)
		if err != nil {
			return b, err
		}
		b = append(keyString(b, "method", "elicitation/create"), `,"params":{`...)
		b = keyString(b, "message", q.Form.Message)
		b = append(keyRaw(b, "requestedSchema", schema), '}')
	case InputURL:
		b = append(keyString(b, "method", "elicitation/create"), `,"params":{`...)
		b = keyString(b, "mode", "url")
		b = keyString(b, "message", q.URL.Message)
		b = keyString(b, "url", q.URL.URL)
		if rev.has(featElicitationID) {
			id := q.URL.ID
			if id == "" {
				id = randomID()
			}
			b = keyString(b, "elicitationId", id)
		}
		b = append(b, '}')
	case InputSampling:
		params, err := compact(q.Sampling)
		if err != nil {
			return b, err
		}
		b = keyRaw(keyString(b, "method", "sampling/createMessage"), "params", params)
	case InputRoots:
		b = append(keyString(b, "method", "roots/list"), `,"params":{}`...)
	}
	return append(b, '}'), nil
}
