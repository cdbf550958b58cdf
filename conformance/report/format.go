package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Formats are the forms a report can be written in.
var Formats = map[string]func(io.Writer, *Report) error{
	"text":  func(w io.Writer, r *Report) error { return WriteText(w, r, TextOptions{}) },
	"json":  WriteJSON,
	"junit": WriteJUnit,
	"tap":   WriteTAP,
	"sarif": WriteSARIF,
}

// WriteJSON writes the report as it is.
func WriteJSON(w io.Writer, r *Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// WriteJUnit writes one test suite a revision. Warnings and expected failures
// pass, with what was found in system-out; untestable and not covered are
// skipped.
func WriteJUnit(w io.Writer, r *Report) error {
	all := junitSuites{Name: r.Tool, Time: seconds(r.Duration)}
	index := map[string]int{}
	for _, c := range r.Cases {
		i, ok := index[c.Revision]
		if !ok {
			i = len(all.Suites)
			index[c.Revision] = i
			all.Suites = append(all.Suites, junitSuite{Name: r.Tool + " " + c.Revision})
		}
		s := &all.Suites[i]
		jc := junitCase{Name: c.Name + ": " + c.Title, Class: c.Revision, File: c.Path, Time: seconds(c.Duration)}
		text := xmlText(findingsText(c))
		switch {
		case c.Outcome == Untestable || c.Outcome == NotCovered:
			jc.Skipped = &junitMessage{Message: xmlText(string(c.Outcome) + ": " + c.Reason)}
			s.Skipped++
		case c.Outcome == Fail && !c.Expected:
			jc.Failure = &junitMessage{Message: xmlText(headline(c)), Type: strings.Join(c.Broken(), " "), Text: text}
			s.Failures++
		default:
			jc.Out = text
		}
		s.Tests++
		s.Cases = append(s.Cases, jc)
	}
	if r.Aborted != "" || len(r.Stale) > 0 {
		s := junitSuite{Name: r.Tool + " run", Tests: 0, Time: "0"}
		fail := func(name, message string) {
			s.Cases = append(s.Cases, junitCase{Name: name, Class: "run", Time: "0", Failure: &junitMessage{Message: xmlText(message)}})
			s.Tests++
			s.Failures++
		}
		if r.Aborted != "" {
			fail("the run was finished", r.Aborted)
		}
		for _, e := range r.Stale {
			fail("baseline entry "+e, "the entry is stale: this passes now")
		}
		all.Suites = append(all.Suites, s)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		var total time.Duration
		for _, c := range r.Cases {
			if r.Tool+" "+c.Revision == s.Name {
				total += c.Duration
			}
		}
		s.Time = seconds(total)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// xmlText replaces what XML cannot hold: a server's bytes may be anything.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func headline(c *Case) string {
	for _, f := range c.Findings {
		if f.Severity == Failure {
			if f.Rule != "" {
				return f.Rule + ": " + f.sentence()
			}
			return f.sentence()
		}
	}
	return c.Title
}

// sentence is the message with the first difference, for where there is one line.
func (f *Finding) sentence() string {
	switch n := len(f.Differences); n {
	case 0:
		return f.Message
	case 1:
		return f.Message + "; " + f.Differences[0].String()
	default:
		return fmt.Sprintf("%s; %s; and %d more differences", f.Message, f.Differences[0], n-1)
	}
}

func findingsText(c *Case) string {
	var b strings.Builder
	for _, f := range c.Findings {
		writeFinding(&b, &f, TextOptions{})
	}
	return b.String()
}

// WriteTAP writes TAP version 14.
func WriteTAP(w io.Writer, r *Report) error {
	var b strings.Builder
	extra := len(r.Stale)
	if r.Aborted != "" {
		extra++
	}
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(r.Cases)+extra)
	n := 0
	line := func(ok bool, name, directive string) {
		n++
		state := "ok"
		if !ok {
			state = "not ok"
		}
		name = strings.NewReplacer("#", `\#`, "\n", " ").Replace(name)
		fmt.Fprintf(&b, "%s %d - %s%s\n", state, n, name, directive)
	}
	for _, c := range r.Cases {
		name := c.ID() + " " + c.Title
		switch {
		case c.Outcome == Untestable || c.Outcome == NotCovered:
			line(true, name, " # SKIP "+string(c.Outcome)+": "+oneLine(c.Reason))
		case c.Expected:
			line(false, name, " # TODO expected by the baseline")
		default:
			line(c.Outcome != Fail, name, "")
		}
		for _, f := range c.Findings {
			b.WriteString("  ---\n")
			fmt.Fprintf(&b, "  severity: %s\n  rule: %q\n  level: %q\n  message: %q\n  at: %q\n", f.Severity, f.Rule, f.Level, f.Message, f.Step)
			for i, d := range f.Differences {
				if i == 0 {
					b.WriteString("  differences:\n")
				}
				fmt.Fprintf(&b, "    - path: %q\n      expected: %q\n      got: %q\n", d.Place(), d.Expected, d.Got)
			}
			b.WriteString("  ...\n")
		}
	}
	for _, e := range r.Stale {
		line(false, "baseline entry "+e+" is stale", "")
	}
	if r.Aborted != "" {
		line(false, "the run was finished: "+oneLine(r.Aborted), "")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// WriteSARIF writes SARIF 2.1.0: one result a finding, placed in the transcript.
func WriteSARIF(w io.Writer, r *Report) error {
	type text struct {
		Text string `json:"text"`
	}
	type rule struct {
		ID    string            `json:"id"`
		Short text              `json:"shortDescription"`
		Help  text              `json:"help"`
		Props map[string]string `json:"properties,omitempty"`
	}
	type result struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      text              `json:"message"`
		Locations    []any             `json:"locations"`
		Suppressions []any             `json:"suppressions,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	rules, results := []rule{}, []result{}
	levels := map[Severity]string{Failure: "error", Warning: "warning", Note: "note"}
	for _, c := range r.Cases {
		for _, f := range c.Findings {
			id := f.Rule
			if id == "" {
				id = "transcript"
			}
			if !slices.ContainsFunc(rules, func(have rule) bool { return have.ID == id }) {
				one := rule{ID: id, Short: text{f.Text}, Help: text{strings.TrimSpace(f.Level + " " + f.Source)}}
				if id == "transcript" {
					one.Short.Text = "The server answers as the transcript says."
				}
				if f.Level != "" {
					one.Props = map[string]string{"keyword": f.Level, "source": f.Source}
				}
				rules = append(rules, one)
			}
			line, column := 1, 1
			if _, rest, ok := strings.Cut(strings.TrimPrefix(f.Step, c.Path), ":"); ok {
				fmt.Sscanf(rest, "%d:%d", &line, &column)
			}
			one := result{
				RuleID: id, Level: levels[f.Severity], Message: text{c.ID() + ": " + f.sentence()},
				Locations: []any{map[string]any{"physicalLocation": map[string]any{
					"artifactLocation": map[string]string{"uri": filepath.ToSlash(c.Path)},
					"region":           map[string]int{"startLine": line, "startColumn": column},
				}}},
				Fingerprints: map[string]string{"case/v1": c.ID() + " " + id},
			}
			if c.Expected {
				one.Suppressions = []any{map[string]string{"kind": "external", "justification": "expected by the baseline"}}
			}
			results = append(results, one)
		}
	}
	doc := map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":       map[string]any{"driver": map[string]any{"name": r.Tool, "rules": rules}},
			"results":    results,
			"columnKind": "utf16CodeUnits",
			"invocations": []any{map[string]any{
				"commandLine": strings.Join(r.Command, " "), "executionSuccessful": r.Aborted == "",
			}},
		}},
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}
