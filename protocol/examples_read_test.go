package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"fabro-mcp/protocol"
)

// examplesRead are the definitions of what a client sends.
var examplesRead = map[string]exampleCheck{
	"CallToolRequest": requestExample, "CallToolRequestParams": paramsExample("tools/call"),
	"GetPromptRequest": requestExample, "GetPromptRequestParams": paramsExample("prompts/get"),
	"ReadResourceRequest": requestExample,
	"CompleteRequest":     requestExample, "CompleteRequestParams": paramsExample("completion/complete"),
	"ListResourcesRequest": requestExample, "PaginatedRequestParams": paramsExample("resources/list"),
	"ListResourceTemplatesRequest": requestExample,
	"ListToolsRequest":             requestExample,
	"ListPromptsRequest":           requestExample,
	"DiscoverRequest":              requestExample,
	"SubscriptionsListenRequest":   listenExample,

	"ClientCapabilities":          clientCapabilitiesExample,
	"CancelledNotification":       cancelledExample,
	"CancelledNotificationParams": asParams("notifications/cancelled", cancelledExample),
	"InputResponses":              responsesExample,
	"ElicitResult":                elicitResultExample,
	"CreateMessageResult": func(t *testing.T, example object) {
		rawResponseExample(t, protocol.InputRequest{Key: "q", Sampling: json.RawMessage(`{"messages":[],"maxTokens":1}`)}, example)
	},
	"ListRootsResult": listRootsResultExample,
	"Root": func(t *testing.T, example object) {
		listRootsResultExample(t, object{"roots": []any{example}})
	},
}

// withoutHandler are methods that no handler of the program's is called for: nobody
// sees such a request but the engine, which answers it.
var withoutHandler = map[string]string{
	"server/discover": "it is answered from the fields of Server",
	"tools/list":      "it is answered from Server.Tools",
	"prompts/list":    "it is answered from Server.Prompts",
}

// witness is a server whose handlers write down what they see of a request: its
// params, as a client would spell them.
type witness struct {
	t          *testing.T
	server     *protocol.Server
	extensions []string // that the client is asked about
	seen       object
	cursor     string // that the engine opened
}

// newWitness returns a server that has the tool or the prompt of that name.
func newWitness(t *testing.T, name string) *witness {
	w := &witness{t: t}
	w.server = &protocol.Server{
		Info: exampleInfo, Resources: w, Completions: w, Sealer: fixedSealer{opened: &w.cursor},
		Tools: []protocol.Tool{{Name: name, InputSchema: anyObject, Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			w.saw(ctx, call.Exchange, object{"name": call.Name, "arguments": call.Arguments})
			return nil, nil
		}}},
		Prompts: []protocol.Prompt{{Name: name, Get: func(ctx context.Context, call *protocol.PromptCall) (*protocol.PromptResult, error) {
			w.saw(ctx, call.Exchange, object{"name": call.Name, "arguments": call.Arguments})
			return nil, nil
		}}},
	}
	return w
}

// saw writes params down, with the metadata that every exchange shows.
func (w *witness) saw(ctx context.Context, x *protocol.Exchange, params object) {
	client := x.Client()
	params["_meta"] = object{
		"io.modelcontextprotocol/protocolVersion":    x.Revision(),
		"io.modelcontextprotocol/clientInfo":         object{"name": client.Name, "version": client.Version},
		"io.modelcontextprotocol/clientCapabilities": w.capabilities(ctx, x),
	}
	w.seen = params
	x.Progress(1, 0, "") // the token shows on the wire alone
}

