package wire

import "encoding/json"

// Kinds of RunStatus.Kind.
const (
	StatusSubmitted = "submitted" // created, not started
	StatusPending   = "pending"   // waits for approve or deny
	StatusRunnable  = "runnable"  // queued for a worker
	StatusStarting  = "starting"  // the worker boots
	StatusRunning   = "running"
	StatusBlocked   = "blocked" // at least one open question
	StatusPaused    = "paused"
	StatusRemoving  = "removing"  // being deleted
	StatusSucceeded = "succeeded" // terminal
	StatusFailed    = "failed"    // terminal
	StatusDead      = "dead"      // terminal
)

// Reasons of a pending, blocked, succeeded or failed run.
const (
	PendingApprovalRequired = "approval_required"

	BlockedHumanInput = "human_input_required"

	SucceededCompleted      = "completed"
	SucceededPartialSuccess = "partial_success"

	FailedWorkflowError     = "workflow_error"
	FailedPublishFailed     = "publish_failed"
	FailedCancelled         = "cancelled"
	FailedApprovalDenied    = "approval_denied"
	FailedTerminated        = "terminated"
	FailedTransientInfra    = "transient_infra"
	FailedBudgetExhausted   = "budget_exhausted"
	FailedLaunchFailed      = "launch_failed"
	FailedBootstrapFailed   = "bootstrap_failed"
	FailedSandboxInitFailed = "sandbox_init_failed"
)

// Values of RunLifecycle.PendingControl.
const (
	ControlCancel  = "cancel"
	ControlPause   = "pause"
	ControlUnpause = "unpause"
)

// RunStatus is where a run stands. Which of the further members is meaningful
// depends on Kind: Reason for pending, succeeded and failed, BlockedReason for
// blocked, PriorBlock for paused.
type RunStatus struct {
	Kind          string
	Reason        string
	BlockedReason string
	// PriorBlock is the blocked reason a paused run goes back to, or empty.
	PriorBlock string
}

// runStatusJSON is the wire form of RunStatus.
type runStatusJSON struct {
	Kind          string           `json:"kind"`
	Reason        string           `json:"reason,omitempty"`
	BlockedReason string           `json:"blocked_reason,omitempty"`
	PriorBlock    *json.RawMessage `json:"prior_block,omitempty"`
}

// MarshalJSON writes exactly the members that belong to the kind. A paused
// status always has prior_block, null when the run was not blocked.
func (s RunStatus) MarshalJSON() ([]byte, error) {
	out := runStatusJSON{Kind: s.Kind, Reason: s.Reason, BlockedReason: s.BlockedReason}
	if s.Kind == StatusPaused {
		prior := json.RawMessage("null")
		if s.PriorBlock != "" {
			text, err := json.Marshal(s.PriorBlock)
			if err != nil {
				return nil, err
			}
			prior = text
		}
		out.PriorBlock = &prior
	}
	return json.Marshal(out)
}

// UnmarshalJSON accepts unknown kinds and members.
func (s *RunStatus) UnmarshalJSON(data []byte) error {
	var in struct {
		Kind          string `json:"kind"`
		Reason        string `json:"reason"`
		BlockedReason string `json:"blocked_reason"`
		PriorBlock    string `json:"prior_block"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*s = RunStatus(in)
	return nil
}

// Terminal reports whether the run has ended for good (a failed run can still
// be resumed).
func (s RunStatus) Terminal() bool { return Terminal(s.Kind) }

// String is the form used in messages: "running", "failed(cancelled)",
// "paused(human_input_required)".
func (s RunStatus) String() string {
	detail := ""
	switch s.Kind {
	case StatusPending, StatusSucceeded, StatusFailed:
		detail = s.Reason
	case StatusBlocked:
		detail = s.BlockedReason
	case StatusPaused:
		detail = s.PriorBlock
	}
	if detail == "" {
		return s.Kind
	}
	return s.Kind + "(" + detail + ")"
}

// Terminal reports whether a status kind is an end: succeeded, failed or dead.
func Terminal(kind string) bool {
	switch kind {
	case StatusSucceeded, StatusFailed, StatusDead:
		return true
	}
	return false
}

// Columns of the run board: the values of the status filter of GET /runs. They
// are coarser than status kinds.
const (
	ColumnPending      = "pending"
	ColumnRunnable     = "runnable"
	ColumnInitializing = "initializing"
	ColumnRunning      = "running"
	ColumnBlocked      = "blocked"
	ColumnSucceeded    = "succeeded"
	ColumnFailed       = "failed"
	ColumnArchived     = "archived"
	ColumnRemoving     = "removing"
)

// Column returns the board column of a status kind, ignoring the archived flag;
// an unknown kind is its own column.
func Column(kind string) string {
	switch kind {
	case StatusSubmitted:
		return ColumnPending
	case StatusStarting:
		return ColumnInitializing
	case StatusPaused:
		return ColumnRunning
	case StatusDead:
		return ColumnFailed
	}
	return kind
}
