package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A nodeList is a list of node ids in encoded form: the elements of a JSON array, with commas between. A long run completes
// tens of thousands of nodes, and whoever reads a page of its events only copies them.
type nodeList []byte

func nodeListOf(ids []string) (l nodeList) {
	for _, id := range ids {
		l.add(id)
	}
	return l
}

func (l *nodeList) add(id string) {
	if len(*l) > 0 {
		*l = append(*l, ',')
	}
	*l = appendString(*l, id)
}

// ids decodes the list. What add wrote or UnmarshalJSON accepted can be decoded.
func (l nodeList) ids() []string {
	var ids []string
	if raw, err := l.MarshalJSON(); err != nil || json.Unmarshal(raw, &ids) != nil {
		panic(fmt.Sprintf("node list %.100q", []byte(l)))
	}
	return ids
}

// MarshalJSON writes the array.
func (l nodeList) MarshalJSON() ([]byte, error) {
	return append(append(append(make([]byte, 0, len(l)+2), '['), l...), ']'), nil
}

// UnmarshalJSON accepts an array of strings, or null.
func (l *nodeList) UnmarshalJSON(raw []byte) error {
	*l = nil
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if len(raw) < 2 || raw[0] != '[' {
		return fmt.Errorf("a list of nodes is not %.20q", raw)
	}
	elements := bytes.TrimSpace(raw[1 : len(raw)-1])
	inside := false
	for i := 0; i < len(elements); i++ {
		switch c := elements[i]; {
		case c == '"':
			inside = !inside
		case inside && c == '\\':
			i++
		case !inside && !bytes.ContainsRune([]byte(", \t\r\n"), rune(c)):
			return fmt.Errorf("a list of nodes holds something else: %.20q", elements[i:])
		}
	}
	*l = bytes.Clone(elements)
	return nil
}
