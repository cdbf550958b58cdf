package protocol

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// schema checks JSON texts as they are, without decoding them. It knows the
// validating keywords of JSON Schema 2020-12 that tools use; it ignores formats,
// annotations, and whatever it does not know (anchors, dynamic and remote
// references, unevaluated members), so that it never refuses what a full
// validator would accept.
type schema struct {
	never bool // the schema false

	types      typeSet // 0 is any
	enum       [][]byte
	properties properties
	patterns   []patternSchema
	additional *schema
	names      *schema
	required   []string
	dependent  map[string][]string
	minProps   int
	maxProps   int // -1 is none

	prefix   []*schema
	items    *schema
	contains *schema
	minItems int
	maxItems int
	unique   bool

	minLength, maxLength int
	pattern              *regexp.Regexp

	limits []limit

	combines      bool // some of the following are set
	all, any, one []*schema
	not, cond     *schema
	thenS, elseS  *schema
	ref           *schema
}

type patternSchema struct {
	re     *regexp.Regexp
	schema *schema
}

type limit struct {
	text  string // for the message
	holds func(v *big.Rat) bool
	small func(v int64) bool // the same for small integers; nil where the bound is none
}

type typeSet uint8

const (
	typeObject typeSet = 1 << iota
	typeArray
	typeString
	typeNumber
	typeInteger
	typeBoolean
	typeNull
)

var typeNames = []struct {
	name string
	bit  typeSet
}{{"object", typeObject}, {"array", typeArray}, {"string", typeString}, {"number", typeNumber}, {"integer", typeInteger}, {"boolean", typeBoolean}, {"null", typeNull}}

func (t typeSet) String() string {
	var names []string
	for _, n := range typeNames {
		if t&n.bit != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

// lazySchema compiles a schema when it is first needed.
type lazySchema struct {
	text []byte
	once sync.Once
	s    *schema
}

func (l *lazySchema) get() *schema {
	l.once.Do(func() {
		if l.s, _ = compileSchema(l.text); l.s == nil {
			l.s = &schema{maxProps: -1, maxItems: -1, maxLength: -1}
		}
	})
	return l.s
}

type schemaCompiler struct {
	root []byte
	refs map[string]*schema
}

// compileSchema compiles a schema text.
func compileSchema(text []byte) (*schema, error) {
	var s scanner
	if s.scan(text, nil, nil) != scanOK {
		return nil, errors.New("the schema is no sound JSON")
	}
	root := trimSpace(text)
	c := &schemaCompiler{root: root, refs: make(map[string]*schema)}
	return c.ref("#")
}

func (c *schemaCompiler) ref(pointer string) (*schema, error) {
	if s := c.refs[pointer]; s != nil {
		return s, nil
	}
	node := c.root
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "#"), "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if isArray(node) {
			i, err := strconv.Atoi(part)
			at := -1
			found := []byte(nil)
			elements(node, func(v []byte) bool {
				if at++; err == nil && at == i {
					found = v
				}
				return true
			})
			node = found
		} else {
			node = field(node, part)
		}
	}
	s := &schema{}
	c.refs[pointer] = s // before its parts: they may refer to it
	if node == nil {
		*s = schema{maxProps: -1, maxItems: -1, maxLength: -1}
		return s, nil
	}
	return s, c.fill(s, node)
}

func (c *schemaCompiler) compile(node []byte) (*schema, error) {
	s := &schema{}
	return s, c.fill(s, node)
}

