package check

import (
	"encoding/base64"
	"net/url"
	"strings"

	"fabro-mcp/conformance/strictjson"
)

func resourcesListed(s *suspect) string {
	if len(s.Resources) == 0 {
		return "the server lists no resources"
	}
	return ""
}

// maxReads bounds how many listed resources are read.
const maxReads = 25

var resourceChecks = []one{
	{
		name: "resource-uris", title: "listed resources have URIs, each once",
		rules: []string{"resources.resource.uri", "resources.resource.uri-unique", "resources.uri.custom-rfc3986"},
		needs: resourcesListed,
		run: func(s *suspect) {
			seen := map[string]bool{}
			for i, r := range s.Resources {
				uri := r.Get("uri")
				if !uri.Is(strictjson.String) || uri.Text == "" {
					s.broken("resources.resource.uri", "resource number %d has no uri", i+1)
					continue
				}
				if u, err := url.Parse(uri.Text); err != nil || u.Scheme == "" {
					s.broken("resources.uri.custom-rfc3986", "the resource uri %q is no URI with a scheme", uri.Text)
				}
				if seen[uri.Text] {
					s.broken("resources.resource.uri-unique", "the resource uri %q is listed twice", uri.Text)
				}
				seen[uri.Text] = true
			}
		},
	},
	{
		name: "resource-reads", title: "listed resources can be read, with contents that fit",
		rules: []string{"resources.read.contents", "resources.read.uri-echo", "resources.read.base64", "resources.resource.mime-consistent", "caching.hints.resources-read"},
		needs: resourcesListed,
		run: func(s *suspect) {
			for _, r := range s.Resources[:min(len(s.Resources), maxReads)] {
				if uri := r.Get("uri"); uri.Is(strictjson.String) {
					checkRead(s, r, uri)
				}
			}
		},
	},
	{
		name: "prompt-gets", title: "prompts without required arguments can be fetched",
		rules: []string{"prompts.prompt.name", "prompts.prompt.arguments", "prompts.get.messages"},
		needs: func(s *suspect) string {
			if len(s.Prompts) == 0 {
				return "the server lists no prompts"
			}
			return ""
		},
		run: func(s *suspect) {
			for i, p := range s.Prompts {
				if !p.Get("name").Is(strictjson.String) {
					s.broken("prompts.prompt.name", "prompt number %d has no name", i+1)
					continue
				}
				if i < maxReads && !needsArguments(s, p) {
					checkPrompt(s, p.Get("name"))
				}
			}
		},
	},
}

// checkRead judges only replies with a result: a listed resource may have
// become unreadable for reasons of its own.
func checkRead(s *suspect, listed, uri *strictjson.Value) {
	result := s.session.Ask("resources/read", `{"uri":`+string(uri.Raw)+`}`).Get("result")
	if result == nil || result.Get("resultType").Str() == "input_required" {
		return
	}
	contents := result.Get("contents")
	if !contents.Is(strictjson.Array) || len(contents.Items) == 0 {
		s.broken("resources.read.contents", "reading %q gave no contents", uri.Text)
		return
	}
	if result.Get("ttlMs") == nil || result.Get("cacheScope") == nil {
		s.broken("caching.hints.resources-read", "reading %q gave no ttlMs or cacheScope", uri.Text)
	}
	echoed := false
	for _, c := range contents.Items {
		echoed = echoed || c.Get("uri").Str() == uri.Text
		if (c.Get("text") == nil) == (c.Get("blob") == nil) {
			s.broken("resources.read.contents", "a content of %q has not exactly one of text and blob", uri.Text)
		}
		if blob := c.Get("blob"); blob != nil {
			if _, err := base64.StdEncoding.DecodeString(blob.Str()); err != nil || !blob.Is(strictjson.String) {
				s.broken("resources.read.base64", "the blob of %q is not base64: %v", uri.Text, err)
			}
		}
		want, got := listed.Get("mimeType").Str(), c.Get("mimeType").Str()
		if want != "" && got != "" && want != got && len(contents.Items) == 1 {
			s.broken("resources.resource.mime-consistent", "%q is listed as %s and read as %s", uri.Text, want, got)
		}
	}
	if !echoed && len(contents.Items) == 1 {
		s.broken("resources.read.uri-echo", "reading %q gave contents of %q", uri.Text, contents.Items[0].Get("uri").Str())
	}
}

func needsArguments(s *suspect, prompt *strictjson.Value) bool {
	arguments := prompt.Get("arguments")
	if arguments == nil {
		return false
	}
	for _, a := range arguments.Items {
		if !a.Get("name").Is(strictjson.String) {
			s.broken("prompts.prompt.arguments", "the prompt %q has an argument without name", prompt.Get("name").Str())
		}
		if required := a.Get("required"); required != nil && required.True {
			return true
		}
	}
	return false
}

func checkPrompt(s *suspect, name *strictjson.Value) {
	result := s.session.Ask("prompts/get", `{"name":`+string(name.Raw)+`}`).Get("result")
	if result == nil || result.Get("resultType").Str() == "input_required" {
		return
	}
	messages := result.Get("messages")
	if !messages.Is(strictjson.Array) {
		s.broken("prompts.get.messages", "the prompt %q gave no messages", name.Text)
		return
	}
	for _, m := range messages.Items {
		if role := m.Get("role").Str(); role != "user" && role != "assistant" {
			s.broken("prompts.get.messages", "a message of the prompt %q has the role %q", name.Text, role)
		}
		if !m.Get("content").Is(strictjson.Object) || !m.At("content", "type").Is(strictjson.String) || strings.TrimSpace(m.At("content", "type").Text) == "" {
			s.broken("prompts.get.messages", "a message of the prompt %q has no content with a type", name.Text)
		}
	}
}
