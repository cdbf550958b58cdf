package transcript

import (
	"fmt"
	"slices"
	"strings"

	"fabro-mcp/conformance/strictjson"
)

// Difference is one place where a value is not what a pattern expects, told to a
// person: what is there is JSON as it came, what is expected is JSON, or words
// where a matcher stands for many values.
type Difference struct {
	Path     string // such as result.tools[0].name
	Expected string // "nothing" where there should be none
	Got      string // "nothing" where there is none
}

// Nothing is the side of a difference where no value is, or should be.
const Nothing = "nothing"

// Differences finds the places where v, which stands at root in a message, does
// not fit. Unlike Match, which judges a matcher as a whole, it looks into those
// that are about elements and members, so that a list of a hundred tools is not
// shown for the sake of one. A nil pattern fits anything.
func (p *Pattern) Differences(root string, v *strictjson.Value, vars Vars) []Difference {
	if p == nil {
		return nil
	}
	return (&matching{vars: vars}).differences(p, v, root)
}

func (m *matching) differences(p *Pattern, v *strictjson.Value, path string) []Difference {
	inner := &matching{vars: m, captures: Captures{}}
	inner.match(p, v, path)
	var out []Difference
	for _, w := range inner.wrong {
		if finer := inner.within(w); len(finer) > 0 {
			out = append(out, finer...)
			continue
		}
		out = append(out, Difference{w.Path, inner.words(w.node), shown(w.node, w.Got)})
	}
	return out
}

// within looks for the places inside a value that make it not fit; there are none
// where the value as a whole is of the wrong kind.
func (m *matching) within(w Mismatch) (out []Difference) {
	p, v := w.node, w.Got
	switch {
	case p.kind == both:
		for _, operand := range p.items {
			if out = m.differences(operand, v, w.Path); len(out) > 0 {
				return out
			}
		}
	case p.kind == array && v.Is(strictjson.Array) && len(p.items) > 0:
		for i := range max(len(p.items), len(v.Items)) {
			switch at := element(w.Path, i); {
			case i >= len(p.items):
				out = append(out, Difference{at, Nothing, Show(v.Items[i])})
			case i >= len(v.Items):
				out = append(out, Difference{at, m.words(p.items[i]), Nothing})
			default:
				out = append(out, m.differences(p.items[i], v.Items[i], at)...)
			}
		}
	case p.kind == keyword && len(p.items) > 0 && (v.Is(strictjson.Array) || v.Is(strictjson.Object)):
		return m.withinWord(p.word, p.items[0], v, w.Path)
	}
	return out
}

func (m *matching) withinWord(word string, arg *Pattern, v *strictjson.Value, path string) (out []Difference) {
	switch {
	case word == "only" && v.Is(strictjson.Object):
		out = m.differences(arg, v, path)
		for _, got := range v.Members {
			if !slices.ContainsFunc(arg.members, func(want patternMember) bool { return want.name == got.Name }) {
				out = append(out, Difference{join(path, got.Name), Nothing, Show(got.Value)})
			}
		}
	case word == "each":
		for i, item := range v.Items {
			out = append(out, m.differences(arg, item, element(path, i))...)
		}
		for _, member := range v.Members {
			out = append(out, m.differences(arg, member.Value, join(path, member.Name))...)
		}
	case word == "keys":
		for _, member := range v.Members {
			if name := stringValue(member.Name); !m.fits(arg, name) {
				out = append(out, Difference{join(path, member.Name), "a name that is " + m.words(arg), "the name " + string(name.Raw)})
			}
		}
	case (word == "contains" || word == "set") && v.Is(strictjson.Array):
		for _, want := range arg.items {
			if !slices.ContainsFunc(v.Items, func(item *strictjson.Value) bool { return m.fits(want, item) }) {
				out = append(out, Difference{path, "an element that is " + m.words(want), fmt.Sprintf("%d others", len(v.Items))})
			}
		}
		for i, item := range v.Items {
			if word == "set" && !slices.ContainsFunc(arg.items, func(want *Pattern) bool { return m.fits(want, item) }) {
				out = append(out, Difference{element(path, i), Nothing, Show(item)})
			}
		}
	}
	return out
}

// Show is a value as a report shows it.
func Show(v *strictjson.Value) string {
	if v == nil {
		return Nothing
	}
	return abbreviate(string(v.Raw))
}

// shown is Show, with the length where that is what is wrong.
func shown(p *Pattern, v *strictjson.Value) string {
	if n, ok := length(v); ok && p.kind == keyword && p.word == "len" {
		return fmt.Sprintf("a length of %d: %s", n, Show(v))
	}
	return Show(v)
}

func abbreviate(text string) string {
	if len(text) <= 300 {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:300], ""), len(text))
}

// inWords are the matchers that are one word.
var inWords = map[string]string{
	"any": "any value", "absent": Nothing, "string": "a string", "number": "a number", "int": "an integer", "bool": "true or false",
	"object": "an object", "array": "an array", "id": "a string or an integer", "nonempty": "something that is not empty",
	"date-time": "a date and time as in RFC 3339", "date": "a date such as 2026-07-28", "uri": "a URI with a scheme",
	"base64": "a string in base64", "uuid": "a UUID", "json": "a string that holds JSON",
}

// Words say what a pattern expects: JSON where it is a value, else a phrase.
func (p *Pattern) Words(vars Vars) string { return (&matching{vars: vars}).words(p) }

func (m *matching) words(p *Pattern) string { return abbreviate(m.phrase(p)) }

func (m *matching) phrase(p *Pattern) string {
	all := func(between string) string {
		var parts []string
		for _, item := range p.items {
			parts = append(parts, m.phrase(item))
		}
		return strings.Join(parts, between)
	}
	switch p.kind {
	case literal:
		return string(p.value.Raw)
	case reference:
		if v := m.Var(p.parts[0].ref); v != nil {
			return string(v.Raw)
		}
	case stringWithRefs:
		if text, err := (&Template{parts: p.parts}).Expand(m); err == nil {
			return strictjson.Quote(string(text))
		}
	case object:
		var members []string
		for _, member := range p.members {
			members = append(members, strictjson.Quote(member.name)+": "+m.phrase(member.value))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case array:
		return "[" + all(", ") + "]"
	case either:
		return all(" or ")
	case both:
		return all(" and ")
	case not:
		return "anything but " + all("")
	case regex:
		return "a string with a match for /" + p.re.String() + "/"
	case interval:
		return "a number " + p.bounds()
	case keyword:
		return m.phraseOfWord(p)
	}
	return p.Text
}

func (m *matching) phraseOfWord(p *Pattern) string {
	if len(p.items) == 0 {
		return inWords[p.word]
	}
	arg := p.items[0]
	switch p.word {
	case "raw":
		return "written exactly as " + arg.value.Text
	case "only":
		return m.phrase(arg) + " and no other member"
	case "each":
		return "only elements that are " + m.phrase(arg)
	case "keys":
		return "only member names that are " + m.phrase(arg)
	case "contains":
		return "an array that holds, among others, " + m.phrase(arg)
	case "set":
		return "an array that holds, in any order, " + m.phrase(arg)
	}
	if arg.kind == interval { // len
		return "a length " + arg.bounds()
	}
	return "a length of " + string(arg.value.Raw)
}

// bounds are the ends of an interval in words.
func (p *Pattern) bounds() string {
	switch {
	case p.high == nil:
		return "of " + p.low.RatString() + " or more"
	case p.low == nil:
		return "of " + p.high.RatString() + " or less"
	}
	return "from " + p.low.RatString() + " to " + p.high.RatString()
}