func (c *schemaCompiler) fill(s *schema, node []byte) (err error) {
	*s = schema{maxProps: -1, maxItems: -1, maxLength: -1, never: string(node) == "false"}
	one := func(dst **schema, v []byte) {
		if *dst, _ = c.compile(v); *dst == nil {
			err = errors.New("unusable subschema")
		}
	}
	list := func(dst *[]*schema, v []byte) {
		elements(v, func(e []byte) bool {
			var sub *schema
			one(&sub, e)
			*dst = append(*dst, sub)
			return true
		})
	}
	number := func(dst *int, v []byte) {
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f >= 0 && f < math.MaxInt32 {
			*dst = int(f)
		}
	}
	members(node, func(name, v []byte) bool {
		switch string(name) {
		case "type":
			s.types = readTypes(v)
		case "enum":
			elements(v, func(e []byte) bool {
				s.enum = append(s.enum, canonicalValue(e))
				return true
			})
		case "const":
			s.enum = [][]byte{canonicalValue(v)}
		case "properties":
			members(v, func(n, p []byte) bool {
				var sub *schema
				one(&sub, p)
				s.properties.at(string(n)).schema = sub
				return true
			})
		case "patternProperties":
			members(v, func(n, p []byte) bool {
				if re, bad := regexp.Compile(string(n)); bad == nil {
					var sub *schema
					one(&sub, p)
					s.patterns = append(s.patterns, patternSchema{re, sub})
				} else {
					s.additional = nil
				}
				return true
			})
		case "additionalProperties":
			one(&s.additional, v)
		case "propertyNames":
			one(&s.names, v)
		case "required":
			s.required = readStrings(v)
		case "dependentRequired":
			s.dependent = make(map[string][]string)
			members(v, func(n, p []byte) bool {
				s.dependent[string(n)] = readStrings(p)
				return true
			})
		case "minProperties":
			number(&s.minProps, v)
		case "maxProperties":
			number(&s.maxProps, v)
		case "prefixItems":
			list(&s.prefix, v)
		case "items":
			if isArray(v) { // before 2020-12
				list(&s.prefix, v)
			} else {
				one(&s.items, v)
			}
		case "contains":
			one(&s.contains, v)
		case "minItems":
			number(&s.minItems, v)
		case "maxItems":
			number(&s.maxItems, v)
		case "uniqueItems":
			s.unique = string(v) == "true"
		case "minLength":
			number(&s.minLength, v)
		case "maxLength":
			number(&s.maxLength, v)
		case "pattern":
			if p, ok := stringValue(v); ok {
				s.pattern, _ = regexp.Compile(p)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			s.addLimit(string(name), string(v))
		case "allOf":
			list(&s.all, v)
		case "anyOf":
			list(&s.any, v)
		case "oneOf":
			list(&s.one, v)
		case "not":
			one(&s.not, v)
		case "if":
			one(&s.cond, v)
		case "then":
			one(&s.thenS, v)
		case "else":
			one(&s.elseS, v)
		case "$ref":
			if p, _ := stringValue(v); p == "#" || strings.HasPrefix(p, "#/") {
				s.ref, err = c.ref(p)
			}
		}
		return err == nil
	})
	s.properties.index(s.required)
	s.combines = s.all != nil || s.any != nil || s.one != nil || s.not != nil || s.cond != nil || s.ref != nil
	return err
}

func readTypes(v []byte) (t typeSet) {
	add := func(v []byte) bool {
		name, _ := stringValue(v)
		for _, n := range typeNames {
			if n.name == name {
				t |= n.bit
			}
		}
		return true
	}
	if isArray(v) {
		elements(v, add)
	} else {
		add(v)
	}
	return t
}

func readStrings(v []byte) (list []string) {
	elements(v, func(e []byte) bool {
		if s, ok := stringValue(e); ok {
			list = append(list, s)
		}
		return true
	})
	return list
}

func (s *schema) addLimit(name, text string) {
	bound, ok := ratOf(text)
	if !ok {
		return
	}
	n, exact := smallInteger([]byte(text))
	l := limit{}
	switch name {
	case "minimum":
		l = limit{"must be at least " + text, func(v *big.Rat) bool { return v.Cmp(bound) >= 0 }, func(v int64) bool { return v >= n }}
	case "maximum":
		l = limit{"must be at most " + text, func(v *big.Rat) bool { return v.Cmp(bound) <= 0 }, func(v int64) bool { return v <= n }}
	case "exclusiveMinimum":
		l = limit{"must be greater than " + text, func(v *big.Rat) bool { return v.Cmp(bound) > 0 }, func(v int64) bool { return v > n }}
	case "exclusiveMaximum":
		l = limit{"must be less than " + text, func(v *big.Rat) bool { return v.Cmp(bound) < 0 }, func(v int64) bool { return v < n }}
	case "multipleOf":
		if bound.Sign() <= 0 {
			return
		}
		l = limit{"must be a multiple of " + text, func(v *big.Rat) bool { return new(big.Rat).Quo(v, bound).IsInt() }, func(v int64) bool { return v%n == 0 }}
	}
	if !exact {
		l.small = nil
	}
	s.limits = append(s.limits, l)
}

// ratOf reads a number exactly. Numbers with huge exponents, which would fill the
// memory, are not read.
func ratOf(text string) (*big.Rat, bool) {
	const most = 400
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > most || e < -most {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

// canonicalValue is canonical with equal numbers in one spelling.
func canonicalValue(v []byte) []byte {
	return canonicalWith(nil, v, func(raw []byte) []byte {
		if r, ok := ratOf(string(raw)); ok {
			return []byte(r.RatString())
		}
		return raw
	})
}

func isNumber(v []byte) bool {
	return len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9')
}
