package protocol

import (
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"fabro-mcp/internal/plural"
)

// fault is what keeps a value from fitting a schema.
type fault struct {
	path string // JSON pointer into the value
	text string
}

func (f *fault) Error() string {
	if f.path == "" {
		return f.text
	}
	return f.path + " " + f.text
}

func (f *fault) at(part string) *fault {
	f.path = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(part)) + f.path
	return f
}

func faulty(format string, args ...any) *fault { return &fault{text: fmt.Sprintf(format, args...)} }

// check holds a sound value against the schema; nil is a fit.
func (s *schema) check(v []byte) error {
	if f := s.validate(trimSpace(v), 0); f != nil {
		return f
	}
	return nil
}

// maxSchemaDepth ends references that go in circles without descending.
const maxSchemaDepth = 4 * maxDepth

func (s *schema) validate(v []byte, depth int) *fault {
	_, f := s.walk(v, 0, depth)
	return f
}

// walk holds the value at b[i] against the schema in one pass and returns where it
// ends; after a fault the place means nothing.
func (s *schema) walk(b []byte, i, depth int) (end int, f *fault) {
	if depth > maxSchemaDepth {
		return skipValue(b, i), nil
	}
	if s.never {
		return i, faulty("is not allowed")
	}
	types := typeOfByte[b[i]]
	if s.types != 0 && s.types&types == 0 {
		return i, faulty("must be %s, not %s", s.types, describe(b[i:skipValue(b, i)]))
	}
	switch types {
	case typeObject:
		end, f = s.walkObject(b, i, depth)
	case typeArray:
		end, f = s.walkArray(b, i, depth)
	case typeString:
		end, _ = skipString(b, i)
		f = s.checkString(b[i:end])
	case typeNumber | typeInteger:
		end = skipScalar(b, i)
		f = s.checkNumber(b[i:end])
	default:
		end = skipScalar(b, i)
	}
	if f == nil && s.enum != nil {
		f = s.checkEnum(b[i:end])
	}
	if f == nil && s.combines {
		f = s.checkCombined(b[i:end], depth)
	}
	return end, f
}

// typeOfByte tells the type of a sound value by its first byte; a number may be an
// integer or not.
var typeOfByte = func() (t [256]typeSet) {
	for c := range t {
		t[c] = typeNumber | typeInteger
	}
	t['{'], t['['], t['"'], t['t'], t['f'], t['n'] = typeObject, typeArray, typeString, typeBoolean, typeBoolean, typeNull
	return t
}()

func (s *schema) checkNumber(v []byte) *fault {
	if s.types&typeInteger != 0 && s.types&typeNumber == 0 && !isInteger(v) {
		if r, ok := ratOf(string(v)); !ok || !r.IsInt() {
			return faulty("must be %s, not %s", s.types, describe(v))
		}
	}
	if s.limits == nil {
		return nil
	}
	n, exact := smallInteger(v)
	var r *big.Rat
	for i := range s.limits {
		l := &s.limits[i]
		if exact && l.small != nil {
			if !l.small(n) {
				return faulty("%s, but is %s", l.text, v)
			}
			continue
		}
		if r == nil {
			var ok bool
			if r, ok = ratOf(string(v)); !ok {
				return nil
			}
		}
		if !l.holds(r) {
			return faulty("%s, but is %s", l.text, clip(string(v)))
		}
	}
	return nil
}

// smallInteger reads a number in plain integer spelling of at most 18 digits.
func smallInteger(v []byte) (n int64, ok bool) {
	if !isInteger(v) || len(v) > 18 {
		return 0, false
	}
	digits := v
	if v[0] == '-' {
		digits = v[1:]
	}
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if v[0] == '-' {
		n = -n
	}
	return n, true
}

func (s *schema) checkEnum(v []byte) *fault {
	for _, e := range s.enum {
		if string(e) == string(v) {
			return nil
		}
	}
	got := canonicalValue(v)
	allowed := make([]string, len(s.enum))
	for i, e := range s.enum {
		if string(e) == string(got) {
			return nil
		}
		allowed[i] = string(e)
	}
	return faulty("must be one of %s, but is %s", strings.Join(allowed, ", "), clip(string(v)))
}

func describe(v []byte) string {
	switch typeOfByte[v[0]] {
	case typeObject:
		return "an object"
	case typeArray:
		return "an array"
	case typeString:
		return "the string " + clip(string(v))
	case typeNumber | typeInteger:
		return "the number " + clip(string(v))
	}
	return string(v) // true, false, null
}

func (s *schema) checkString(v []byte) *fault {
	if s.minLength == 0 && s.maxLength < 0 && s.pattern == nil {
		return nil
	}
	text, _ := stringValue(v)
	n := utf8.RuneCountInString(text)
	switch {
	case n < s.minLength:
		return faulty("must have at least %s", plural.Count(s.minLength, "character"))
	case s.maxLength >= 0 && n > s.maxLength:
		return faulty("must have at most %s", plural.Count(s.maxLength, "character"))
	case s.pattern != nil && !s.pattern.MatchString(text):
		return faulty("must match %s", s.pattern)
	}
	return nil
}