// capabilities asks an exchange for all that a client can declare.
func (w *witness) capabilities(ctx context.Context, x *protocol.Exchange) object {
	seen := object{}
	part := func(name string, declared bool, members object) {
		if declared {
			seen[name] = members
		}
	}
	modes, uses, extensions := object{}, object{}, object{}
	for kind, name := range map[protocol.InputKind]string{protocol.InputForm: "form", protocol.InputURL: "url"} {
		if x.CanAsk(kind) {
			modes[name] = object{}
		}
	}
	for name, params := range map[string]string{"tools": `{"messages":[],"maxTokens":1,"tools":[]}`, "context": `{"messages":[],"maxTokens":1,"includeContext":"thisServer"}`} {
		if _, err := x.Ask(ctx, protocol.InputRequest{Key: "q", Sampling: json.RawMessage(params)}); !errors.Is(err, protocol.ErrCannotAsk) {
			uses[name] = object{}
		}
	}
	for _, name := range w.extensions {
		if settings := x.ClientExtension(name); settings != nil {
			extensions[name] = settings
		}
	}
	part("elicitation", len(modes) > 0, modes)
	part("sampling", x.CanAsk(protocol.InputSampling), uses)
	part("roots", x.CanAsk(protocol.InputRoots), object{})
	part("extensions", len(extensions) > 0, extensions)
	return seen
}

func (w *witness) ListResources(ctx context.Context, x *protocol.Exchange) ([]protocol.Resource, error) {
	w.saw(ctx, x, object{})
	return nil, nil
}

func (w *witness) ListTemplates(ctx context.Context, x *protocol.Exchange) ([]protocol.ResourceTemplate, error) {
	w.saw(ctx, x, object{})
	return nil, nil
}

func (w *witness) ReadResource(ctx context.Context, uri string, x *protocol.Exchange) (*protocol.ReadResult, error) {
	w.saw(ctx, x, object{"uri": uri})
	return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri}}}, nil
}

func (w *witness) Complete(ctx context.Context, req *protocol.CompletionRequest) (*protocol.Completion, error) {
	ref := object{"type": req.RefType}
	if req.RefType == protocol.RefPrompt {
		ref["name"] = req.RefName
	} else {
		ref["uri"] = req.URI
	}
	params := object{"ref": ref, "argument": object{"name": req.Argument, "value": req.Value}}
	if req.Context != nil {
		params["context"] = object{"arguments": req.Context}
	}
	w.saw(ctx, req.Exchange, params)
	return nil, nil
}

// serve sends a request and returns the params that came to the handler, with what
// only the engine and the wire show: the cursor and the progress token.
func (w *witness) serve(request object) object {
	w.t.Helper()
	p := connect(w.t, w.server)
	p.send(toJSON(w.t, request))
	reply := toObject(w.t, []byte(p.next()))
	var token any
	if reply["method"] == "notifications/progress" {
		token = reply["params"].(object)["progressToken"]
		reply = toObject(w.t, []byte(p.next()))
	}
	if reply["result"] == nil {
		w.t.Fatalf("no result: %v", reply)
	}
	same(w.t, request["id"], reply["id"])
	if w.seen == nil {
		return nil
	}
	if token != nil {
		w.seen["_meta"].(object)["progressToken"] = token
	}
	if w.cursor != "" {
		w.seen["cursor"] = w.cursor
	}
	return w.seen
}

func requestExample(t *testing.T, example object) {
	params, _ := example["params"].(object)
	name, _ := params["name"].(string)
	if ref, ok := params["ref"].(object); ok {
		name, _ = ref["name"].(string)
	}
	if name == "" {
		name = "unused"
	}
	method := typed[string](t, example["method"])
	seen := newWitness(t, name).serve(example)
	if (seen == nil) != (withoutHandler[method] != "") {
		t.Errorf("%s: a handler saw %v, and is said to see nothing because %q", method, seen, withoutHandler[method])
	}
	if seen != nil {
		same(t, example, object{"jsonrpc": "2.0", "id": example["id"], "method": method, "params": seen})
	}
}

func paramsExample(method string) exampleCheck {
	return func(t *testing.T, example object) {
		requestExample(t, object{"jsonrpc": "2.0", "id": 1, "method": method, "params": example})
	}
}

// watchingResources write down which uris are watched.
type watchingResources struct {
	testResources
	uris []string
}

func (w *watchingResources) WatchResource(_ context.Context, uri string) (func(), error) {
	w.uris = append(w.uris, uri)
	return func() {}, nil
}

