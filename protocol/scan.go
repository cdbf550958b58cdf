package protocol

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a message. Deeper ones are refused as invalid
// requests, however valid their JSON is.
const maxDepth = 1000

// A verdict is what the scanner thinks of a text.
type verdict uint8

const (
	scanOK        verdict = iota
	scanSyntax            // no JSON text
	scanDuplicate         // a member name occurs twice in one object
	scanDepth             // nested deeper than maxDepth
)

// scanner checks JSON texts strictly (RFC 8259: UTF-8, no control characters in
// strings, one value and nothing after it), finds duplicate member names at any
// depth, and reports the members of the outermost object on its way. It needs no
// memory in the usual case, and no stack of its own however deep a text is.
type scanner struct {
	kinds []uint64 // one bit a level: set for objects
	keys  []keyRef // member names of all open objects, innermost last
	marks []int32  // where each open object's names start in keys
}

type keyRef struct {
	start, end int32 // between the quotes
	tag        uint32
	escaped    bool
}

// tagOf is equal for equal names, and mostly different for others.
func tagOf(name []byte) uint32 {
	n := len(name)
	if n == 0 {
		return 0
	}
	return uint32(n)<<24 ^ uint32(name[0])<<16 ^ uint32(name[n-1])<<8 ^ uint32(name[n/2])
}

// scan checks text and calls member with each name (without quotes) and value of
// the outermost object, and param with those (names as
// they are written) of the object that is its member params, in order. Values are only known to be sound when scan returns scanOK.
// Either function may be nil.
func (s *scanner) scan(b []byte, member, param func(name, value []byte)) verdict {
	if !utf8.Valid(b) {
		return scanSyntax
	}
	s.keys, s.marks = s.keys[:0], s.marks[:0]
	verdict := scanOK
	depth := 0
	inObject := false // the innermost container is one
	// The member that is being read, on the two outermost levels.
	var names [2][]byte
	var starts [2]int
	inParams := false // the object on level 2 is params
	i := 0
value:
	i = skipSpace(b, i)
	if i >= len(b) {
		return scanSyntax
	}
	if depth == 1 || depth == 2 {
		starts[depth-1] = i
	}
	switch c := b[i]; c {
	case '{':
		s.push(depth, true)
		inObject = true
		depth++
		if depth == 2 {
			inParams = param != nil && s.object(0) && string(names[0]) == "params"
		}
		if depth > maxDepth && verdict == scanOK {
			verdict = scanDepth
		}
		if depth <= maxDepth {
			s.marks = append(s.marks, int32(len(s.keys)))
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == '}' {
			goto closing
		}
		goto key
	case '[':
		s.push(depth, false)
		inObject = false
		depth++
		if depth == 2 {
			inParams = false
		}
		if depth > maxDepth && verdict == scanOK {
			verdict = scanDepth
		}
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == ']' {
			goto closing
		}
		goto value
	case '"':
		if i, _ = scanString(b, i); i < 0 {
			return scanSyntax
		}
	case 't':
		if i = literal(b, i, "true"); i < 0 {
			return scanSyntax
		}
	case 'f':
		if i = literal(b, i, "false"); i < 0 {
			return scanSyntax
		}
	case 'n':
		if i = literal(b, i, "null"); i < 0 {
			return scanSyntax
		}
	default:
		if i = scanNumber(b, i); i < 0 {
			return scanSyntax
		}
	}
after:
	if depth == 0 {
		if skipSpace(b, i) != len(b) {
			return scanSyntax
		}
		return verdict
	}
	switch {
	case depth == 1 && inObject && member != nil:
		member(names[0], b[starts[0]:i])
	case depth == 2 && inParams:
		param(names[1], b[starts[1]:i])
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return scanSyntax
	}
	if b[i] == ',' {
		i++
		if !inObject {
			goto value
		}
		i = skipSpace(b, i)
		goto key
	}
closing:
	if inObject {
		if b[i] != '}' {
			return scanSyntax
		}
		if depth <= maxDepth {
			if s.duplicates(b) && verdict == scanOK {
				verdict = scanDuplicate
			}
		}
	} else if b[i] != ']' {
		return scanSyntax
	}
	i++
	if depth--; depth > 0 {
		inObject = s.object(depth - 1)
	}
	goto after
key:
	if i >= len(b) || b[i] != '"' {
		return scanSyntax
	}
	{
		end, escaped := scanString(b, i)
		if end < 0 {
			return scanSyntax
		}
		name := b[i+1 : end-1]
		if escaped {
			name = unescape(name)
		}
		if depth <= maxDepth {
			s.keys = append(s.keys, keyRef{int32(i + 1), int32(end - 1), tagOf(name), escaped})
		}
		switch depth {
		case 1:
			names[0] = name
		case 2:
			names[1] = b[i+1 : end-1]
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return scanSyntax
		}
		i++
	}
	goto value
}

func (s *scanner) push(depth int, object bool) {
	word, bit := depth/64, uint(depth%64)
	if word == len(s.kinds) {
		s.kinds = append(s.kinds, 0)
	}
	if object {
		s.kinds[word] |= 1 << bit
	} else {
		s.kinds[word] &^= 1 << bit
	}
}

func (s *scanner) object(level int) bool {
	return s.kinds[level/64]&(1<<uint(level%64)) != 0
}

// duplicates closes the innermost object and reports whether a name occurs twice.
func (s *scanner) duplicates(b []byte) bool {
	last := len(s.marks) - 1
	from := s.marks[last]
	s.marks = s.marks[:last]
	keys := s.keys[from:]
	s.keys = s.keys[:from]
	name := func(k keyRef) []byte {
		if k.escaped {
			return unescape(b[k.start:k.end])
		}
		return b[k.start:k.end]
	}
	if len(keys) <= 32 {
		for i := 1; i < len(keys); i++ {
			tag := keys[i].tag
			for j := range keys[:i] {
				if keys[j].tag == tag && bytes.Equal(name(keys[i]), name(keys[j])) {
					return true
				}
			}
		}
		return false
	}
	// Sorting keeps an object of a million members from costing their square.
	compare := func(x, y keyRef) int { return bytes.Compare(name(x), name(y)) }
	slices.SortFunc(keys, compare)
	for i := 1; i < len(keys); i++ {
		if compare(keys[i-1], keys[i]) == 0 {
			return true
		}
	}
	return false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func literal(b []byte, i int, want string) int {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return -1
	}
	return i + len(want)
}

// scanString returns the index after the string that opens at b[i], or -1.
func scanString(b []byte, i int) (end int, escaped bool) {
	i++
	for {
		if i = skipPlain(b, i); i >= len(b) {
			return -1, false
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
			if i >= len(b) {
				return -1, false
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i++
			case 'u':
				if len(b)-i < 5 || !hex4(b[i+1:i+5]) {
					return -1, false
				}
				i += 5
			default:
				return -1, false
			}
		default:
			return -1, false // a raw control character
		}
	}
}

func hex4(b []byte) bool {
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// scanNumber returns the index after the number at b[i], or -1.
func scanNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
