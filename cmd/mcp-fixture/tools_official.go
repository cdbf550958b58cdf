package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"fabro-mcp/protocol"
)

// A picture of one pixel and a sound of no samples.
const tinyPNGText = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var tinyPNG, _ = base64.StdEncoding.DecodeString(tinyPNGText)

var tinyWAV = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")

func (f *fixture) constant(name, description string, content ...protocol.Content) protocol.Tool {
	return protocol.Tool{Name: name, Description: description, InputSchema: noArguments, Call: func(context.Context, *call) (*result, error) {
		return &result{Content: content}, nil
	}}
}

// officialTools have the names and results that the official conformance suite
// asks for.
func (f *fixture) officialTools() []protocol.Tool {
	image := protocol.ImageContent{Data: tinyPNG, MIMEType: "image/png"}
	return []protocol.Tool{
		f.constant("test_simple_text", "Returns a text.", protocol.Text("This is a simple text response for testing.")),
		f.constant("test_image_content", "Returns an image.", image),
		f.constant("test_audio_content", "Returns a sound.", protocol.AudioContent{Data: tinyWAV, MIMEType: "audio/wav"}),
		f.constant("test_embedded_resource", "Returns a resource.",
			protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content."}}),
		f.constant("test_multiple_content_types", "Returns text, image and resource.", protocol.Text("Multiple content types test:"), image,
			protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`}}),
		{
			Name: "test_error_handling", Description: "Fails.", InputSchema: noArguments,
			Call: func(context.Context, *call) (*result, error) {
				return nil, errors.New("This tool intentionally returns an error for testing")
			},
		},
		{
			Name: "test_tool_with_logging", Description: "Logs three messages.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				for _, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
					c.Log(protocol.LevelInfo, "fixture", message)
					if err := pause(ctx, 50*time.Millisecond); err != nil {
						return nil, err
					}
				}
				return text("Logged three messages."), nil
			},
		},
		{
			Name: "test_logging_tool", Description: "Logs a message at each of three levels.", InputSchema: noArguments,
			Call: func(_ context.Context, c *call) (*result, error) {
				for _, level := range []protocol.Level{protocol.LevelDebug, protocol.LevelInfo, protocol.LevelError} {
					c.Log(level, "fixture", "a message at level "+level.String())
				}
				return text("Logged."), nil
			},
		},
		{
			Name: "test_tool_with_progress", Description: "Reports progress three times.", InputSchema: noArguments,
			Call: func(ctx context.Context, c *call) (*result, error) {
				for _, at := range []float64{0, 50, 100} {
					c.Progress(at, 100, "")
					if err := pause(ctx, 50*time.Millisecond); err != nil {
						return nil, err
					}
				}
				return text("Reported progress."), nil
			},
		},
		{
			Name: "json_schema_2020_12_tool", Description: "Tool with JSON Schema 2020-12 features", InputSchema: json.RawMessage(`{
				"$schema": "https://json-schema.org/draft/2020-12/schema",
				"type": "object",
				"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
				"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
				"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
				"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
				"then": {"required": ["phone"]},
				"else": {"required": ["email"]},
				"additionalProperties": false
			}`),
			Call: func(_ context.Context, c *call) (*result, error) { return text(string(c.Arguments)), nil },
		},
		f.trigger("test_trigger_tool_change", "Adds a tool for everybody, or takes it away again.", f.changeTools),
		f.trigger("test_trigger_prompt_change", "Adds a prompt for everybody, or takes it away again.", f.changePrompts),
		f.trigger("test_trigger_resource_change", "Announces that the list of resources has changed.", func() error {
			f.server.Changed(protocol.ResourceList)
			return nil
		}),
		f.trigger("touch_resource", "Announces that test://watched-resource has changed.", func() error {
			f.server.ResourceUpdated("test://watched-resource")
			return nil
		}),
		f.trigger("touch_other", "Announces that test://static-text has changed.", func() error {
			f.server.ResourceUpdated("test://static-text")
			return nil
		}),
	}
}

func (f *fixture) trigger(name, description string, do func() error) protocol.Tool {
	return protocol.Tool{Name: name, Description: description, InputSchema: noArguments, Call: func(context.Context, *call) (*result, error) {
		return text("Announced."), do()
	}}
}

// changeTools changes the set of tools, which also announces it.
func (f *fixture) changeTools() error {
	f.changing.Lock()
	defer f.changing.Unlock()
	tools := f.server.Tools
	if f.moreTools = !f.moreTools; f.moreTools {
		tools = append(tools[:len(tools):len(tools)], f.constant("added_tool", "A tool that comes and goes.", protocol.Text("here")))
	}
	return f.server.SetTools(tools)
}

// changePrompts changes the set of prompts, which also announces it.
func (f *fixture) changePrompts() error {
	f.changing.Lock()
	defer f.changing.Unlock()
	prompts := f.server.Prompts
	if f.morePrompts = !f.morePrompts; f.morePrompts {
		added := prompts[0]
		added.Name = "added_prompt"
		prompts = append(prompts[:len(prompts):len(prompts)], added)
	}
	return f.server.SetPrompts(prompts)
}
