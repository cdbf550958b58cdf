package protocol_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"fabro-mcp/protocol"
)

// examplesSent are the definitions of what a server sends, but for its questions.
var examplesSent = map[string]exampleCheck{
	"TextContent": contentExample, "ImageContent": contentExample, "AudioContent": contentExample, "ResourceLink": contentExample, "EmbeddedResource": contentExample,
	"TextResourceContents": contentsExample, "BlobResourceContents": contentsExample,

	"Tool":     toolExample,
	"Resource": resourceExample,

	"CallToolResult": asPart(callToolExample), "CallToolResultResponse": asResponse(callToolExample),
	"GetPromptResult": asPart(getPromptExample), "GetPromptResultResponse": asResponse(getPromptExample),
	"ReadResourceResult": asPart(readResourceExample), "ReadResourceResultResponse": asResponse(readResourceExample),
	"CompleteResult": asPart(completeExample), "CompleteResultResponse": asResponse(completeExample),
	"ListToolsResult": asPart(listToolsExample), "ListToolsResultResponse": asResponse(listToolsExample),
	"ListPromptsResult": asPart(listPromptsExample), "ListPromptsResultResponse": asResponse(listPromptsExample),
	"ListResourcesResult": asPart(listResourcesExample), "ListResourcesResultResponse": asResponse(listResourcesExample),
	"ListResourceTemplatesResult": asPart(listTemplatesExample), "ListResourceTemplatesResultResponse": asResponse(listTemplatesExample),
	"DiscoverResult": asPart(discoverExample), "DiscoverResultResponse": asResponse(discoverExample),
	"ServerCapabilities": capabilitiesExample,
}

// serving returns a server with one tool, which answers as call does.
func serving(call func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error)) *protocol.Server {
	return &protocol.Server{Info: exampleInfo, Tools: []protocol.Tool{{Name: "example", InputSchema: anyObject, Call: call}}}
}

func resulting(result *protocol.ToolResult) *protocol.Server {
	return serving(func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) { return result, nil })
}

func toContent(t *testing.T, part any) protocol.Content {
	t.Helper()
	o, _ := part.(object)
	switch o["type"] {
	case "text":
		return typed[protocol.TextContent](t, o, "type")
	case "image":
		return typed[protocol.ImageContent](t, o, "type")
	case "audio":
		return typed[protocol.AudioContent](t, o, "type")
	case "resource_link":
		return typed[protocol.ResourceLink](t, o, "type")
	case "resource":
		return typed[protocol.EmbeddedResource](t, o, "type")
	}
	t.Fatalf("the engine has no content of type %v", o["type"])
	return nil
}

func contentExample(t *testing.T, example object) {
	result := askFor(t, resulting(&protocol.ToolResult{Content: []protocol.Content{toContent(t, example)}}), "1", "tools/call", `"name":"example"`)
	same(t, []any{example}, result["content"])
}

func contentsExample(t *testing.T, example object) {
	contents := typed[protocol.ResourceContents](t, example)
	uri, _ := example["uri"].(string)
	s := &protocol.Server{Info: exampleInfo, Resources: &exampleResources{read: protocol.ReadResult{Contents: []protocol.ResourceContents{contents}}}}
	same(t, []any{example}, askFor(t, s, "1", "resources/read", `"uri":`+toJSON(t, uri))["contents"])
	embedded := resulting(&protocol.ToolResult{Content: []protocol.Content{protocol.EmbeddedResource{Resource: contents}}})
	same(t, []any{object{"type": "resource", "resource": example}}, askFor(t, embedded, "1", "tools/call", `"name":"example"`)["content"])
}

func callToolExample(t *testing.T, id string, example object) {
	parts := typed[struct {
		ResultType        string
		Content           []any
		StructuredContent json.RawMessage
		IsError           bool
	}](t, example)
	result := &protocol.ToolResult{IsError: parts.IsError}
	for _, part := range example["content"].([]any) {
		result.Content = append(result.Content, toContent(t, part))
	}
	if parts.StructuredContent != nil {
		result.Structured = parts.StructuredContent
	}
	// The schema of isError: "If not set, this is assumed to be false".
	sameResult(t, spelledOut(t, example, object{"isError": false}), askFor(t, resulting(result), id, "tools/call", `"name":"example"`), nil)
}

