package plain

import (
	"bytes"
	"encoding/json"
)

// CleanJSON is Clean for every string in a JSON text, names of members included.
// Everything else stays byte for byte; so does a text that is not JSON.
func CleanJSON(text []byte) []byte {
	var out []byte // nil until something changes
	from := 0      // what is copied to out so far
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		start, suspect := i, false
		for i++; i < len(text) && text[i] != '"'; i++ {
			switch c := text[i]; {
			case c == '\\' && i+1 < len(text):
				i++
				suspect = suspect || bytes.IndexByte([]byte("urbf"), text[i]) >= 0
			case c >= 0x7f:
				suspect = true
			}
		}
		if !suspect || i >= len(text) {
			continue
		}
		var s string
		if json.Unmarshal(text[start:i+1], &s) != nil {
			continue
		}
		cleaned := Clean(s)
		if cleaned == s {
			continue
		}
		encoded, err := json.Marshal(cleaned)
		if err != nil {
			continue
		}
		out = append(append(out, text[from:start]...), encoded...)
		from = i + 1
	}
	if out == nil {
		return text
	}
	return append(out, text[from:]...)
}
