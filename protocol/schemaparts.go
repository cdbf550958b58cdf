package protocol

import "slices"

func (s *schema) checkObject(v []byte, depth int) (bad *fault) {
	count := 0
	var seen uint64 // which of the first 64 required members are there
	members(v, func(name, value []byte) bool {
		count++
		for i, r := range s.required {
			if i < 64 && r == string(name) {
				seen |= 1 << i
			}
		}
		bad = s.checkMember(name, value, depth)
		return bad == nil
	})
	if bad != nil {
		return bad
	}
	for i, r := range s.required {
		if i < 64 && seen&(1<<i) == 0 || i >= 64 && field(v, r) == nil {
			return faulty("needs the property %q", r)
		}
	}
	for name, needs := range s.dependent {
		if field(v, name) == nil {
			continue
		}
		for _, n := range needs {
			if field(v, n) == nil {
				return faulty("needs the property %q because it has %q", n, name)
			}
		}
	}
	switch {
	case count < s.minProps:
		return faulty("must have at least %d properties", s.minProps)
	case s.maxProps >= 0 && count > s.maxProps:
		return faulty("must have at most %d properties", s.maxProps)
	}
	return nil
}

func (s *schema) checkMember(name, value []byte, depth int) *fault {
	if s.names != nil {
		if f := s.names.validate(quote(nil, name), depth+1); f != nil {
			return f.at(string(name))
		}
	}
	sub, known := s.properties[string(name)]
	if known {
		if f := sub.validate(value, depth+1); f != nil {
			return f.at(string(name))
		}
	}
	for _, p := range s.patterns {
		if !p.re.Match(name) {
			continue
		}
		known = true
		if f := p.schema.validate(value, depth+1); f != nil {
			return f.at(string(name))
		}
	}
	if known || s.additional == nil {
		return nil
	}
	if s.additional.never {
		return faulty("is not a known property%s", s.suggest(string(name))).at(string(name))
	}
	if f := s.additional.validate(value, depth+1); f != nil {
		return f.at(string(name))
	}
	return nil
}

// suggest names the known property that is spelled most like name, if any is.
func (s *schema) suggest(name string) string {
	const tooFar = 3
	best, least := "", tooFar
	for known := range s.properties {
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

func (s *schema) checkArray(v []byte, depth int) (bad *fault) {
	count, contained := 0, false
	var all [][]byte
	elements(v, func(e []byte) bool {
		sub := s.items
		if count < len(s.prefix) {
			sub = s.prefix[count]
		}
		if sub != nil {
			if bad = sub.validate(e, depth+1); bad != nil {
				bad = bad.at(itoa(count))
				return false
			}
		}
		if s.contains != nil && !contained {
			contained = s.contains.validate(e, depth+1) == nil
		}
		if s.unique {
			all = append(all, canonicalValue(e))
		}
		count++
		return true
	})
	switch {
	case bad != nil:
		return bad
	case count < s.minItems:
		return faulty("must have at least %d items", s.minItems)
	case s.maxItems >= 0 && count > s.maxItems:
		return faulty("must have at most %d items", s.maxItems)
	case s.contains != nil && !contained:
		return faulty("must contain an item of a certain kind")
	}
	if s.unique {
		slices.SortFunc(all, slices.Compare)
		for i := 1; i < len(all); i++ {
			if slices.Equal(all[i-1], all[i]) {
				return faulty("must not contain the same item twice")
			}
		}
	}
	return nil
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
