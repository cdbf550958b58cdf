package transcript

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"fabro-mcp/conformance/strictjson"
)

// Mismatch is one place where a value does not fit a pattern.
type Mismatch struct {
	Path string            // such as tools[0].name; "" is the whole value
	Got  *strictjson.Value // nil: absent

	node *Pattern
}

// Captures are the values that <… as NAME> took.
type Captures map[string]*strictjson.Value

// Match compares v with the pattern. It returns every place that does not fit,
// and, when all fits, what the pattern captured. A nil pattern fits anything.
func (p *Pattern) Match(v *strictjson.Value, vars Vars) ([]Mismatch, Captures) {
	if p == nil {
		return nil, nil
	}
	m := &matching{vars: vars, captures: Captures{}}
	m.match(p, v, "")
	if len(m.wrong) > 0 {
		return m.wrong, nil
	}
	return nil, m.captures
}

type matching struct {
	vars     Vars
	captures Captures
	wrong    []Mismatch
}

// Var resolves a name: what this very pattern captured first.
func (m *matching) Var(name string) *strictjson.Value {
	if v, ok := m.captures[name]; ok {
		return v
	}
	if m.vars == nil {
		return nil
	}
	return m.vars.Var(name)
}

// fits tries a pattern without keeping its complaints.
func (m *matching) fits(p *Pattern, v *strictjson.Value) bool {
	trial := &matching{vars: m, captures: Captures{}}
	trial.match(p, v, "")
	if len(trial.wrong) > 0 {
		return false
	}
	for name, value := range trial.captures {
		m.captures[name] = value
	}
	return true
}

