package hosts

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// style is how a file is laid out, as far as a new member must follow it.
type style struct {
	newline string // "\n" or "\r\n"; empty when the file is one line
	unit    string // one level of indentation
	colon   []byte // between colon and value
}

// styleOf takes the layout from the first indented line, and two spaces where
// there is none. A file on one line stays on one line, except an empty object:
// that is a file just begun.
func styleOf(src []byte) style {
	s := style{newline: "\n", unit: "  ", colon: []byte(" ")}
	body := bytes.TrimSpace(src)
	if bytes.Contains(src, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	if !bytes.Contains(body, []byte("\n")) && !regexp.MustCompile(`^\{\s*\}$`).Match(body) {
		s.newline, s.unit = "", ""
		if !bytes.Contains(body, []byte(`": `)) {
			s.colon = nil
		}
		return s
	}
	if m := regexp.MustCompile(`\n([ \t]+)"`).FindSubmatch(src); m != nil {
		s.unit = string(m[1])
	}
	return s
}

// indent is what stands before a member of that depth.
func (s style) indent(depth int) []byte {
	if s.newline == "" {
		return nil
	}
	return []byte(s.newline + string(bytes.Repeat([]byte(s.unit), depth)))
}

// list writes words as an array, one a line, that is the value of a member of
// that depth.
func (s style) list(words []string, depth int) []byte {
	if len(words) == 0 {
		return []byte("[]")
	}
	out := []byte("[")
	for i, w := range words {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, s.indent(depth+1)...)
		word, _ := json.Marshal(w)
		out = append(out, word...)
	}
	out = append(out, s.indent(depth)...)
	return append(out, ']')
}
