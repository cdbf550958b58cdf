package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
)

// raw writes bytes as they are. A reader that is gone ends the process.
func (s *server) raw(b []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := os.Stdout.Write(b); err != nil && !s.is("survives-closed-stdout") {
		os.Exit(0)
	}
}

// listsOnly are the faults that show in the result of tools/list alone.
var listsOnly = map[string]bool{"pretty-prints": true, "bom": true, "answers-in-arrays": true, "empty-lines": true, "crlf": true, "duplicate-members": true}

// write writes one frame, as the fault will have it.
func (s *server) write(frame object) {
	text, err := json.Marshal(frame)
	if err != nil {
		panic(err) // everything in a frame was decoded or built here
	}
	result, _ := frame["result"].(object)
	if result["tools"] == nil && listsOnly[s.fault] {
		s.raw(append(text, '\n')) // the handshake stays whole, or nobody would see the fault
		return
	}
	switch s.fault {
	case "pretty-prints":
		var b bytes.Buffer
		_ = json.Indent(&b, text, "", "  ") // it was marshalled above
		text = b.Bytes()
	case "crlf":
		text = append(text, '\r')
	case "not-utf8":
		text = bytes.ReplaceAll(text, []byte("ä"), []byte{0xe4})
	case "bom":
		text = append([]byte("\ufeff"), text...)
	case "duplicate-members":
		text = bytes.Replace(text, []byte(`{`), []byte(`{"jsonrpc":"2.0",`), 1)
	case "answers-in-arrays":
		text = fmt.Appendf(nil, "[%s]", text)
	case "empty-lines":
		text = append([]byte("\n"), text...)
	}
	s.raw(append(text, '\n'))
	if s.is("answers-twice") && frame["method"] == nil {
		s.raw(append(text, '\n'))
	}
}

func (s *server) refuse(id json.RawMessage, bad *failure) { s.write(s.failureReply(id, bad)) }

func (s *server) notify(method string, params object) {
	frame := object{"jsonrpc": "2.0", "method": method}
	if params != nil {
		frame["params"] = params
	}
	s.write(frame)
}

func (s *server) failureReply(id json.RawMessage, bad *failure) object {
	body := object{"code": bad.code, "message": bad.message}
	if bad.data != nil {
		body["data"] = bad.data
	}
	if bad.code != -32601 && (s.is("fractional-code") || s.is("no-message") || s.is("code-zero")) {
		return object{"jsonrpc": "2.0", "id": id, "error": body}
	}
	switch s.fault {
	case "fractional-code":
		body["code"] = -32601.5
	case "no-message":
		delete(body, "message")
	case "code-zero":
		body["code"] = 0
	case "long-message":
		body["message"] = strings.Repeat("something went wrong ", 40)
	case "stack-traces":
		body["message"] = bad.message + "\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:12"
	case "reserved-code":
		if bad.code == -32602 {
			body["code"] = -32050
		}
	}
	return object{"jsonrpc": "2.0", "id": id, "error": body}
}

// resultReply wraps a result with what the revision wants in each.
func (s *server) resultReply(r *request, result object) object {
	if r.modern() {
		if result["resultType"] == nil {
			result["resultType"] = "complete"
		}
		meta, _ := result["_meta"].(object)
		if meta == nil {
			meta = object{}
		}
		meta[prefix+"serverInfo"] = object{"name": "faulty", "version": "1"}
		result["_meta"] = meta
		s.spoilModern(r, result)
	}
	reply := object{"jsonrpc": "2.0", "id": r.id, "result": result}
	if r.method == "ping" {
		reply["id"] = s.idOut(r.id)
	}
	if r.method != "tools/list" {
		return reply
	}
	switch s.fault {
	case "no-id":
		delete(reply, "id")
	case "result-and-error":
		reply["error"] = object{"code": -32603, "message": "and an error"}
	case "result-array":
		reply["result"] = []any{}
	case "no-version-tag":
		reply["jsonrpc"] = "1.0"
	case "no-result":
		delete(reply, "result")
	case "leaks-newer-members":
		if !r.modern() {
			result["ttlMs"], result["cacheScope"] = 0, "public"
		}
	case "null-cursor":
		result["nextCursor"] = nil
	}
	return reply
}

// spoilModern breaks what only results of the newest revision have.
func (s *server) spoilModern(r *request, result object) {
	switch s.fault {
	case "no-result-type":
		delete(result, "resultType")
	case "odd-result-type":
		result["resultType"] = "done"
	case "no-server-info":
		delete(result, "_meta")
	case "no-cache-hints":
		delete(result, "ttlMs")
		delete(result, "cacheScope")
	case "negative-ttl":
		if result["ttlMs"] != nil {
			result["ttlMs"] = -1
		}
	case "odd-cache-scope":
		if result["cacheScope"] != nil {
			result["cacheScope"] = "shared"
		}
	case "server-info-in-body":
		if r.method == "server/discover" {
			result["serverInfo"] = object{"name": "faulty", "version": "1"}
		}
	}
}

// idOut renders the id of a reply to a ping.
func (s *server) idOut(id json.RawMessage) json.RawMessage {
	switch s.fault {
	case "ids-as-strings":
		if integer.Match(id) {
			return fmt.Appendf(nil, "%q", id)
		}
	case "ids-as-floats":
		if f, ok := new(big.Float).SetString(string(id)); ok && integer.Match(id) {
			n, _ := f.Float32()
			return fmt.Appendf(nil, "%.0f", n)
		}
	case "ids-as-numbers":
		if unquoted := strings.Trim(string(id), `"`); integer.MatchString(unquoted) {
			return json.RawMessage(unquoted)
		}
	}
	return id
}
