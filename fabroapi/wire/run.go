package wire

import (
	"encoding/json"
	"time"
)

// Run is a run as lists and most operations show it. The complete state is a
// RunProjection.
type Run struct {
	ID            string            `json:"id"`
	ParentID      *string           `json:"parent_id,omitempty"`
	ChildrenCount int               `json:"children_count"`
	Title         string            `json:"title"`
	Goal          string            `json:"goal"`
	Workflow      RunWorkflow       `json:"workflow"`
	Automation    json.RawMessage   `json:"automation"` // AutomationRef or null
	Repository    *Repository       `json:"repository"`
	CreatedBy     Actor             `json:"created_by"`
	Origin        RunOrigin         `json:"origin"`
	Labels        map[string]string `json:"labels"`
	Lifecycle     RunLifecycle      `json:"lifecycle"`
	Sandbox       *RunSandbox       `json:"sandbox"`
	Models        []RunModel        `json:"models"`
	// SourceDirectory is the cwd of the manifest.
	SourceDirectory *string       `json:"source_directory"`
	Timestamps      RunTimestamps `json:"timestamps"`
	Timing          *Timing       `json:"timing"`
	Billing         *RunBilling   `json:"billing"`
	// Size is XS, S, M, L or XL by cost.
	Size            string           `json:"size"`
	AskFabro        AskFabro         `json:"ask_fabro"`
	Diff            *DiffSummary     `json:"diff"`
	PullRequest     *PullRequestLink `json:"pull_request"`
	CurrentQuestion *RunQuestion     `json:"current_question"`
	SupersededBy    *string          `json:"superseded_by"`
	RetriedFrom     *string          `json:"retried_from"`
	Links           RunLinks         `json:"links"`
}

// RunWorkflow says which workflow a run executes. Name comes from the settings,
// GraphName from the graph itself, Slug from the file.
type RunWorkflow struct {
	Slug      *string `json:"slug"`
	Name      *string `json:"name"`
	GraphName *string `json:"graph_name"`
	NodeCount int     `json:"node_count"`
	EdgeCount int     `json:"edge_count"`
}

// Repository is where the source of a run comes from.
type Repository struct {
	Name      string  `json:"name"`
	OriginURL *string `json:"origin_url"`
	Provider  string  `json:"provider"` // github, git or unknown
}

// RunOrigin is how a run came to be; the only kind is "api".
type RunOrigin struct {
	Kind string `json:"kind"`
}

// RunLifecycle is the status of a run and what is about to change it.
type RunLifecycle struct {
	Status         RunStatus    `json:"status"`
	Approval       *RunApproval `json:"approval"`
	PendingControl *string      `json:"pending_control"` // cancel, pause, unpause
	QueuePosition  *int         `json:"queue_position"`
	Error          *RunError    `json:"error"` // set on failed runs
	Archived       bool         `json:"archived"`
	ArchivedAt     *time.Time   `json:"archived_at"`
}

// Values of RunApproval.State.
const (
	ApprovalPending  = "pending"
	ApprovalApproved = "approved"
	ApprovalDenied   = "denied"
)

// RunApproval is the approval a run needed before it could start.
type RunApproval struct {
	State        string     `json:"state"`
	RequestedAt  time.Time  `json:"requested_at"`
	DecidedAt    *time.Time `json:"decided_at"`
	DenialReason *string    `json:"denial_reason"`
}

// RunError is the sentence that explains a failed run.
type RunError struct {
	Message string `json:"message"`
}