// listenExample: of a subscription the program sees the uris, in WatchResource; the
// lists show in what the engine acknowledges.
func listenExample(t *testing.T, example object) {
	resources := &watchingResources{}
	f := newFullServer()
	f.Server.Resources = resources
	p := connect(t, f.Server)
	p.send(toJSON(t, example))
	ack := toObject(t, []byte(p.next()))["params"].(object)
	params, _ := example["params"].(object)
	same(t, params["notifications"], ack["notifications"])
	same(t, params["notifications"].(object)["resourceSubscriptions"], resources.uris)
	same(t, example["id"], ack["_meta"].(object)[keySubscription])
}

// clientCapabilitiesExample: an elicitation without modes is one of forms.
func clientCapabilitiesExample(t *testing.T, example object) {
	w := newWitness(t, "example")
	if extensions, ok := example["extensions"].(object); ok {
		for name := range extensions {
			w.extensions = append(w.extensions, name)
		}
	}
	seen := w.serve(toObject(t, []byte(modernWith("1", "tools/call", `"name":"example"`, toJSON(t, example), ""))))
	if modes, ok := example["elicitation"].(object); ok && len(modes) == 0 {
		example["elicitation"] = object{"form": object{}}
	}
	same(t, example, seen["_meta"].(object)["io.modelcontextprotocol/clientCapabilities"])
}

// cancelledExample: the id shows in whose context ends, the reason in why.
func cancelledExample(t *testing.T, example object) {
	params, _ := example["params"].(object)
	ended := make(chan object, 1)
	entered := make(chan struct{})
	p := connect(t, serving(func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
		close(entered)
		<-ctx.Done()
		seen := object{"requestId": call.Arguments}
		var cause *protocol.CancelledError
		if errors.As(context.Cause(ctx), &cause) {
			seen["reason"] = cause.Reason
		}
		ended <- seen
		return nil, context.Cause(ctx)
	}))
	p.send(modern(toJSON(t, params["requestId"]), "tools/call", `"name":"example","arguments":{"id":`+toJSON(t, params["requestId"])+`}`))
	<-entered
	p.send(toJSON(t, example))
	params = maps.Clone(params)
	params["requestId"] = object{"id": params["requestId"]} // the arguments of the call
	same(t, params, <-ended)
	p.quiet()
}

// answering puts questions and returns what the handler got of the responses.
func answering(t *testing.T, responses object, questions ...protocol.InputRequest) (got map[string]protocol.InputResponse) {
	t.Helper()
	s := asking(func(r map[string]protocol.InputResponse) { got = r }, questions...)
	askFor(t, s, "1", "tools/call", `"name":"example","inputResponses":`+toJSON(t, responses))
	for key, response := range responses {
		same(t, response, got[key].Raw)
	}
	return got
}

// elicited spells an answer as a client does.
func elicited(answer *protocol.ElicitAnswer) object {
	spelled := object{"action": answer.Action}
	if answer.Content != nil {
		spelled["content"] = answer.Content
	}
	return spelled
}

func responsesExample(t *testing.T, example object) {
	got := answering(t, example,
		protocol.InputRequest{Key: "github_login", Form: &nameForm},
		protocol.InputRequest{Key: "capital_of_france", Sampling: json.RawMessage(`{"messages":[],"maxTokens":1}`)})
	same(t, example["github_login"], elicited(got["github_login"].Elicit))
}

func elicitResultExample(t *testing.T, example object) {
	question := protocol.InputRequest{Key: "q", Form: &protocol.ElicitForm{Message: "?", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}
	if example["content"] == nil {
		question = protocol.InputRequest{Key: "q", URL: &protocol.ElicitURL{Message: "?", URL: "https://example.test/"}}
	}
	same(t, example, elicited(answering(t, object{"q": example}, question)["q"].Elicit))
}

func rawResponseExample(t *testing.T, question protocol.InputRequest, example object) {
	answering(t, object{"q": example}, question)
}

func listRootsResultExample(t *testing.T, example object) {
	rawResponseExample(t, protocol.InputRequest{Key: "q", Roots: true}, example)
}