func getPromptExample(t *testing.T, id string, example object) {
	parts := typed[struct {
		ResultType, Description string
		Messages                []struct {
			Role    string
			Content any
		}
	}](t, example)
	result := &protocol.PromptResult{Description: parts.Description}
	for _, m := range parts.Messages {
		result.Messages = append(result.Messages, protocol.PromptMessage{Role: m.Role, Content: toContent(t, m.Content)})
	}
	get := func(context.Context, *protocol.PromptCall) (*protocol.PromptResult, error) { return result, nil }
	s := &protocol.Server{Info: exampleInfo, Prompts: []protocol.Prompt{{Name: "example", Get: get}}}
	sameResult(t, example, askFor(t, s, id, "prompts/get", `"name":"example"`), nil)
}

// cacheHints are what the engine adds where a handler says nothing of caching.
var cacheHints = object{"ttlMs": 0, "cacheScope": "private"}

func ttlOf(t *testing.T, example object) time.Duration {
	return time.Duration(typed[int64](t, example["ttlMs"])) * time.Millisecond
}

func scopeOf(t *testing.T, example object) protocol.CacheScope {
	return typed[protocol.CacheScope](t, example["cacheScope"])
}

func readResourceExample(t *testing.T, id string, example object) {
	result := protocol.ReadResult{Contents: typed[[]protocol.ResourceContents](t, example["contents"]), TTL: ttlOf(t, example), Scope: scopeOf(t, example)}
	s := &protocol.Server{Info: exampleInfo, Resources: &exampleResources{read: result}}
	sameResult(t, example, askFor(t, s, id, "resources/read", `"uri":"file:///example"`), cacheHints)
}

func completeExample(t *testing.T, id string, example object) {
	s := &protocol.Server{Info: exampleInfo, Completions: fixedCompletion(typed[protocol.Completion](t, example["completion"]))}
	sameResult(t, example, askFor(t, s, id, "completion/complete", `"ref":{"type":"ref/resource","uri":"file:///{x}"},"argument":{"name":"x","value":""}`), nil)
}

// withCursor makes a server end its list's first page after n entries where the example
// has a cursor. There must be one entry more then.
func withCursor(t *testing.T, s *protocol.Server, example object, n int) (more bool) {
	cursor, more := example["nextCursor"].(string)
	if more {
		s.Options.PageSize, s.Sealer = n, fixedSealer{text: cursor}
	}
	return more
}

func toTool(t *testing.T, part any) protocol.Tool {
	tool := typed[protocol.Tool](t, part)
	tool.Call = func(context.Context, *protocol.ToolCall) (*protocol.ToolResult, error) { return nil, nil }
	return tool
}

func toolExample(t *testing.T, example object) {
	s := &protocol.Server{Info: exampleInfo, Tools: []protocol.Tool{toTool(t, example)}}
	same(t, []any{example}, askFor(t, s, "1", "tools/list", "")["tools"])
}

func listToolsExample(t *testing.T, id string, example object) {
	s := &protocol.Server{Info: exampleInfo, Options: protocol.Options{ListTTL: ttlOf(t, example)}}
	for _, part := range example["tools"].([]any) {
		s.Tools = append(s.Tools, toTool(t, part))
	}
	if withCursor(t, s, example, len(s.Tools)) {
		s.Tools = append(s.Tools, echoTool())
	}
	sameResult(t, example, askFor(t, s, id, "tools/list", ""), nil)
}

func listPromptsExample(t *testing.T, id string, example object) {
	s := &protocol.Server{Info: exampleInfo, Options: protocol.Options{ListTTL: ttlOf(t, example)}, Prompts: typed[[]protocol.Prompt](t, example["prompts"])}
	if withCursor(t, s, example, len(s.Prompts)) {
		s.Prompts = append(s.Prompts, protocol.Prompt{Name: "another"})
	}
	for i := range s.Prompts {
		s.Prompts[i].Get = func(context.Context, *protocol.PromptCall) (*protocol.PromptResult, error) { return nil, nil }
	}
	sameResult(t, example, askFor(t, s, id, "prompts/list", ""), nil)
}

// exampleResources is what the examples of resources hold.
type exampleResources struct {
	list      []protocol.Resource
	templates []protocol.ResourceTemplate
	read      protocol.ReadResult
	ttl       time.Duration
	scope     protocol.CacheScope
}

