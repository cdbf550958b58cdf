package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Baseline is a list of failures that are known and accepted for now, in the
// format of the official suite's expected-failures files:
//
//	server:
//	  - 2025-11-25/tools/list                 # the whole case, at every revision
//	  - jsonrpc/ids@2025-06-18                # at one revision
//	  - jsonrpc/ids:jsonrpc.id.type-preserved # one rule of it
//	client: []
//
// What fails and is listed is expected. What is listed and passes is stale and
// fails the run, so that a list cannot outlive its reasons. A warning counts
// as failing here; a case that was not played is tolerated.
type Baseline struct {
	entries []baselineEntry
}

type baselineEntry struct {
	text, name, rule string
	used, seen       bool
}

// ParseBaseline reads a file. Unknown keys, repetitions, and a case listed both
// as a whole and by rule are errors.
func ParseBaseline(data []byte) (*Baseline, error) {
	var file struct {
		Server []string `yaml:"server"`
		Client []string `yaml:"client"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	b := &Baseline{}
	for _, text := range file.Server {
		name, rule, _ := strings.Cut(text, ":")
		e := baselineEntry{text: text, name: name, rule: rule}
		for _, other := range b.entries {
			if other.text == e.text {
				return nil, fmt.Errorf("baseline: %q is listed twice", text)
			}
			if other.name == e.name && (other.rule == "") != (e.rule == "") {
				return nil, fmt.Errorf("baseline: %q is listed both as a whole and by rule", name)
			}
		}
		b.entries = append(b.entries, e)
	}
	return b, nil
}

// Apply marks expected failures and collects stale entries into r.Stale.
func (b *Baseline) Apply(r *Report) {
	for _, c := range r.Cases {
		if c.Outcome == Untestable || c.Outcome == NotCovered {
			continue
		}
		broken := c.Broken()
		unexpected := len(c.Findings) > 0 && len(broken) == 0
		var accepted []string
		whole := false
		for i := range b.entries {
			e := &b.entries[i]
			if e.name != c.Name && e.name != c.ID() {
				continue
			}
			e.seen = true
			switch {
			case e.rule == "" && (c.Outcome == Fail || c.Outcome == Warn):
				e.used, whole = true, true
			case e.rule != "" && slices.Contains(broken, e.rule):
				e.used = true
				accepted = append(accepted, e.rule)
			}
		}
		byRule := len(accepted) > 0 && !unexpected
		for _, f := range c.Findings {
			if f.Severity == Failure && !slices.Contains(accepted, f.Rule) {
				byRule = false
			}
		}
		c.Expected = whole || byRule
	}
	for _, e := range b.entries {
		if e.seen && !e.used {
			r.Stale = append(r.Stale, e.text)
		}
	}
}
