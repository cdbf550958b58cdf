package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/protocol"
)

// examplesAsked are the definitions of a server's questions, its errors, and what it
// tells while a request is open.
var examplesAsked = map[string]exampleCheck{
	"InputRequests":              func(t *testing.T, example object) { sameQuestions(t, example) },
	"InputRequiredResult":        inputRequiredExample,
	"ElicitRequest":              func(t *testing.T, example object) { sameQuestions(t, object{"q": example}) },
	"ElicitRequestFormParams":    elicitParamsExample,
	"ElicitRequestURLParams":     elicitParamsExample,
	"CreateMessageRequest":       func(t *testing.T, example object) { sameQuestions(t, object{"q": example}) },
	"CreateMessageRequestParams": samplingExample,
	"ModelPreferences": func(t *testing.T, example object) {
		samplingExample(t, object{"messages": []any{}, "maxTokens": 1, "modelPreferences": example})
	},
	"SamplingMessage": func(t *testing.T, example object) {
		samplingExample(t, object{"messages": []any{example}, "maxTokens": 1})
	},
	"ToolUseContent": func(t *testing.T, example object) {
		samplingExample(t, object{"messages": []any{object{"role": "assistant", "content": example}}, "maxTokens": 1})
	},
	"ToolResultContent": func(t *testing.T, example object) {
		samplingExample(t, object{"messages": []any{object{"role": "user", "content": []any{example}}}, "maxTokens": 1})
	},
	"ListRootsRequest": listRootsExample,

	"BooleanSchema": formFieldExample, "NumberSchema": formFieldExample, "StringSchema": formFieldExample,
	"TitledSingleSelectEnumSchema": formFieldExample, "UntitledSingleSelectEnumSchema": formFieldExample,
	"TitledMultiSelectEnumSchema": formFieldExample, "UntitledMultiSelectEnumSchema": formFieldExample,

	"ParseError": errorExample(protocol.CodeParse), "InternalError": errorExample(protocol.CodeInternal),
	"InvalidParamsError": errorExample(protocol.CodeInvalidParams), "MethodNotFoundError": errorExample(protocol.CodeMethodNotFound),
	"MissingRequiredClientCapabilityError": errorResponseExample(protocol.CodeMissingCapability),
	"UnsupportedProtocolVersionError":      unsupportedExample,

	"LoggingMessageNotification": logExample, "LoggingMessageNotificationParams": asParams("notifications/message", logExample),
	"ProgressNotification": progressExample, "ProgressNotificationParams": asParams("notifications/progress", progressExample),
	"ToolListChangedNotification": listChangedExample(protocol.ToolList), "PromptListChangedNotification": listChangedExample(protocol.PromptList),
	"ResourceListChangedNotification":       listChangedExample(protocol.ResourceList),
	"ResourceUpdatedNotification":           updatedExample,
	"ResourceUpdatedNotificationParams":     asParams("notifications/resources/updated", updatedExample),
	"SubscriptionsAcknowledgedNotification": acknowledgedExample,
	"SubscriptionsListenResult":             asPart(listenResultExample), "SubscriptionsListenResultResponse": asResponse(listenResultExample),
}

// toQuestion turns an entry of inputRequests into the engine's question.
func toQuestion(t *testing.T, key string, part any) protocol.InputRequest {
	t.Helper()
	entry := typed[struct {
		Method string
		Params object
	}](t, part)
	q := protocol.InputRequest{Key: key}
	switch entry.Method {
	case "elicitation/create":
		if entry.Params["mode"] == "url" {
			url := typed[protocol.ElicitURL](t, entry.Params, "mode")
			q.URL = &url
			break
		}
		form := typed[struct {
			Message         string
			RequestedSchema json.RawMessage
		}](t, entry.Params, "mode")
		q.Form = &protocol.ElicitForm{Message: form.Message, Schema: form.RequestedSchema}
	case "sampling/createMessage":
		q.Sampling = json.RawMessage(toJSON(t, entry.Params))
	case "roots/list":
		q.Roots = true
	default:
		t.Fatalf("the engine cannot ask for %s", entry.Method)
	}
	return q
}

// asking returns a server whose tool puts questions, and with the answers calls then.
func asking(then func(map[string]protocol.InputResponse), questions ...protocol.InputRequest) *protocol.Server {
	return serving(func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		responses, err := call.Ask(ctx, questions...)
		if err == nil {
			then(responses)
		}
		return nil, err
	})
}

