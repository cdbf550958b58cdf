package protocol

import (
	"slices"

	"fabro-mcp/internal/plural"
)

// walkObject holds the object at b[i] against the schema and returns where it ends.
func (s *schema) walkObject(b []byte, i, depth int) (int, *fault) {
	start := i
	count := 0
	var seen uint64 // which of the first 64 required members are there
	next := 0
	for i = skipSpace(b, i+1); b[i] == '"'; {
		end, escaped := skipString(b, i)
		name := b[i+1 : end-1]
		if escaped {
			name = unescape(name)
		}
		count++
		var prop *property
		if prop, next = s.properties.find(name, next); prop != nil {
			seen |= prop.required
		}
		i = skipSpace(b, skipSpace(b, end)+1)
		var f *fault
		if i, f = s.walkMember(b, i, name, prop, depth); f != nil {
			return i, f
		}
		if i = skipSpace(b, i); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	i++
	whole := b[start:i]
	if seen != s.properties.needed || len(s.required) > 64 {
		for n, r := range s.required {
			if n < 64 && seen&(1<<n) == 0 || n >= 64 && field(whole, r) == nil {
				return i, faulty("needs the property %q", r)
			}
		}
	}
	for name, needs := range s.dependent {
		if field(whole, name) == nil {
			continue
		}
		for _, n := range needs {
			if field(whole, n) == nil {
				return i, faulty("needs the property %q because it has %q", n, name)
			}
		}
	}
	switch {
	case count < s.minProps:
		return i, faulty("must have at least %s", plural.Count(s.minProps, "property", "properties"))
	case s.maxProps >= 0 && count > s.maxProps:
		return i, faulty("must have at most %s", plural.Count(s.maxProps, "property", "properties"))
	}
	return i, nil
}

// walkMember holds the value at b[i], that of the member name, against the schema.
func (s *schema) walkMember(b []byte, i int, name []byte, prop *property, depth int) (end int, f *fault) {
	known := prop != nil && prop.schema != nil
	switch {
	case known:
		end, f = prop.schema.walk(b, i, depth+1)
	case s.additional == nil || s.patterns != nil:
		end = skipValue(b, i)
	case s.additional.never:
		return i, faulty("is not a known property%s", s.suggest(string(name))).at(string(name))
	default:
		end, f = s.additional.walk(b, i, depth+1)
	}
	if f == nil && (s.patterns != nil || s.names != nil) {
		f = s.checkName(b[i:end], name, known, depth)
	}
	if f != nil {
		return i, f.at(string(name))
	}
	return end, nil
}

// checkName applies what goes by the look of a name.
func (s *schema) checkName(value, name []byte, known bool, depth int) *fault {
	if s.names != nil {
		if f := s.names.validate(quote(nil, name), depth+1); f != nil {
			return f
		}
	}
	if s.patterns == nil {
		return nil
	}
	for _, p := range s.patterns {
		if !p.re.Match(name) {
			continue
		}
		known = true
		if f := p.schema.validate(value, depth+1); f != nil {
			return f
		}
	}
	switch {
	case known || s.additional == nil:
		return nil
	case s.additional.never:
		return faulty("is not a known property%s", s.suggest(string(name)))
	}
	return s.additional.validate(value, depth+1)
}

// suggest names the known property that is spelled most like name, if any is.
func (s *schema) suggest(name string) string {
	const tooFar = 3
	best, least := "", tooFar
	for i := range s.properties.list {
		known := s.properties.list[i].name
		if s.properties.list[i].schema == nil {
			continue
		}
		if d := distance(name, known, tooFar); d < least || d == least && d < tooFar && known < best {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the edit distance of two names, or most where it is not below that.
func distance(a, b string, most int) int {
	if len(a) > 64 || len(b) > 64 || max(len(a)-len(b), len(b)-len(a)) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return min(row[len(b)], most)
}

// walkArray holds the array at b[i] against the schema and returns where it ends.
func (s *schema) walkArray(b []byte, i, depth int) (int, *fault) {
	count, contained := 0, false
	var all [][]byte
	for i = skipSpace(b, i+1); b[i] != ']'; {
		sub := s.items
		if count < len(s.prefix) {
			sub = s.prefix[count]
		}
		from := i
		if sub == nil {
			i = skipValue(b, i)
		} else {
			var f *fault
			if i, f = sub.walk(b, i, depth+1); f != nil {
				return i, f.at(itoa(count))
			}
		}
		if s.contains != nil && !contained {
			contained = s.contains.validate(b[from:i], depth+1) == nil
		}
		if s.unique {
			all = append(all, canonicalValue(b[from:i]))
		}
		count++
		if i = skipSpace(b, i); b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	i++
	switch {
	case count < s.minItems:
		return i, faulty("must have at least %s", plural.Count(s.minItems, "item"))
	case s.maxItems >= 0 && count > s.maxItems:
		return i, faulty("must have at most %s", plural.Count(s.maxItems, "item"))
	case s.contains != nil && !contained:
		return i, faulty("must contain an item of a certain kind")
	}
	if s.unique {
		slices.SortFunc(all, slices.Compare)
		for n := 1; n < len(all); n++ {
			if slices.Equal(all[n-1], all[n]) {
				return i, faulty("must not contain the same item twice")
			}
		}
	}
	return i, nil
}

func (s *schema) checkCombined(v []byte, depth int) *fault {
	if s.ref != nil {
		if f := s.ref.validate(v, depth+1); f != nil {
			return f
		}
	}
	for _, sub := range s.all {
		if f := sub.validate(v, depth+1); f != nil {
			return f
		}
	}
	if s.any != nil {
		if n, first := fits(s.any, v, depth); n == 0 {
			return first
		}
	}
	if s.one != nil {
		switch n, first := fits(s.one, v, depth); {
		case n == 0:
			return first
		case n > 1:
			return faulty("must fit exactly one of several shapes, but fits %d", n)
		}
	}
	if s.not != nil && s.not.validate(v, depth+1) == nil {
		return faulty("has a shape that is not allowed")
	}
	if s.cond != nil {
		then := s.thenS
		if s.cond.validate(v, depth+1) != nil {
			then = s.elseS
		}
		if then != nil {
			return then.validate(v, depth+1)
		}
	}
	return nil
}

// fits counts the alternatives that a value fits; first is what kept it from the
// alternative that came nearest, judged by how deep the fault lies.
func fits(alternatives []*schema, v []byte, depth int) (n int, first *fault) {
	for _, sub := range alternatives {
		f := sub.validate(v, depth+1)
		if f == nil {
			n++
		} else if first == nil || len(f.path) > len(first.path) {
			first = f
		}
	}
	return n, first
}
