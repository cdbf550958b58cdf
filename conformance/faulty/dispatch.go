package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

var logLevels = strings.Fields("debug info notice warning error critical alert emergency")

func levelOf(level any) int {
	for i, name := range logLevels {
		if name == level {
			return i
		}
	}
	return -1
}

// dispatch serves a request that belongs to its era.
func (s *server) dispatch(r *request) (object, *failure) {
	switch r.method {
	case "initialize":
		return s.initialize(r)
	case "ping":
		return object{}, nil
	case "server/discover":
		capabilities := s.capabilities(current)
		if s.is("discovers-less") {
			delete(capabilities, "prompts")
		}
		return s.cached(r, object{"supportedVersions": served, "capabilities": capabilities}), nil
	case "logging/setLevel":
		if levelOf(r.params["level"]) < 0 && !s.is("takes-any-level") {
			return nil, fail(-32602, "unknown level")
		}
		s.mu.Lock()
		s.level, _ = r.params["level"].(string)
		s.mu.Unlock()
		return object{}, nil
	case "tools/list":
		return s.list(r, "tools", s.tools(r))
	case "resources/list":
		return s.list(r, "resources", []any{
			object{"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
			object{"uri": "test://broken", "name": "broken"},
			object{"uri": "test://static-binary", "name": "binary", "mimeType": "application/octet-stream"}})
	case "resources/templates/list":
		return s.list(r, "resourceTemplates", []any{object{"uriTemplate": "test://template/{id}/data", "name": "template"}})
	case "prompts/list":
		return s.list(r, "prompts", []any{object{"name": "test_prompt_with_arguments", "arguments": []any{object{"name": "arg1", "required": true}, object{"name": "arg2", "required": true}}}})
	case "tools/call":
		return s.call(r)
	case "resources/read":
		return s.read(r)
	case "resources/subscribe", "resources/unsubscribe":
		uri, ok := r.params["uri"].(string)
		if !ok {
			return nil, fail(-32602, "uri is missing")
		}
		s.mu.Lock()
		s.watched[uri] = r.method == "resources/subscribe"
		s.mu.Unlock()
		return object{}, nil
	case "prompts/get":
		return s.prompt(r)
	case "completion/complete":
		return s.complete(r)
	case "subscriptions/listen":
		return s.listen(r)
	}
	return object{}, nil // unknown-method-served
}

// cached adds what a client may keep a result by.
func (s *server) cached(r *request, result object) object {
	if r.modern() {
		result["ttlMs"], result["cacheScope"] = 0, "public"
	}
	return result
}

func (s *server) list(r *request, member string, items []any) (object, *failure) {
	if cursor, ok := r.params["cursor"]; ok && cursor != nil {
		if _, isText := cursor.(string); !isText && s.is("internal-error-for-params") {
			return nil, fail(-32603, "internal error")
		}
		if !s.is("takes-any-cursor") {
			return nil, fail(-32602, "unknown cursor")
		}
	}
	result := s.cached(r, object{member: items})
	if s.is("null-list") {
		result[member] = nil
	}
	return result, nil
}

func (s *server) read(r *request) (object, *failure) {
	uri, ok := r.params["uri"].(string)
	if !ok {
		if s.is("internal-error-for-params") {
			return nil, fail(-32603, "internal error")
		}
		return nil, fail(-32602, "uri is missing")
	}
	content := object{"uri": uri}
	switch {
	case uri == "test://broken":
		return nil, fail(-32603, "reading failed")
	case uri == "test://static-text":
		content["mimeType"], content["text"] = "text/plain", "static"
	case uri == "test://static-binary":
		content["mimeType"], content["blob"] = "application/octet-stream", "AAEC/w=="
		switch s.fault {
		case "broken-base64":
			content["blob"] = "not base64!"
		case "binary-as-text":
			delete(content, "blob")
			content["text"] = "\x00\x01"
		}
	case strings.HasPrefix(uri, "test://template/") && strings.HasSuffix(uri, "/data"):
		content["text"] = "of " + uri
	case s.is("empty-contents"):
		return s.cached(r, object{"contents": []any{}}), nil
	case r.modern() && !s.is("old-not-found-code"):
		return nil, &failure{-32602, "no such resource", object{"uri": uri}}
	default:
		return nil, &failure{-32002, "no such resource", object{"uri": uri}}
	}
	if s.is("other-uri") {
		content["uri"] = "test://another"
	}
	return s.cached(r, object{"contents": []any{content}}), nil
}

func (s *server) prompt(r *request) (object, *failure) {
	name, ok := r.params["name"].(string)
	if !ok {
		return nil, fail(-32602, "name is missing")
	}
	if name != "test_prompt_with_arguments" {
		if s.is("unknown-prompt-served") {
			return object{"messages": []any{}}, nil
		}
		return nil, fail(-32602, "unknown prompt %s", name)
	}
	args, _ := r.params["arguments"].(object)
	one, ok1 := args["arg1"].(string)
	two, ok2 := args["arg2"].(string)
	if (!ok1 || !ok2) && !s.is("prompt-arguments-unchecked") {
		return nil, fail(-32602, "arg1 and arg2 are strings and required")
	}
	return object{"messages": []any{object{"role": "user", "content": object{"type": "text", "text": one + ", " + two}}}}, nil
}

func (s *server) complete(r *request) (object, *failure) {
	ref, _ := r.params["ref"].(object)
	argument, _ := r.params["argument"].(object)
	value, isText := argument["value"].(string)
	_, named := argument["name"].(string)
	known := ref["type"] == "ref/prompt" && ref["name"] == "test_prompt_with_arguments" || ref["type"] == "ref/resource" && ref["uri"] == "test://template/{id}/data"
	if !known || !isText || !named {
		return nil, fail(-32602, "unknown reference or argument")
	}
	values := []string{}
	for i := range 150 {
		if item := fmt.Sprintf("item%03d", i); strings.HasPrefix(item, value) && (len(values) < 100 || s.is("many-completions")) {
			values = append(values, item)
		}
	}
	return object{"completion": object{"values": values, "hasMore": false}}, nil
}

// answered hands the client's answer to the tool that asked.
func (s *server) answered(id json.RawMessage, m map[string]json.RawMessage) bool {
	s.mu.Lock()
	waiting := s.asked[string(id)]
	delete(s.asked, string(id))
	s.mu.Unlock()
	if waiting == nil {
		return false
	}
	var result object
	_ = json.Unmarshal(m["result"], &result) // an error is an answer without a result
	waiting <- result
	return true
}

// ask sends a request of the server's own and waits for the answer.
func (s *server) ask(r *request, method string, params object) object {
	s.mu.Lock()
	s.nextAsk++
	if s.is("asks-with-one-id") {
		s.nextAsk = 1
	}
	id := json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("ask-%d", s.nextAsk)))
	answer := make(chan object, 1)
	s.asked[string(id)] = answer
	s.mu.Unlock()
	s.write(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	select {
	case result := <-answer:
		return result
	case <-r.ctx.Done():
		return nil
	case <-s.over:
		r.cancel()
		return nil
	}
}