func toQuestions(t *testing.T, requests object) (questions []protocol.InputRequest) {
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		questions = append(questions, toQuestion(t, key, requests[key]))
	}
	return questions
}

// plainForms returns inputRequests without the mode of forms: the one that an absent
// mode means.
func plainForms(t *testing.T, requests object) object {
	plain := object{}
	for key, part := range requests {
		entry := maps.Clone(part.(object))
		if params, ok := entry["params"].(object); ok {
			entry["params"] = spelledOut(t, params, object{"mode": "form"})
		}
		plain[key] = entry
	}
	return plain
}

func sameQuestions(t *testing.T, requests object) {
	t.Helper()
	result := askFor(t, asking(nil, toQuestions(t, requests)...), "1", "tools/call", `"name":"example"`)
	same(t, plainForms(t, requests), result["inputRequests"])
}

func inputRequiredExample(t *testing.T, example object) {
	requests, _ := example["inputRequests"].(object)
	s := asking(nil, toQuestions(t, requests)...)
	if requests == nil {
		s = serving(func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			return nil, call.Repeat()
		})
	} else {
		example["inputRequests"] = plainForms(t, requests)
	}
	s.Sealer = fixedSealer{text: typed[string](t, example["requestState"])}
	sameResult(t, example, askFor(t, s, "1", "tools/call", `"name":"example"`), nil)
}

func elicitParamsExample(t *testing.T, example object) {
	sameQuestions(t, object{"q": object{"method": "elicitation/create", "params": example}})
}

func samplingExample(t *testing.T, params object) {
	sameQuestions(t, object{"q": object{"method": "sampling/createMessage", "params": params}})
}

// listRootsExample: the example has an id, which a request in inputRequests has not
// (its key is what tells it from others); the engine adds params without members.
func listRootsExample(t *testing.T, example object) {
	delete(example, "id")
	result := askFor(t, asking(nil, toQuestion(t, "q", example)), "1", "tools/call", `"name":"example"`)
	example["params"] = object{}
	same(t, object{"q": example}, result["inputRequests"])
}

// formFieldExample asks for a form with one field, and answers with its default.
func formFieldExample(t *testing.T, example object) {
	schema := object{"type": "object", "properties": object{"field": example}}
	form := protocol.ElicitForm{Message: "?", Schema: json.RawMessage(toJSON(t, schema))}
	var answered any
	p := connect(t, asking(func(r map[string]protocol.InputResponse) { answered = r["q"].Elicit.Content["field"] }, protocol.InputRequest{Key: "q", Form: &form}))
	result := resultOf(t, p.call(modernWith("1", "tools/call", `"name":"example"`, allCapabilities, "")))
	params := object{"message": "?", "requestedSchema": schema}
	same(t, object{"q": object{"method": "elicitation/create", "params": params}}, result["inputRequests"])
	answer := toJSON(t, object{"q": object{"action": "accept", "content": object{"field": example["default"]}}})
	resultOf(t, p.call(modernWith("2", "tools/call", `"name":"example","inputResponses":`+answer, allCapabilities, "")))
	same(t, example["default"], answered)
}

// failing returns what a peer gets from a handler that fails with the error of an
// example, whose code must be the engine's constant of that name.
func failing(t *testing.T, code int64, example any) object {
	t.Helper()
	wire := typed[protocol.Error](t, example)
	if wire.Code != code {
		t.Errorf("the code is %d, the engine's %d", wire.Code, code)
	}
	s := serving(func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) {
		return nil, errors.Join(errors.New("wrapped"), &wire)
	})
	return toObject(t, []byte(connect(t, s).call(modern("1", "tools/call", `"name":"example"`))))
}

func errorExample(code int64) exampleCheck {
	return func(t *testing.T, example object) { same(t, example, failing(t, code, example)["error"]) }
}

func errorResponseExample(code int64) exampleCheck {
	return func(t *testing.T, example object) { same(t, example, failing(t, code, example["error"])) }
}

