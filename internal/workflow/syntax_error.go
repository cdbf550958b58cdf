package workflow

import "fmt"

// SyntaxError says why a file is no workflow graph, and where.
type SyntaxError struct {
	Path         string
	Line, Column int // 1-based; columns count characters
	Offset       int // in bytes
	Message      string
	Fix          string // what to do about it, may be empty

	source *Source
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Message)
}

// Diagnostic is the error in the shape of lint's findings, under the rule name
// `syntax`.
func (e *SyntaxError) Diagnostic() Diagnostic {
	return Diagnostic{
		Rule: "syntax", Severity: SeverityError, Message: e.Message, Fix: e.Fix, SourcePath: e.Path,
		Line: e.Line, Column: e.Column, SpanStart: e.Offset, SpanLen: 1, source: e.source,
	}
}
