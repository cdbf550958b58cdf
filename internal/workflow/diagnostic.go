package workflow

import "errors"

// Severities of a Diagnostic.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Diagnostic is one finding about a workflow. Its JSON form is the API's
// WorkflowDiagnostic.
type Diagnostic struct {
	Rule       string     `json:"rule"`
	Severity   string     `json:"severity"`
	Message    string     `json:"message"`
	NodeID     string     `json:"node_id,omitempty"`
	Edge       *[2]string `json:"edge,omitempty"` // from, to
	Fix        string     `json:"fix,omitempty"`
	SourcePath string     `json:"source_path,omitempty"`
	Line       int        `json:"line,omitempty"`   // 1-based; 0: unknown
	Column     int        `json:"column,omitempty"` // 1-based, in characters; 0: unknown
	SpanStart  int        `json:"span_start,omitempty"`
	SpanLen    int        `json:"span_len,omitempty"` // both in bytes of the source file
	Related    []Related  `json:"related,omitempty"`

	source *Source // for the drawing of the source line
}

// Related is another place that has to do with a Diagnostic.
type Related struct {
	Message    string `json:"message"`
	SourcePath string `json:"source_path,omitempty"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
}

// HasErrors reports whether any of the findings forbids running the workflow.
func HasErrors(list []Diagnostic) bool {
	for i := range list {
		if list[i].Severity == SeverityError {
			return true
		}
	}
	return false
}

const bundleFix = "check the path; it is relative to the file that names it"

// DiagnosticsOf turns an error of Locate, BundleFiles, MergeSettings or Compile
// into the findings that it is: a graph that does not parse, a reference that
// leads nowhere, faults of settings. An error of another kind gives none.
func DiagnosticsOf(err error) []Diagnostic {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []Diagnostic
		for _, err := range joined.Unwrap() {
			list = append(list, DiagnosticsOf(err)...)
		}
		return list
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return []Diagnostic{syntax.Diagnostic()}
	}
	var bundle *BundleError
	if errors.As(err, &bundle) && bundle.At.Known() {
		c := compiler{}
		c.report(Diagnostic{Rule: "unresolved_file_ref", Severity: SeverityError, NodeID: bundle.NodeID, Message: err.Error(), Fix: bundleFix}, bundle.At)
		return c.diags
	}
	var settings *SettingsError
	if errors.As(err, &settings) {
		return []Diagnostic{{
			Rule: "settings", Severity: SeverityError, Message: settings.Message,
			SourcePath: settings.Path, Line: settings.Line, Column: settings.Column,
		}}
	}
	return nil
}
