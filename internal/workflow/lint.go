package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// lint applies every rule to the transformed graph. Rule names and severities
// are Fabro's; the rules of our own, which explain traps that Fabro leaves
// silent, are in lint_own.go.
//
// The rules about models (`stylesheet_model_known`, `node_model_known`) need the
// model catalogue of a Fabro server and have no counterpart here.
func (c *compiler) lint() {
	for _, rules := range [][]func(*compiler){structureRules, attributeRules, handlerRules, ownRules} {
		for _, rule := range rules {
			rule(c)
		}
	}
	c.ruleChildren() // compiles and lints in its turn, so it is in no table
}

// report adds a finding at a place, whose extent is the word or the string that
// stands there.
func (c *compiler) report(d Diagnostic, at Position) {
	c.reportSpan(d, at, spanAt(at))
}

func (c *compiler) reportSpan(d Diagnostic, at Position, length int) {
	if at.Known() {
		d.SourcePath, d.source = at.Source.Path, at.Source
		d.Line, d.Column = at.LineColumn()
		d.SpanStart, d.SpanLen = at.Offset, length
	}
	c.diags = append(c.diags, d)
}

// spanAt measures the string or the word at a place, up to the end of its line.
func spanAt(at Position) int {
	if !at.Known() || at.Offset >= len(at.Source.Text) {
		return 0
	}
	text := at.Source.Text[at.Offset:]
	if text[0] == '"' {
		for i := 1; i < len(text) && text[i] != '\n'; i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return 1
	}
	n := strings.IndexFunc(text, func(r rune) bool {
		return !(r < 0x80 && isIdentPart(byte(r)) || r == '.' || r == '-')
	})
	return max(n, 1)
}

func (c *compiler) errorf(rule string, d Diagnostic, at Position, format string, args ...any) {
	d.Rule, d.Severity, d.Message = rule, SeverityError, fmt.Sprintf(format, args...)
	c.report(d, at)
}

func (c *compiler) warnf(rule string, d Diagnostic, at Position, format string, args ...any) {
	d.Rule, d.Severity, d.Message = rule, SeverityWarning, fmt.Sprintf(format, args...)
	c.report(d, at)
}

func (c *compiler) infof(rule string, d Diagnostic, at Position, format string, args ...any) {
	d.Rule, d.Severity, d.Message = rule, SeverityInfo, fmt.Sprintf(format, args...)
	c.report(d, at)
}

func aboutNode(n *Node, fix string) Diagnostic { return Diagnostic{NodeID: n.ID, Fix: fix} }

func aboutEdge(e *Edge, fix string) Diagnostic {
	return Diagnostic{Edge: &[2]string{e.From, e.To}, Fix: fix}
}

var severityRank = map[string]int{SeverityError: 0, SeverityWarning: 1, SeverityInfo: 2}

// sorted orders the findings as they stand in the file, errors before warnings in
// one place; those without a place come first, those in other files last.
func (c *compiler) sorted() []Diagnostic {
	main := c.graph.Source.Path
	rank := func(d Diagnostic) int {
		switch d.SourcePath {
		case "":
			return 0
		case main:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(c.diags, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.SourcePath, b.SourcePath),
			cmp.Compare(a.SpanStart, b.SpanStart), cmp.Compare(severityRank[a.Severity], severityRank[b.Severity]))
	})
	return c.diags
}

// suggest names the node most like an id. It looks at small graphs only, so that
// a large one with many wrong names stays linear.
func (c *compiler) suggest(id string) string {
	if len(c.graph.Nodes) > 500 {
		return ""
	}
	ids := make([]string, len(c.graph.Nodes))
	for i, n := range c.graph.Nodes {
		ids[i] = n.ID
	}
	if near := nearest(id, ids); near != "" {
		return fmt.Sprintf("did you mean `%s`?", near)
	}
	return ""
}