func (m *matching) match(p *Pattern, v *strictjson.Value, path string) {
	before := len(m.wrong)
	bad := func() { m.wrong = append(m.wrong, Mismatch{path, v, p}) }
	switch p.kind {
	case object:
		if !v.Is(strictjson.Object) {
			bad()
			break
		}
		for _, member := range p.members {
			m.match(member.value, v.Get(member.name), join(path, member.name))
		}
	case array:
		if !v.Is(strictjson.Array) || len(v.Items) != len(p.items) {
			bad()
			break
		}
		for i, item := range p.items {
			m.match(item, v.Items[i], element(path, i))
		}
	default:
		if !m.holds(p, v) {
			bad()
		}
	}
	if p.capture != "" && v != nil && len(m.wrong) == before {
		m.captures[p.capture] = v
	}
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func join(path, name string) string {
	if strings.ContainsAny(name, "./[ ") {
		return path + "[" + strictjson.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// holds decides everything that has one yes or no.
func (m *matching) holds(p *Pattern, v *strictjson.Value) bool {
	switch p.kind {
	case literal:
		return v != nil && strictjson.Equal(p.value, v)
	case reference:
		want := m.Var(p.parts[0].ref)
		return v != nil && want != nil && strictjson.Equal(want, v)
	case stringWithRefs:
		if only := p.onlyReference(); only != "" {
			if want := m.Var(only); want != nil && want.Kind != strictjson.String && strictjson.Equal(want, v) {
				return true // "${x}" of a captured object means the object
			}
		}
		text, err := (&Template{parts: p.parts}).Expand(m)
		return err == nil && v.Is(strictjson.String) && v.Text == string(text)
	case either:
		return slices.ContainsFunc(p.items, func(q *Pattern) bool { return m.fits(q, v) })
	case both:
		return !slices.ContainsFunc(p.items, func(q *Pattern) bool { return !m.fits(q, v) })
	case not:
		return !m.fits(p.items[0], v)
	case regex:
		return v.Is(strictjson.String) && p.re.MatchString(v.Text)
	case interval:
		r, ok := v.Rat()
		return ok && p.within(r)
	case keyword:
		return m.word(p, v)
	default: // object and array, inside an expression
		return m.fits(p, v)
	}
}

// onlyReference names the reference of a string that is nothing else.
func (p *Pattern) onlyReference() string {
	name := ""
	for _, one := range p.parts {
		if one.text != "" || one.ref != "" && name != "" {
			return ""
		}
		name += one.ref
	}
	return name
}

func (p *Pattern) within(r *big.Rat) bool {
	return (p.low == nil || r.Cmp(p.low) >= 0) && (p.high == nil || r.Cmp(p.high) <= 0)
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

func (m *matching) word(p *Pattern, v *strictjson.Value) bool {
	isText := v.Is(strictjson.String)
	switch p.word {
	case "absent":
		return v == nil
	case "any":
		return v != nil
	case "string":
		return isText
	case "number":
		return v.Is(strictjson.Number)
	case "int":
		return v.IsInteger()
	case "bool":
		return v.Is(strictjson.Bool)
	case "object":
		return v.Is(strictjson.Object)
	case "array":
		return v.Is(strictjson.Array)
	case "id":
		_, plain := v.Int()
		return plain || isText
	case "nonempty":
		return isText && v.Text != "" || v != nil && (len(v.Items) > 0 || len(v.Members) > 0)
	case "date-time":
		_, err := time.Parse(time.RFC3339Nano, v.Str())
		return isText && err == nil
	case "date":
		_, err := time.Parse(time.DateOnly, v.Str())
		return isText && err == nil
	case "uri":
		u, err := url.Parse(v.Str())
		return isText && err == nil && u.Scheme != ""
	case "base64":
		_, err := base64.StdEncoding.Strict().DecodeString(v.Str())
		return isText && err == nil
	case "uuid":
		return uuidForm.MatchString(v.Str())
	case "json":
		_, err := strictjson.Parse([]byte(v.Str()))
		return isText && err == nil
	}
	return m.wordWithArgument(p, v, p.items[0])
}

func (m *matching) wordWithArgument(p *Pattern, v *strictjson.Value, arg *Pattern) bool {
	switch p.word {
	case "raw":
		return v != nil && string(v.Raw) == arg.value.Text
	case "only":
		return v.Is(strictjson.Object) && m.fits(arg, v) && !slices.ContainsFunc(v.Members, func(got strictjson.Member) bool {
			return !slices.ContainsFunc(arg.members, func(want patternMember) bool { return want.name == got.Name })
		})
	case "each":
		return v.Is(strictjson.Array) && !slices.ContainsFunc(v.Items, func(item *strictjson.Value) bool { return !m.fits(arg, item) }) ||
			v.Is(strictjson.Object) && !slices.ContainsFunc(v.Members, func(item strictjson.Member) bool { return !m.fits(arg, item.Value) })
	case "keys":
		return v.Is(strictjson.Object) && !slices.ContainsFunc(v.Members, func(item strictjson.Member) bool {
			return !m.fits(arg, stringValue(item.Name))
		})
	case "len":
		n, ok := length(v)
		if !ok {
			return false
		}
		r := new(big.Rat).SetInt64(int64(n))
		if arg.kind == interval {
			return arg.within(r)
		}
		want, ok := arg.value.Rat()
		return ok && want.Cmp(r) == 0
	case "contains":
		return v.Is(strictjson.Array) && m.assign(arg.items, v.Items)
	default: // set
		return v.Is(strictjson.Array) && len(v.Items) == len(arg.items) && m.assign(arg.items, v.Items)
	}
}

// stringValue is a text as a JSON value.
func stringValue(text string) *strictjson.Value {
	return &strictjson.Value{Kind: strictjson.String, Text: text, Raw: []byte(strictjson.Quote(text))}
}

// length counts characters, elements or members.
func length(v *strictjson.Value) (int, bool) {
	switch {
	case v.Is(strictjson.String):
		return len([]rune(v.Text)), true
	case v.Is(strictjson.Array):
		return len(v.Items), true
	case v.Is(strictjson.Object):
		return len(v.Members), true
	}
	return 0, false
}

// assign finds a different element for each wanted pattern. Where an element
// fits several patterns the first assignment that works is taken (augmenting
// paths), so the order in a transcript does not matter.
func (m *matching) assign(want []*Pattern, have []*strictjson.Value) bool {
	owner := make([]int, len(have))
	for i := range owner {
		owner[i] = -1
	}
	var place func(w int, tried []bool) bool
	place = func(w int, tried []bool) bool {
		for i, v := range have {
			if tried[i] || !m.fits(want[w], v) {
				continue
			}
			tried[i] = true
			if owner[i] < 0 || place(owner[i], tried) {
				owner[i] = w
				return true
			}
		}
		return false
	}
	for w := range want {
		if !place(w, make([]bool, len(have))) {
			return false
		}
	}
	for i, w := range owner { // what the final assignment captures
		if w >= 0 {
			m.fits(want[w], have[i])
		}
	}
	return true
}
