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

// excerpt draws the part of the source line around the place, with a mark below
// it. It looks at that part only: a line may be the whole of a large file. Tabs
// become single spaces so that the mark stays in its column.
func (d *Diagnostic) excerpt(b *strings.Builder) {
	text := d.source.Text
	at := min(d.SpanStart, len(text))
	before := lastRunes(text[d.source.lines[d.Line-1]:at], maxSourceLine*2/3)
	cutStart := at-len(before) > d.source.lines[d.Line-1]
	if cutStart {
		before = lastRunes(before, maxSourceLine/3)
	}
	column := utf8.RuneCountInString(before)
	rest, whole := firstRunes(text[at:], maxSourceLine-column)
	if cutStart {
		column++ // the ellipsis
	}
	fmt.Fprintf(b, "%5d | %s%s%s%s\n", d.Line, ellipsis(cutStart), printable(before), printable(rest), ellipsis(!whole))
	span, _ := firstRunes(rest[:min(max(d.SpanLen, 1), len(rest))], maxSourceLine)
	fmt.Fprintf(b, "      | %s^%s\n", strings.Repeat(" ", column), strings.Repeat("~", max(0, utf8.RuneCountInString(span)-1)))
}

func ellipsis(cut bool) string {
	if cut {
		return "…"
	}
	return ""
}

// lastRunes is the end of s that has at most n characters.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// firstRunes is the beginning of the first line of s that has at most n
// characters; whole says that nothing of the line was cut.
func firstRunes(s string, n int) (first string, whole bool) {
	for i, r := range s {
		switch {
		case r == '\n', r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			return s[:i], true
		case n == 0:
			return s[:i], false
		}
		n--
	}
	return s, true
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
