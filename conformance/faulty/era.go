package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// served are the revisions in the order of server/discover.
var served = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// methods says which eras have a method: "l" with the handshake, "m" with per-request
// versions.
var methods = map[string]string{
	"initialize": "l", "ping": "l", "logging/setLevel": "l", "resources/subscribe": "l", "resources/unsubscribe": "l",
	"server/discover": "m", "subscriptions/listen": "m",
	"tools/list": "lm", "tools/call": "lm", "resources/list": "lm", "resources/read": "lm", "resources/templates/list": "lm",
	"prompts/list": "lm", "prompts/get": "lm", "completion/complete": "lm",
}

// era decides under which revision a request is served, or refuses it.
func (s *server) era(r *request) *failure {
	s.mu.Lock()
	session, probed := s.session, s.probed
	s.probed = probed || r.method == "server/discover"
	s.mu.Unlock()
	meta, given := r.params["_meta"]
	r.meta, _ = meta.(object)
	if given && r.meta == nil {
		if s.is("takes-any-meta") {
			r.rev = current
			return s.known(r, 'm')
		}
		r.rev = session
		return fail(-32602, "_meta is no object")
	}
	claim, claimed := r.meta[prefix+"protocolVersion"]
	version, isText := claim.(string)
	if claimed && (session == "" || version >= current || !legacy[version]) {
		r.rev = current
		return s.modernGate(r, version, isText)
	}
	r.rev = session
	switch {
	case r.method == "initialize":
		if s.is("pinned-by-probe") && probed {
			return fail(-32600, "the era is decided already")
		}
		if session != "" && !s.is("initializes-twice") {
			return fail(-32600, "the session is open already")
		}
	case session == "":
		if r.method == "ping" {
			return nil
		}
		if methods[r.method] == "" {
			return fail(-32601, "unknown method %s", r.method)
		}
		if s.is("serves-without-session") && methods[r.method] != "m" {
			r.rev = "2025-11-25"
			return nil
		}
		return &failure{-32602, "no session, and _meta lacks " + prefix + "protocolVersion and " + prefix + "clientCapabilities", object{"supported": served}}
	}
	return s.known(r, 'l')
}

// modernGate checks the envelope of a modern request.
func (s *server) modernGate(r *request, version string, isText bool) *failure {
	capabilities, hasCapabilities := r.meta[prefix+"clientCapabilities"].(object)
	switch {
	case !isText:
		if !s.is("takes-any-version") {
			return fail(-32602, "%sprotocolVersion is no string", prefix)
		}
	case version != current && !s.is("takes-any-version"):
		data := object{"supported": served, "requested": version}
		if legacy[version] {
			data["supported"] = served[:1]
		}
		switch s.fault {
		case "version-error-without-data":
			return fail(-32022, "unsupported version")
		case "version-error-code":
			return &failure{-32602, "unsupported version", data}
		case "version-error-echo":
			data["requested"] = current
		}
		return &failure{-32022, "unsupported version " + version, data}
	case !hasCapabilities && !s.is("capabilities-unchecked"):
		return fail(-32602, "_meta lacks %sclientCapabilities", prefix)
	}
	if info, ok := r.meta[prefix+"clientInfo"]; ok {
		i, _ := info.(object)
		if _, hasVersion := i["version"].(string); !hasVersion {
			return fail(-32602, "clientInfo has no version")
		}
	}
	if level, ok := r.meta[prefix+"logLevel"]; ok && levelOf(level) < 0 {
		return fail(-32602, "unknown logLevel")
	}
	if s.is("remembers-capabilities") && len(capabilities) > 0 {
		s.mu.Lock()
		s.client = capabilities
		s.mu.Unlock()
	}
	return s.known(r, 'm')
}

