package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/yosida95/uritemplate/v3"

	"fabro-mcp/protocol"
)

// resources are a few that never change, a template, and some that misbehave. Each
// can be watched; touch_resource and touch_other say that two of them changed.
type resources struct{}

var (
	annotatedSize     = int64(len("annotated"))
	annotatedPriority = 0.5
	annotatedTime     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func (resources) ListResources(context.Context, *protocol.Exchange) ([]protocol.Resource, error) {
	return []protocol.Resource{
		{URI: "test://static-text", Name: "static-text", Title: "Static text", Description: "A text that never changes.", MIMEType: "text/plain"},
		{URI: "test://static-binary", Name: "static-binary", Description: "A picture of one pixel.", MIMEType: "image/png"},
		{URI: "test://watched-resource", Name: "watched-resource", Description: "A resource to subscribe to.", MIMEType: "text/plain"},
		{URI: "test://annotated", Name: "annotated", MIMEType: "text/plain", Size: &annotatedSize,
			Annotations: &protocol.Annotations{Audience: []string{"user", "assistant"}, Priority: &annotatedPriority, LastModified: annotatedTime}},
		{URI: "test://two-parts", Name: "two-parts", Description: "A resource that is read in two parts."},
		{URI: "test://broken", Name: "broken", Description: "A resource that cannot be read."},
		{URI: "test://asks", Name: "asks", Description: "A resource that asks for a name first.", MIMEType: "text/plain"},
	}, nil
}

func (resources) ListTemplates(context.Context, *protocol.Exchange) ([]protocol.ResourceTemplate, error) {
	return []protocol.ResourceTemplate{
		{URITemplate: dataTemplate.Raw(), Name: "template-data", Title: "Data by id", Description: "Data for an id.", MIMEType: "application/json"},
		{URITemplate: wordTemplate.Raw(), Name: "words", Description: "One word."},
	}, nil
}

var (
	dataTemplate = uritemplate.MustNew("test://template/{id}/data")
	wordTemplate = uritemplate.MustNew("test://words/{word}")
)

// variable returns the value of a template's variable in a uri that fits it: only a
// uri that the template expands to does, and an empty value is none.
func variable(t *uritemplate.Template, name, uri string) (value string, ok bool) {
	match := t.Match(uri)
	if match == nil {
		return "", false
	}
	value = match.Get(name).String()
	expanded, err := t.Expand(match)
	return value, err == nil && expanded == uri && value != ""
}

func (resources) ReadResource(ctx context.Context, uri string, x *protocol.Exchange) (*protocol.ReadResult, error) {
	one := func(mime, content string) (*protocol.ReadResult, error) {
		return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri, MIMEType: mime, Text: content}}, Scope: protocol.ScopePublic}, nil
	}
	switch uri {
	case "test://static-text":
		return one("text/plain", "This is the content of the static text resource.")
	case "test://static-binary":
		return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri, MIMEType: "image/png", Blob: tinyPNG}}, Scope: protocol.ScopePublic}, nil
	case "test://watched-resource":
		return one("text/plain", "This is the content of the watched resource.")
	case "test://annotated":
		return one("text/plain", "annotated")
	case "test://two-parts":
		return &protocol.ReadResult{Contents: []protocol.ResourceContents{{URI: uri + "/1", Text: "one"}, {URI: uri + "/2", Text: "two"}}}, nil
	case "test://broken":
		return nil, errors.New("the resource could not be read")
	case "test://asks":
		answer, err := x.Elicit(ctx, "name", form("Whose content?", `{"name":{"type":"string"}}`, "name"))
		if err != nil {
			return nil, err
		}
		name, _ := answer.Content["name"].(string)
		return one("text/plain", "content of "+name)
	}
	if word, ok := variable(wordTemplate, "word", uri); ok {
		return one("text/plain", word)
	}
	id, ok := variable(dataTemplate, "id", uri)
	if !ok {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	content, err := json.Marshal(struct {
		ID   string `json:"id"`
		Test bool   `json:"templateTest"`
		Data string `json:"data"`
	}{id, true, "Data for ID: " + id})
	if err != nil {
		return nil, err
	}
	return one("application/json", string(content))
}

// WatchResource accepts what can be read.
func (r resources) WatchResource(ctx context.Context, uri string) (func(), error) {
	list, _ := r.ListResources(ctx, nil)
	for _, res := range list {
		if res.URI == uri {
			return func() {}, nil
		}
	}
	for name, t := range map[string]*uritemplate.Template{"id": dataTemplate, "word": wordTemplate} {
		if _, ok := variable(t, name, uri); ok {
			return func() {}, nil
		}
	}
	return nil, protocol.ErrResourceNotFound{URI: uri}
}