// unsupportedExample meets the error where the engine gives it itself. Its message
// goes on to name the version.
func unsupportedExample(t *testing.T, example object) {
	wire, _ := example["error"].(object)
	data := typed[struct {
		Supported []string
		Requested string
	}](t, wire["data"])
	s := &protocol.Server{Info: exampleInfo, Options: protocol.Options{Revisions: data.Supported}}
	line := strings.Replace(modern(toJSON(t, example["id"]), "tools/list", ""), "2026-07-28", data.Requested, 1)
	wire["message"] = typed[string](t, wire["message"]) + ": " + data.Requested
	same(t, example, toObject(t, []byte(connect(t, s).call(line))))
}

// asParams makes the check of a notification that of its params.
func asParams(method string, check exampleCheck) exampleCheck {
	return func(t *testing.T, example object) {
		check(t, object{"jsonrpc": "2.0", "method": method, "params": example})
	}
}

// told returns the notification that a handler sends before its response.
func told(t *testing.T, meta string, tell func(*protocol.Exchange)) object {
	t.Helper()
	s := serving(func(_ context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		tell(call.Exchange)
		return nil, nil
	})
	s.Logging = true
	p := connect(t, s)
	p.send(modernWith("1", "tools/call", `"name":"example"`, `{}`, meta))
	return toObject(t, []byte(p.next()))
}

func logExample(t *testing.T, example object) {
	params := typed[struct {
		Level, Logger string
		Data          any
	}](t, example["params"])
	level := protocol.LevelDebug
	for level.String() != params.Level && level < protocol.LevelEmergency {
		level++
	}
	same(t, example, told(t, `"io.modelcontextprotocol/logLevel":"debug"`, func(x *protocol.Exchange) { x.Log(level, params.Logger, params.Data) }))
}

func progressExample(t *testing.T, example object) {
	params := typed[struct {
		ProgressToken   any
		Progress, Total float64
		Message         string
	}](t, example["params"])
	same(t, example, told(t, `"progressToken":`+toJSON(t, params.ProgressToken), func(x *protocol.Exchange) {
		x.Progress(params.Progress, params.Total, params.Message)
	}))
}

const keySubscription = "io.modelcontextprotocol/subscriptionId"

// listening opens a subscription on everything the full server has, and the given
// resource, and waits for its acknowledgment.
func listening(t *testing.T, f *fullServer, id, uri string) *peer {
	t.Helper()
	p := connect(t, f.Server)
	filter := object{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": []string{uri}}
	p.send(modern(id, "subscriptions/listen", `"notifications":`+toJSON(t, filter)))
	p.next()
	return p
}

func subscriptionOf(t *testing.T, params any) string {
	o, _ := params.(object)
	meta, _ := o["_meta"].(object)
	return toJSON(t, meta[keySubscription])
}

func listChangedExample(kind protocol.ListKind) exampleCheck {
	return func(t *testing.T, example object) {
		f := newFullServer()
		p := listening(t, f, subscriptionOf(t, example["params"]), "test://a")
		f.Changed(kind)
		same(t, example, toObject(t, []byte(p.next())))
	}
}

// updatedExample: the engine adds the subscription's id where the example, being of
// the params alone, has none.
func updatedExample(t *testing.T, example object) {
	params, _ := example["params"].(object)
	uri, id := typed[string](t, params["uri"]), subscriptionOf(t, params)
	if params["_meta"] == nil {
		id = "1"
		params["_meta"] = object{keySubscription: 1}
	}
	f := newFullServer()
	p := listening(t, f, id, uri)
	f.ResourceUpdated(uri)
	same(t, example, toObject(t, []byte(p.next())))
}

func acknowledgedExample(t *testing.T, example object) {
	params, _ := example["params"].(object)
	p := connect(t, newFullServer().Server)
	p.send(modern(subscriptionOf(t, params), "subscriptions/listen", `"notifications":`+toJSON(t, params["notifications"])))
	same(t, example, toObject(t, []byte(p.next())))
}

// listenResultExample: the server ends the subscription, by a notification and then by
// the result.
func listenResultExample(t *testing.T, id string, example object) {
	if subscription := subscriptionOf(t, example); id == "1" {
		id = subscription
	} else if id != subscription {
		t.Fatalf("subscription %s of request %s", subscription, id)
	}
	f := newFullServer()
	f.Server.Info = exampleInfo
	p := listening(t, f, id, "test://a")
	p.stop()
	if diff := cmp.Diff(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, p.next()); diff != "" {
		t.Error(diff)
	}
	sameResult(t, example, resultOf(t, p.next()), nil)
}
