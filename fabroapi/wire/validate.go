package wire

// Values of Diagnostic.Severity.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Diagnostic is one finding about a workflow (WorkflowDiagnostic).
type Diagnostic struct {
	// Rule is the name of the lint rule, for example "start_node".
	Rule     string     `json:"rule"`
	Severity string     `json:"severity"`
	Message  string     `json:"message"`
	NodeID   *string    `json:"node_id,omitempty"`
	Edge     *[2]string `json:"edge,omitempty"` // from, to
	Fix      *string    `json:"fix,omitempty"`
	// SourcePath is a manifest path. Line and Column count from 1, SpanStart and
	// SpanLen are bytes.
	SourcePath *string             `json:"source_path,omitempty"`
	Line       *int                `json:"line,omitempty"`
	Column     *int                `json:"column,omitempty"`
	SpanStart  *int64              `json:"span_start,omitempty"`
	SpanLen    *int64              `json:"span_len,omitempty"`
	Related    []RelatedDiagnostic `json:"related,omitempty"`
}

// RelatedDiagnostic is another place that belongs to a finding.
type RelatedDiagnostic struct {
	Message    string  `json:"message"`
	SourcePath *string `json:"source_path,omitempty"`
	Line       *int    `json:"line,omitempty"`
	Column     *int    `json:"column,omitempty"`
}

// ValidateResponse is the answer of POST /validate. OK is false when a
// diagnostic is an error.
type ValidateResponse struct {
	OK       bool            `json:"ok"`
	Workflow WorkflowSummary `json:"workflow"`
}

// WorkflowSummary describes a checked workflow (PreflightWorkflowSummary).
type WorkflowSummary struct {
	Name        string       `json:"name"`
	GraphPath   *string      `json:"graph_path,omitempty"`
	Nodes       int          `json:"nodes"`
	Edges       int          `json:"edges"`
	Goal        string       `json:"goal"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// PreflightResponse is the answer of POST /preflight: the validation and what
// the server found out about running it.
type PreflightResponse struct {
	OK       bool            `json:"ok"`
	Workflow WorkflowSummary `json:"workflow"`
	Checks   CheckReport     `json:"checks"`
}

// CheckReport is a titled list of checks.
type CheckReport struct {
	Title    string         `json:"title"`
	Sections []CheckSection `json:"sections"`
}

// CheckSection is a group of checks.
type CheckSection struct {
	Title  string  `json:"title"`
	Checks []Check `json:"checks"`
}

// Values of Check.Status.
const (
	CheckPass    = "pass"
	CheckWarning = "warning"
	CheckError   = "error"
)

// Check is one thing a server looked at before a run.
type Check struct {
	Name        string        `json:"name"`
	Status      string        `json:"status"`
	Summary     string        `json:"summary"`
	Details     []CheckDetail `json:"details"`
	Remediation *string       `json:"remediation,omitempty"`
}

// CheckDetail is one line under a check.
type CheckDetail struct {
	Text string `json:"text"`
	Warn bool   `json:"warn"`
}
