package workflow

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
