package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// tool is what a tool takes: the types of its arguments and which of them it needs.
type tool struct {
	name     string
	takes    map[string]string
	required []string
	output   object
}

var toolbox = []tool{
	{"echo", map[string]string{"text": "string"}, []string{"text"}, nil},
	{"opt", map[string]string{"a": "string", "limit": "integer"}, []string{"a"}, nil},
	{"noargs", nil, nil, nil},
	{"slow", map[string]string{"ms": "integer"}, []string{"ms"}, nil},
	{"steps", map[string]string{"n": "integer"}, []string{"n"}, nil},
	{"counter_inc", nil, nil, nil},
	{"counter_get", nil, nil, nil},
	{"log_levels", nil, nil, nil},
	{"test_error_handling", nil, nil, nil},
	{"test_trigger_tool_change", nil, nil, nil},
	{"touch_resource", nil, nil, nil},
	{"ask", nil, nil, nil},
	{"structured", map[string]string{"n": "integer"}, []string{"n"}, object{"type": "object", "properties": object{"n": object{"type": "integer"}, "double": object{"type": "integer"}}, "required": []string{"n", "double"}}},
}

func (s *server) tools(r *request) []any {
	var list []any
	for _, t := range toolbox {
		properties := object{}
		for name, kind := range t.takes {
			properties[name] = object{"type": kind}
			if name == "limit" {
				properties[name] = object{"type": kind, "minimum": 1, "maximum": 10}
			}
		}
		schema := object{"type": "object", "properties": properties, "additionalProperties": false}
		if len(t.required) > 0 {
			schema["required"] = t.required
		}
		entry := object{"name": t.name, "description": "a tool for tests", "inputSchema": schema}
		if t.output != nil && r.rev >= "2025-06-18" {
			entry["outputSchema"] = t.output
		}
		switch s.fault {
		case "schema-without-type":
			entry["inputSchema"] = object{}
		case "null-description":
			entry["description"] = nil
		case "odd-tool-names":
			entry["name"] = t.name + " (test)"
		}
		list = append(list, entry)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.extra {
		list = append(list, object{"name": "extra", "inputSchema": object{"type": "object"}})
	}
	if s.is("list-in-turns") {
		s.counter++
		if s.counter%2 == 0 {
			list[0], list[1] = list[1], list[0]
		}
	}
	if s.is("list-by-process") {
		list = append(list, object{"name": fmt.Sprintf("tool_%d", os.Getpid()), "inputSchema": object{"type": "object"}})
	}
	return list
}

func text(t string) object { return object{"content": []any{object{"type": "text", "text": t}}} }

func (s *server) toolError(format string, args ...any) object {
	result := text(fmt.Sprintf(format, args...))
	result["isError"] = true
	if s.is("error-flag-as-text") {
		result["isError"] = "true"
	}
	return result
}

func (s *server) call(r *request) (object, *failure) {
	name, ok := r.params["name"].(string)
	args, isObject := r.params["arguments"].(object)
	if !ok || r.params["arguments"] != nil && !isObject {
		if s.is("internal-error-for-params") {
			return nil, fail(-32603, "internal error")
		}
		return nil, fail(-32602, "a call wants a name and an object of arguments")
	}
	for _, t := range toolbox {
		if t.name != name {
			continue
		}
		if bad := t.check(args); bad != "" && !s.is("arguments-unchecked") {
			if s.is("bad-arguments-internal") {
				return nil, fail(-32603, "%s", bad)
			}
			return s.toolError("%s", bad), nil
		}
		if said, _ := args["text"].(string); s.is("dies-at-call") && strings.HasPrefix(said, "call ") {
			os.Exit(1)
		}
		return s.run(r, name, args)
	}
	if s.is("unknown-tool-result") {
		return s.toolError("unknown tool"), nil
	}
	return nil, fail(-32602, "unknown tool %s", name)
}

func (t tool) check(args object) string {
	for _, name := range t.required {
		if args[name] == nil {
			return name + " is missing"
		}
	}
	for name, value := range args {
		kind, known := t.takes[name]
		_, isText := value.(string)
		n, isNumber := value.(json.Number)
		switch {
		case !known:
			return "unknown argument " + name
		case kind == "string" && !isText, kind == "integer" && !(isNumber && integer.MatchString(n.String())):
			return name + " is no " + kind
		case name == "limit" && (len(n.String()) > 2 || n.String() > "10" && len(n.String()) == 2 || n.String() < "1"):
			return "limit is 1 to 10"
		}
	}
	return ""
}

func number(args object, name string) int {
	n, _ := args[name].(json.Number)
	i, _ := n.Int64()
	return int(i)
}

func (s *server) run(r *request, name string, args object) (object, *failure) {
	switch name {
	case "echo":
		t, _ := args["text"].(string)
		if s.is("drops-at-eof") && strings.HasPrefix(t, "call ") {
			<-r.ctx.Done() // never: the end of input ends the process first
		}
		if s.is("content-as-text") {
			return object{"content": t}, nil
		}
		if s.is("odd-content") {
			return object{"content": []any{object{"type": "html", "html": t}}}, nil
		}
		return text(t), nil
	case "opt", "noargs":
		return text("ok"), nil
	case "slow":
		return s.slow(r, number(args, "ms")), nil
	case "steps":
		return s.steps(r, number(args, "n")), nil
	case "counter_inc", "counter_get":
		s.mu.Lock()
		defer s.mu.Unlock()
		if name == "counter_inc" {
			s.counter++
		}
		return text(fmt.Sprint(s.counter)), nil
	case "log_levels":
		for _, level := range logLevels {
			s.log(r, level)
		}
		return text("ok"), nil
	case "test_error_handling":
		if s.is("secrets-on-stderr") {
			fmt.Fprintln(os.Stderr, "faulty: the secret is", os.Getenv("FIXTURE_SECRET"))
		}
		if s.is("tool-error-as-protocol-error") {
			return nil, fail(-32603, "the tool failed")
		}
		return s.toolError("this tool always fails"), nil
	case "test_trigger_tool_change":
		s.mu.Lock()
		s.extra = !s.extra
		s.mu.Unlock()
		s.toolsChanged()
		return text("changed"), nil
	case "touch_resource":
		s.resourceUpdated("test://watched-resource")
		return text("touched"), nil
	case "structured":
		n := number(args, "n")
		if r.rev < "2025-06-18" && !s.is("structured-everywhere") {
			return text(fmt.Sprintf(`{"n":%d,"double":%d}`, n, 2*n)), nil
		}
		result := text(fmt.Sprintf(`{"n":%d,"double":%d}`, n, 2*n))
		result["structuredContent"] = object{"n": n, "double": 2 * n}
		switch s.fault {
		case "no-structured-content":
			delete(result, "structuredContent")
		case "structured-misfit":
			result["structuredContent"] = object{"n": fmt.Sprint(n)}
		case "structured-list":
			result["structuredContent"] = []int{n}
		}
		return result, nil
	}
	return s.askName(r)
}

func (s *server) slow(r *request, ms int) object {
	deadline := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for time.Now().Before(deadline) {
		select {
		case <-r.ctx.Done():
			if !s.is("answers-cancelled") {
				return nil
			}
			return text("cancelled")
		case <-s.over:
			r.cancel()
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	return text("done")
}

func (s *server) steps(r *request, n int) object {
	token := r.meta["progressToken"]
	if s.is("progress-without-token") && token == nil {
		token = "invented"
	}
	if s.is("zero-token-dropped") && (token == "" || token == json.Number("0")) {
		token = nil
	}
	if n > 100 { // a limit on the rate: the first and the last are told
		n = 2
	}
	progress := func(done int) {
		if token == nil {
			return
		}
		params := object{"progressToken": token, "progress": done, "total": n}
		switch s.fault {
		case "token-as-text":
			params["progressToken"] = fmt.Sprint(token)
		case "progress-falls":
			params["progress"] = n - done
		case "progress-as-text":
			params["progress"] = fmt.Sprint(done)
		}
		s.notify("notifications/progress", params)
	}
	for i := range n {
		progress(i + 1)
	}
	if s.is("progress-after-reply") {
		s.write(s.resultReply(r, text("done")))
		progress(n + 1)
		return nil
	}
	return text("done")
}

func (s *server) log(r *request, level string) {
	threshold := r.meta[prefix+"logLevel"]
	if !r.modern() {
		s.mu.Lock()
		threshold = s.level
		s.mu.Unlock()
	}
	switch {
	case threshold == nil && !s.is("logs-unasked"):
		return
	case levelOf(level) < levelOf(threshold) && !s.is("logs-below-level"):
		return
	}
	params := object{"level": level, "logger": "faulty", "data": level}
	if s.is("odd-log-level") {
		params["level"] = strings.ToUpper(level)
	}
	if s.is("log-without-data") {
		delete(params, "data")
	}
	s.notify("notifications/message", params)
}

var sealKey = func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}()

func seal(payload string) string {
	mac := hmac.New(sha256.New, sealKey)
	mac.Write([]byte(payload))
	return base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// askName asks the person behind the client for a name, as its revision does it.
func (s *server) askName(r *request) (object, *failure) {
	form := object{"message": "What is your name?", "requestedSchema": object{"type": "object", "properties": object{"name": object{"type": "string"}}, "required": []string{"name"}}}
	if r.rev < "2025-06-18" && !s.is("asks-anybody") || !r.declared(s, "elicitation") && !s.is("asks-undeclared") && !(s.is("remembers-capabilities") && s.clientHas("elicitation")) {
		return s.toolError("there is nobody to ask"), nil
	}
	if !r.modern() || s.is("requests-in-modern") {
		if s.is("input-required-in-session") {
			return object{"content": []any{}, "resultType": "input_required", "inputRequests": object{}}, nil
		}
		return s.greet(s.ask(r, "elicitation/create", form)), nil
	}
	if state, given := r.params["requestState"]; given && state != seal("ask") && !s.is("state-unchecked") {
		return nil, fail(-32602, "this requestState was not given out for this call")
	}
	answers, isObject := r.params["inputResponses"].(object)
	if r.params["inputResponses"] != nil && !isObject {
		return nil, fail(-32602, "inputResponses is no object")
	}
	answer, isObject := answers["name"].(object)
	if isObject && answer["action"] != nil {
		return s.greet(answer), nil
	}
	result := object{"resultType": "input_required", "inputRequests": object{"name": object{"method": "elicitation/create", "params": form}}, "requestState": seal("ask")}
	switch s.fault {
	case "asks-nothing":
		delete(result, "inputRequests")
		delete(result, "requestState")
	case "asks-with-id":
		result["inputRequests"] = []any{object{"id": 1, "method": "elicitation/create", "params": form}}
	case "caches-questions":
		result["ttlMs"], result["cacheScope"] = 0, "public"
	}
	return result, nil
}

func (s *server) greet(answer object) object {
	content, _ := answer["content"].(object)
	name, ok := content["name"].(string)
	if answer["action"] != "accept" || !ok {
		return text("nobody told a name")
	}
	return text("hello " + name)
}
