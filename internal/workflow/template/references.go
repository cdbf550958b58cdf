package template

// Reference is a constant file name in an include, extends, import or from tag.
type Reference struct {
	Name          string
	Offset        int
	IgnoreMissing bool
}

// DynamicError says that a tag computes the name of the file it needs, so that
// nobody can know which file to send along.
type DynamicError struct {
	Template string
	Offset   int
}

func (e *DynamicError) Error() string { return "the file name is computed" }

// References lists the files a template needs, in all its branches, in order.
// It understands every tag of the language as far as that takes.
func References(name, text string) ([]Reference, error) {
	if !HasSyntax(text) {
		return nil, nil
	}
	s := &scanner{name: name, text: text}
	var list []Reference
	for {
		p, ok, err := s.next()
		if err != nil || !ok {
			return list, err
		}
		if p.kind != partBlock {
			continue
		}
		tokens := s.tokens(p)
		switch tokens[0].text {
		case "include", "extends", "import", "from":
		default:
			continue
		}
		// A constant is one string followed by the end or by a word (`as`,
		// `import`, `ignore`, `with`); anything else makes it an expression.
		if len(tokens) < 3 || tokens[1].kind != 's' || tokens[2].kind != 0 && tokens[2].kind != 'w' || tokens[2].text == "if" {
			return nil, &DynamicError{name, p.tag}
		}
		r := Reference{Name: tokens[1].text, Offset: tokens[1].at}
		for i := 2; i+1 < len(tokens); i++ {
			r.IgnoreMissing = r.IgnoreMissing || tokens[i].text == "ignore" && tokens[i+1].text == "missing"
		}
		list = append(list, r)
	}
}
