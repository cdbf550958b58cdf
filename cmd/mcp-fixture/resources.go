package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

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
		{URITemplate: "test://template/{id}/data", Name: "template-data", Title: "Data by id", Description: "Data for an id.", MIMEType: "application/json"},
		{URITemplate: "test://words/{word}", Name: "words", Description: "One word."},
	}, nil
}

var (
	templateURI = regexp.MustCompile(`^test://template/([^/?#]+)/data$`)
	wordURI     = regexp.MustCompile(`^test://words/([^/?#]+)$`)
)

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
	if m := wordURI.FindStringSubmatch(uri); m != nil {
		return one("text/plain", m[1])
	}
	m := templateURI.FindStringSubmatch(uri)
	if m == nil {
		return nil, protocol.ErrResourceNotFound{URI: uri}
	}
	content, err := json.Marshal(struct {
		ID   string `json:"id"`
		Test bool   `json:"templateTest"`
		Data string `json:"data"`
	}{m[1], true, "Data for ID: " + m[1]})
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
	if templateURI.MatchString(uri) || wordURI.MatchString(uri) {
		return func() {}, nil
	}
	return nil, protocol.ErrResourceNotFound{URI: uri}
}