// RunTimestamps are the moments in the life of a run.
type RunTimestamps struct {
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at"`
	LastEventAt *time.Time `json:"last_event_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// Timing splits a duration, in milliseconds. Active is what was neither idle
// nor waiting for a person.
type Timing struct {
	WallTimeMS      int64 `json:"wall_time_ms"`
	InferenceTimeMS int64 `json:"inference_time_ms"`
	ToolTimeMS      int64 `json:"tool_time_ms"`
	ActiveTimeMS    int64 `json:"active_time_ms"`
}

// RunBilling is what a run has cost, in millionths of a US dollar.
type RunBilling struct {
	TotalUSDMicros *int64 `json:"total_usd_micros"`
}

// RunModel is a model that a run used.
type RunModel struct {
	Provider *string `json:"provider"`
	Name     string  `json:"name"`
}

// AskFabro says whether a chat about the run is possible.
type AskFabro struct {
	Available         bool    `json:"available"`
	UnavailableReason *string `json:"unavailable_reason"`
	DefaultModel      *string `json:"default_model"`
}

// DiffSummary counts changed files and lines.
type DiffSummary struct {
	FilesChanged int `json:"files_changed"`
	Additions    int `json:"additions"`
	Deletions    int `json:"deletions"`
}

// PullRequestLink points to the pull request of a run.
type PullRequestLink struct {
	Owner   string `json:"owner"`
	Repo    string `json:"repo"`
	Number  int    `json:"number"`
	HTMLURL string `json:"html_url"`
}

// RunQuestion is the question a blocked run shows in lists.
type RunQuestion struct {
	Text string `json:"text"`
}

// RunLinks are addresses of the run in a browser.
type RunLinks struct {
	Web *string `json:"web"`
}

// Kinds of RunSandbox.Kind.
const (
	SandboxPlanned      = "planned"
	SandboxInitializing = "initializing"
	SandboxReady        = "ready"
	SandboxFailed       = "failed"
)

// RunSandbox is where the commands of a run execute.
type RunSandbox struct {
	Kind     string              `json:"kind"`
	Plan     RunSandboxPlan      `json:"plan"`
	Instance *RunSandboxInstance `json:"instance,omitempty"`
	Failure  *RunSandboxFailure  `json:"failure,omitempty"`
}

// RunSandboxPlan is what was asked for. Provider is local, docker or daytona.
type RunSandboxPlan struct {
	Provider string  `json:"provider"`
	Image    *string `json:"image,omitempty"`
	Snapshot *string `json:"snapshot,omitempty"`
}

// RunSandboxInstance is what runs.
type RunSandboxInstance struct {
	Provider string            `json:"provider"`
	Image    *string           `json:"image,omitempty"`
	Snapshot *string           `json:"snapshot,omitempty"`
	Runtime  RunSandboxRuntime `json:"runtime"`
}

// RunSandboxRuntime identifies a running sandbox.
type RunSandboxRuntime struct {
	ID               string  `json:"id"`
	WorkingDirectory string  `json:"working_directory"`
	RepoCloned       *bool   `json:"repo_cloned"`
	CloneOriginURL   *string `json:"clone_origin_url"`
	CloneBranch      *string `json:"clone_branch"`
	WorkspaceRoot    *string `json:"workspace_root,omitempty"`
	ReposRoot        *string `json:"repos_root,omitempty"`
	PrimaryRepoPath  *string `json:"primary_repo_path,omitempty"`
	PrimaryRepoLink  *string `json:"primary_repo_link,omitempty"`
}

// RunSandboxFailure is why there is no sandbox.
type RunSandboxFailure struct {
	Provider   string   `json:"provider"`
	Error      string   `json:"error"`
	Causes     []string `json:"causes"`
	DurationMS int64    `json:"duration_ms"`
}

// StartRunRequest is the body of POST /runs/{id}/start. Resume continues a
// failed run from its last checkpoint.
type StartRunRequest struct {
	Resume bool `json:"resume"`
}

// DenyRunRequest is the body of POST /runs/{id}/deny.
type DenyRunRequest struct {
	Reason string `json:"reason,omitempty"`
}

// MaxSteerLength bounds SteerRunRequest.Text and PairMessageRequest.Text, in
// characters and in bytes respectively.
const MaxSteerLength = 8192

// SteerRunRequest is the body of POST /runs/{id}/steer.
type SteerRunRequest struct {
	Text      string `json:"text"`
	Interrupt bool   `json:"interrupt"`
}

// UpdateRunParentRequest is the body of PUT /runs/{id}/parent.
type UpdateRunParentRequest struct {
	ParentID string `json:"parent_id"`
}

// MaxTitleLength bounds UpdateRunRequest.Title, in characters.
const MaxTitleLength = 100

// UpdateRunRequest is the body of PATCH /runs/{id}.
type UpdateRunRequest struct {
	Title string `json:"title"`
}

// DeleteRunResponse is the answer of DELETE /runs/{id} when a sandbox was kept;
// otherwise the answer has no body.
type DeleteRunResponse struct {
	Deleted          bool              `json:"deleted"`
	SandboxPreserved bool              `json:"sandbox_preserved"`
	Sandbox          *DeleteRunSandbox `json:"sandbox,omitempty"`
}

// DeleteRunSandbox names a sandbox that outlives its run.
type DeleteRunSandbox struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
}