func (s *server) known(r *request, era rune) *failure {
	if s.is("method-case-folded") {
		for m := range methods {
			if len(m) == len(r.method) && equalFold(m, r.method) {
				r.method = m
			}
		}
	}
	has := slices.Contains([]rune(methods[r.method]), era)
	if era == 'm' && (s.is("serves-ping-everywhere") && r.method == "ping" || s.is("serves-initialize-everywhere") && r.method == "initialize") {
		has = true
	}
	if has {
		return s.tokenOK(r)
	}
	switch s.fault {
	case "unknown-method-code":
		return fail(-32602, "unknown method")
	case "unknown-method-served":
		return nil
	}
	return fail(-32601, "unknown method %s", r.method)
}

func (s *server) tokenOK(r *request) *failure {
	switch token := r.meta["progressToken"].(type) {
	case nil, string:
	case json.Number:
		if !integer.MatchString(token.String()) {
			return fail(-32602, "progressToken is neither a string nor an integer")
		}
	default:
		return fail(-32602, "progressToken is neither a string nor an integer")
	}
	return nil
}

func equalFold(a, b string) bool {
	for i := range len(a) {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}

// initialize opens a session.
func (s *server) initialize(r *request) (object, *failure) {
	version, okVersion := r.params["protocolVersion"].(string)
	capabilities, okCapabilities := r.params["capabilities"].(object)
	info, okInfo := r.params["clientInfo"].(object)
	if !(okVersion && okCapabilities && okInfo && info["name"] != nil) && !s.is("takes-any-initialize") {
		return nil, fail(-32602, "initialize wants protocolVersion, capabilities and clientInfo")
	}
	if !legacy[version] {
		version = "2025-11-25"
	}
	switch s.fault {
	case "echoes-any-version":
		version, _ = r.params["protocolVersion"].(string)
	case "echoes-modern-proposal":
		if proposed, _ := r.params["protocolVersion"].(string); proposed == current {
			version = current
		}
	}
	s.mu.Lock()
	s.session, s.client = version, capabilities
	if !legacy[version] {
		s.session = "2025-11-25"
	}
	s.mu.Unlock()
	result := object{"protocolVersion": version, "capabilities": s.capabilities(version), "serverInfo": object{"name": "faulty", "version": "1"}, "instructions": "a server for tests"}
	if s.is("no-server-name") {
		delete(result, "serverInfo")
	}
	return result, nil
}

func (s *server) capabilities(version string) object {
	changed := object{"listChanged": true}
	caps := object{"tools": changed, "prompts": object{}, "resources": object{"subscribe": true}, "logging": object{}}
	if version != "2024-11-05" {
		caps["completions"] = object{}
	}
	switch s.fault {
	case "capability-true":
		caps["tools"] = true
	case "logging-undeclared":
		delete(caps, "logging")
	case "core-tasks-everywhere":
		caps["tasks"] = object{"list": object{}}
	}
	return caps
}

func (s *server) clientHas(capability string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.client[capability]
	return ok || s.is("asks-anybody")
}

// notified takes a notification.
func (s *server) notified(method string, params any) {
	p, _ := params.(object)
	switch method {
	case "notifications/cancelled":
		s.cancelled(p["requestId"])
	case "notifications/initialized", "notifications/progress", "notifications/roots/list_changed":
	default:
		if s.is("answers-unknown-notifications") {
			s.refuse(noID, fail(-32601, "unknown notification"))
		}
	}
	if s.is("answers-notifications") {
		s.write(object{"jsonrpc": "2.0", "id": noID, "result": object{}})
	}
}

func (s *server) cancelled(id any) {
	key, err := json.Marshal(id)
	if err != nil || s.is("ignores-cancel") {
		return
	}
	if s.is("cancels-by-text") {
		key = []byte(fmt.Sprint(id))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is("cancels-everything") {
		for _, r := range s.inflight {
			r.cancel()
		}
	}
	if r := s.inflight[string(key)]; r != nil {
		r.cancel()
	}
	if r := s.listens[string(key)]; r != nil && !s.is("listens-for-ever") {
		r.cancel()
		delete(s.listens, string(key))
	}
}