func (r *exampleResources) ListResources(context.Context, *protocol.Exchange) ([]protocol.Resource, error) {
	return r.list, nil
}

func (r *exampleResources) ListTemplates(context.Context, *protocol.Exchange) ([]protocol.ResourceTemplate, error) {
	return r.templates, nil
}

func (r *exampleResources) ReadResource(context.Context, string, *protocol.Exchange) (*protocol.ReadResult, error) {
	return &r.read, nil
}

func (r *exampleResources) CacheResources() (time.Duration, protocol.CacheScope) {
	return r.ttl, r.scope
}

func (r *exampleResources) CacheTemplates() (time.Duration, protocol.CacheScope) {
	return r.ttl, r.scope
}

func resourceExample(t *testing.T, example object) {
	s := &protocol.Server{Info: exampleInfo, Resources: &exampleResources{list: []protocol.Resource{typed[protocol.Resource](t, example)}}}
	same(t, []any{example}, askFor(t, s, "1", "resources/list", "")["resources"])
}

func listResourcesExample(t *testing.T, id string, example object) {
	resources := &exampleResources{list: typed[[]protocol.Resource](t, example["resources"]), ttl: ttlOf(t, example), scope: scopeOf(t, example)}
	s := &protocol.Server{Info: exampleInfo, Resources: resources}
	if withCursor(t, s, example, len(resources.list)) {
		resources.list = append(resources.list, protocol.Resource{URI: "file:///another", Name: "another"})
	}
	sameResult(t, example, askFor(t, s, id, "resources/list", ""), nil)
}

func listTemplatesExample(t *testing.T, id string, example object) {
	resources := &exampleResources{templates: typed[[]protocol.ResourceTemplate](t, example["resourceTemplates"]), ttl: ttlOf(t, example), scope: scopeOf(t, example)}
	s := &protocol.Server{Info: exampleInfo, Resources: resources}
	if withCursor(t, s, example, len(resources.templates)) {
		resources.templates = append(resources.templates, protocol.ResourceTemplate{URITemplate: "file:///another/{x}", Name: "another"})
	}
	sameResult(t, example, askFor(t, s, id, "resources/templates/list", ""), nil)
}

// offering returns a server that declares the capabilities of an example.
func offering(t *testing.T, part any) *protocol.Server {
	t.Helper()
	type list struct{ ListChanged, Subscribe bool }
	capabilities := typed[struct {
		Tools, Prompts, Resources *list
		Completions, Logging      *struct{}
		Extensions                map[string]struct{}
	}](t, part)
	s := &protocol.Server{Info: exampleInfo, Logging: capabilities.Logging != nil, Options: protocol.Options{StaticLists: true}}
	if l := capabilities.Tools; l != nil {
		s.Tools, s.Options.StaticLists = []protocol.Tool{}, !l.ListChanged
	}
	if l := capabilities.Prompts; l != nil {
		s.Prompts, s.Options.StaticLists = []protocol.Prompt{}, !l.ListChanged
	}
	if l := capabilities.Resources; l != nil {
		s.Resources, s.Options.StaticLists = &exampleResources{}, !l.ListChanged
		if l.Subscribe {
			s.Resources = &testResources{}
		}
	}
	if capabilities.Completions != nil {
		s.Completions = fixedCompletion{}
	}
	for name := range capabilities.Extensions {
		if name != "io.modelcontextprotocol/tasks" {
			t.Fatalf("the engine has no extension %s", name)
		}
		s.Tasks = &memTasks{}
	}
	return s
}

func capabilitiesExample(t *testing.T, example object) {
	same(t, example, askFor(t, offering(t, example), "1", "server/discover", "")["capabilities"])
}

func discoverExample(t *testing.T, id string, example object) {
	s := offering(t, example["capabilities"])
	meta, _ := example["_meta"].(object)
	s.Info = typed[protocol.Implementation](t, meta[keyServerInfo])
	s.Instructions, _ = example["instructions"].(string)
	s.Options.Revisions, s.Options.ListTTL = typed[[]string](t, example["supportedVersions"]), ttlOf(t, example)
	sameResult(t, example, askFor(t, s, id, "server/discover", ""), nil)
}
