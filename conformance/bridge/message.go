package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"fabro-mcp/conformance/transcript"
)

// message is one JSON-RPC message with the parts the bridge looks at.
type message struct {
	ID      json.RawMessage
	Method  string
	Params  json.RawMessage
	session bool // it belongs to a session of the handshake revisions

	members map[string]json.RawMessage
	params  map[string]json.RawMessage
	meta    map[string]json.RawMessage
}

func parseMessage(data []byte) (*message, error) {
	m := &message{}
	if err := json.Unmarshal(data, &m.members); err != nil {
		return nil, err
	}
	if m.members == nil {
		return nil, errors.New("null")
	}
	m.ID, m.Params = m.members["id"], m.members["params"]
	// What is not of the expected type is passed on as it is, for the server to
	// judge.
	_ = json.Unmarshal(m.members["method"], &m.Method)
	_ = json.Unmarshal(m.Params, &m.params)
	_ = json.Unmarshal(m.params["_meta"], &m.meta)
	return m, nil
}

const metaPrefix = "io.modelcontextprotocol/"

// version is the revision the request claims in _meta, or "".
func (m *message) version() string {
	var v string
	_ = json.Unmarshal(m.meta[metaPrefix+"protocolVersion"], &v)
	return v
}

// modern reports whether the request carries its own version.
func (m *message) modern() bool {
	v := m.version()
	return v != "" && (transcript.Modern(v) || m.Method != "initialize")
}

func (m *message) completeMeta() bool {
	return m.version() != "" && bytes.HasPrefix(bytes.TrimSpace(m.meta[metaPrefix+"clientCapabilities"]), []byte("{"))
}

// name is what the Mcp-Name header repeats: params.name, uri or taskId.
func (m *message) name() (string, bool) {
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}[m.Method]
	if member == "" || m.params[member] == nil {
		return "", false
	}
	var name string
	return name, json.Unmarshal(m.params[member], &name) == nil
}

// decodeHeader reads the =?base64?…?= form of values that are no plain ASCII.
func decodeHeader(v string) string {
	if inner, ok := strings.CutPrefix(v, "=?base64?"); ok {
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?=")); err == nil {
			return string(b)
		}
	}
	return v
}

// withMeta returns params with one member of _meta replaced.
func (m *message) withMeta(key string, value any) json.RawMessage {
	v, err := json.Marshal(value)
	if err != nil {
		return m.Params
	}
	m.meta[key] = v
	m.params["_meta"], _ = json.Marshal(m.meta)
	out, _ := json.Marshal(m.params)
	return out
}

// compact writes the message on one line.
func (m *message) compact() []byte {
	if m.ID != nil {
		m.members["id"] = m.ID
	}
	if m.Params != nil {
		m.members["params"] = m.Params
	}
	var b bytes.Buffer
	out, err := json.Marshal(m.members)
	if err != nil || json.Compact(&b, out) != nil {
		return nil
	}
	return b.Bytes()
}

func (m *message) result() (result, meta map[string]json.RawMessage) {
	_ = json.Unmarshal(m.members["result"], &result)
	_ = json.Unmarshal(result["_meta"], &meta)
	return result, meta
}

func (m *message) resultMeta(key string) json.RawMessage {
	_, meta := m.result()
	return meta[key]
}

func (m *message) setResultMeta(key string, value json.RawMessage) {
	result, meta := m.result()
	if meta == nil {
		return
	}
	meta[key] = value
	result["_meta"], _ = json.Marshal(meta)
	m.members["result"], _ = json.Marshal(result)
}

func (m *message) code() int64 {
	var e struct{ Code int64 }
	_ = json.Unmarshal(m.members["error"], &e)
	return e.Code
}
