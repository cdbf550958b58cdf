package protocol

import "bytes"

// An id is kept as the raw JSON token it came as, and echoed byte for byte.

// validID reports whether a sound value can be a request id: a string, or a number
// in plain integer spelling.
func validID(raw []byte) bool { return isString(raw) || isInteger(raw) }

// idKey turns an id into what it is compared by: numbers by their spelling,
// strings decoded, and never one for the other.
func idKey(raw []byte) string {
	if raw[0] != '"' {
		return string(raw)
	}
	inner := raw[:len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		return `"` + string(unescape(inner[1:]))
	}
	return string(inner)
}
