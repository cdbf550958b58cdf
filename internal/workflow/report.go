package workflow

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSourceLine is the longest part of a source line that a report shows, in
// characters.
const maxSourceLine = 120

// FormatDiagnostics prints findings as a compiler does:
//
//	release.fabro:7:44: warning: variable `inputs.dir` is not defined [template_undefined_variable]
//	    7 |     work [prompt="Work in {{ inputs.dir }}"]
//	      |                              ^~~~~~~~~~
//	      = fix: give the run the input dir, or …
//
// The source line is there for findings of Compile and Parse in this process;
// findings that came over the wire know only where they are. Control characters
// of the file are not printed.
func FormatDiagnostics(list []Diagnostic) string {
	var b strings.Builder
	for i := range list {
		list[i].format(&b)
	}
	return b.String()
}

func (d *Diagnostic) format(b *strings.Builder) {
	if d.SourcePath != "" {
		b.WriteString(printable(d.SourcePath))
		if d.Line > 0 {
			fmt.Fprintf(b, ":%d:%d", d.Line, d.Column)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(b, "%s: %s [%s]\n", d.Severity, printable(d.Message), d.Rule)
	if d.source != nil && d.Line > 0 {
		d.excerpt(b)
	}
	for _, r := range d.Related {
		if r.SourcePath != "" && r.Line > 0 {
			fmt.Fprintf(b, "      = note: %s:%d:%d: %s\n", printable(r.SourcePath), r.Line, r.Column, printable(r.Message))
		} else {
			fmt.Fprintf(b, "      = note: %s\n", printable(r.Message))
		}
	}
	if d.Fix != "" {
		fmt.Fprintf(b, "      = fix: %s\n", printable(d.Fix))
	}
}

// excerpt draws the source line with a mark below the place. Tabs become single
// spaces so that the mark stays in its column.
func (d *Diagnostic) excerpt(b *strings.Builder) {
	line := []rune(printable(d.source.line(d.Line)))
	column := d.Column - 1
	start := 0
	if column > maxSourceLine*2/3 {
		start = column - maxSourceLine/3
	}
	start = min(start, len(line))
	end := min(len(line), start+maxSourceLine)
	text := string(line[start:end])
	if start > 0 {
		text = "…" + text
		column++
	}
	if end < len(line) {
		text += "…"
	}
	fmt.Fprintf(b, "%5d | %s\n", d.Line, text)
	width := 1
	if stop := d.SpanStart + d.SpanLen; d.SpanLen > 0 && stop <= len(d.source.Text) {
		width = utf8.RuneCountInString(d.source.Text[d.SpanStart:stop])
	}
	width = max(1, min(width, end-(start+d.Column-1-start)))
	fmt.Fprintf(b, "      | %s^%s\n", strings.Repeat(" ", column-start), strings.Repeat("~", width-1))
}

// printable replaces what would move a terminal's cursor or change its colours.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, s)
}
