package transcript

import (
	"fmt"
	"slices"
	"strings"
)

// Predefined are the references every transcript may use.
//
//	revision   the revision that is being played
//	meta       the _meta object a request of a modern revision carries
//	tmp        a directory of this run, with the archive's files
//	newline    a line feed, for use in matchers and JSON strings
var Predefined = []string{"revision", "meta", "tmp", "newline"}

func (p *scriptParser) predefined() map[string]bool {
	known := map[string]bool{}
	for _, name := range Predefined {
		known[name] = true
	}
	for _, need := range p.transcript.Needs {
		if need.Kind == NeedSetting {
			known[need.Name] = true
		}
	}
	for _, f := range p.transcript.Files {
		known["file:"+f.Name] = true
	}
	return known
}

// check finds references to names that nothing before them defines, and
// answers to requests that no step expected.
func (p *scriptParser) check(steps []Step, known map[string]bool) error {
	for i := range steps {
		for _, t := range templates(steps[i].Op) {
			if err := p.checkParts(t.parts, t.Pos, known); err != nil {
				return err
			}
		}
		for _, target := range targets(steps[i].Op) {
			if err := p.checkPattern(target.Pattern, known); err != nil {
				return err
			}
			if target.As != "" {
				known["request "+target.As] = true
			}
		}
		if a, ok := steps[i].Op.(*Answer); ok && !known["request "+a.Name] {
			return &Error{p.path, steps[i].Pos, fmt.Sprintf("no step before expects a request as %s", a.Name)}
		}
		if r, ok := steps[i].Op.(*Repeat); ok {
			known[r.Var] = true
		}
		for _, inner := range Blocks(steps[i].Op) {
			if err := p.check(inner, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *scriptParser) checkParts(parts []part, pos Pos, known map[string]bool) error {
	for _, one := range parts {
		if one.ref == "" || known[one.ref] {
			continue
		}
		if one.at > 0 {
			pos = p.posAt(one.at)
		}
		if file, ok := strings.CutPrefix(one.ref, "file:"); ok {
			return &Error{p.path, pos, fmt.Sprintf("the archive holds no file %q", file)}
		}
		return &Error{p.path, pos, fmt.Sprintf("nothing before defines ${%s}; capture it with <… as %s>, or use one of %s", one.ref, one.ref, strings.Join(Predefined, ", "))}
	}
	return nil
}

func (p *scriptParser) checkPattern(q *Pattern, known map[string]bool) error {
	if q == nil {
		return nil
	}
	if err := p.checkParts(q.parts, q.Pos, known); err != nil {
		return err
	}
	for _, item := range q.items {
		if err := p.checkPattern(item, known); err != nil {
			return err
		}
	}
	for _, m := range q.members {
		if err := p.checkPattern(m.value, known); err != nil {
			return err
		}
	}
	if q.capture != "" {
		if slices.Contains(Predefined, q.capture) {
			return &Error{p.path, q.Pos, fmt.Sprintf("%s is a name of the harness", q.capture)}
		}
		known[q.capture] = true
	}
	return nil
}

// Blocks returns the steps inside a step.
func Blocks(op Op) [][]Step {
	switch o := op.(type) {
	case *Ordered:
		return [][]Step{o.Steps}
	case *Unordered:
		return [][]Step{o.Steps}
	case *Repeat:
		return [][]Step{o.Steps}
	case *When:
		return [][]Step{o.Then, o.Else}
	}
	return nil
}

func targets(op Op) []Target {
	switch o := op.(type) {
	case *Expect:
		return []Target{o.Target}
	case *Never:
		if o.Until != nil {
			return []Target{*o.Until, o.Target}
		}
		return []Target{o.Target}
	}
	return nil
}

// templates returns everything of a step in which references are filled in.
func templates(op Op) []*Template {
	var out []*Template
	switch o := op.(type) {
	case *Open:
		out = []*Template{o.Capabilities}
	case *Call:
		out = []*Template{o.ID, o.Method, o.Params}
	case *Notify:
		out = []*Template{o.Method, o.Params}
	case *Send:
		out = []*Template{o.Payload}
	case *Raw:
		for _, chunk := range o.Chunks {
			for _, item := range chunk {
				out = append(out, item.Text)
			}
		}
	case *Answer:
		out = []*Template{o.Result, o.Error}
	case *Ignore:
		out = []*Template{o.ID}
	case *Start:
		out = o.Args
	case *Finally:
		out = o.Args
	case *Env:
		out = []*Template{o.Value}
	case *Cwd:
		out = []*Template{o.Dir}
	case *Expect, *Never:
		for _, t := range targets(op) {
			out = append(out, t.ID)
		}
	}
	return slices.DeleteFunc(slices.Clone(out), func(t *Template) bool { return t == nil })
}
