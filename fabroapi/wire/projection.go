package wire

import (
	"encoding/json"
	"time"
)

// RunProjection is the complete state of a run (GET /runs/{id}/state), as its
// events tell it. It can be large: it holds the settings, the graph and what
// every stage answered.
type RunProjection struct {
	Title               string                      `json:"title,omitempty"`
	ParentID            *string                     `json:"parent_id,omitempty"`
	Spec                RunSpec                     `json:"spec"`
	WebURL              *string                     `json:"web_url,omitempty"`
	Start               *StartRecord                `json:"start,omitempty"`
	Status              RunStatus                   `json:"status"`
	Approval            *RunApproval                `json:"approval,omitempty"`
	ArchivedAt          *time.Time                  `json:"archived_at,omitempty"`
	StatusUpdatedAt     time.Time                   `json:"status_updated_at"`
	LastEventAt         time.Time                   `json:"last_event_at"`
	PendingControl      *string                     `json:"pending_control,omitempty"`
	Checkpoints         []CheckpointRecord          `json:"checkpoints"`
	Conclusion          *Conclusion                 `json:"conclusion,omitempty"`
	Sandbox             *RunSandbox                 `json:"sandbox,omitempty"`
	PullRequest         *PullRequestLink            `json:"pull_request,omitempty"`
	PullRequestCreation json.RawMessage             `json:"pull_request_creation,omitempty"`
	SupersededBy        *string                     `json:"superseded_by,omitempty"`
	RetriedFrom         *string                     `json:"retried_from,omitempty"`
	PendingInterviews   map[string]PendingInterview `json:"pending_interviews"` // by question id
	Stages              map[string]StageProjection  `json:"stages"`             // by stage id, node@visit
}

// RunSpec is what a run was created from. Settings and Graph stay raw: their
// shapes belong to the workflow dialect, not to this API.
type RunSpec struct {
	RunID             string            `json:"run_id"`
	Settings          json.RawMessage   `json:"settings"`
	Graph             json.RawMessage   `json:"graph"`
	GraphSource       *string           `json:"graph_source,omitempty"`
	WorkflowSlug      *string           `json:"workflow_slug,omitempty"`
	WorkflowVersionID *string           `json:"workflow_version_id,omitempty"`
	Automation        json.RawMessage   `json:"automation,omitempty"`
	SourceDirectory   *string           `json:"source_directory,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Provenance        Provenance        `json:"provenance"`
	ManifestBlob      *string           `json:"manifest_blob,omitempty"`
	DefinitionBlob    *string           `json:"definition_blob,omitempty"`
	SpecBlob          *string           `json:"spec_blob,omitempty"`
	Git               *ManifestGit      `json:"git,omitempty"`
	ForkSourceRef     *ForkSourceRef    `json:"fork_source_ref,omitempty"`
}

// DryRun reports whether the settings of a run are those of a dry run, whose
// stages are simulated. Settings of another shape say nothing of it.
func DryRun(settings json.RawMessage) bool {
	var s struct {
		Run struct {
			Execution struct {
				Mode string `json:"mode"`
			} `json:"execution"`
		} `json:"run"`
	}
	return json.Unmarshal(settings, &s) == nil && s.Run.Execution.Mode == "dry_run"
}

// Provenance says which server and client made a run, and for whom.
type Provenance struct {
	Server  *ServerProvenance `json:"server,omitempty"`
	Client  *ClientProvenance `json:"client,omitempty"`
	Subject Actor             `json:"subject"`
}

// ServerProvenance is the server's version.
type ServerProvenance struct {
	Version string `json:"version"`
}

// ClientProvenance is taken from the User-Agent header "name/version".
type ClientProvenance struct {
	UserAgent string `json:"user_agent,omitempty"`
	Name      string `json:"name,omitempty"`
	Version   string `json:"version,omitempty"`
}

// ForkSourceRef is the checkpoint that a forked run continues from.
type ForkSourceRef struct {
	SourceRunID   string `json:"source_run_id"`
	CheckpointSHA string `json:"checkpoint_sha"`
}

// StartRecord is when and from which commit the engine started.
type StartRecord struct {
	StartTime time.Time `json:"start_time"`
	RunBranch *string   `json:"run_branch,omitempty"`
	BaseSHA   *string   `json:"base_sha,omitempty"`
}

// CheckpointRecord is a checkpoint with the sequence number of its event.
type CheckpointRecord struct {
	Seq        int64      `json:"seq"`
	Checkpoint Checkpoint `json:"checkpoint"`
	Diff       RunDiff    `json:"diff"`
}

// Checkpoint is what a run needs to go on after CurrentNode.
type Checkpoint struct {
	Timestamp                time.Time                  `json:"timestamp"`
	CurrentNode              string                     `json:"current_node"`
	CompletedNodes           []string                   `json:"completed_nodes"`
	NodeRetries              map[string]int             `json:"node_retries"`
	ContextValues            map[string]json.RawMessage `json:"context_values"`
	NodeOutcomes             map[string]json.RawMessage `json:"node_outcomes,omitempty"`
	NextNodeID               string                     `json:"next_node_id,omitempty"`
	GitCommitSHA             string                     `json:"git_commit_sha,omitempty"`
	LoopFailureSignatures    json.RawMessage            `json:"loop_failure_signatures,omitempty"`
	RestartFailureSignatures json.RawMessage            `json:"restart_failure_signatures,omitempty"`
	NodeVisits               map[string]int             `json:"node_visits,omitempty"`
}

// RunDiff is a patch and its size.
type RunDiff struct {
	Patch   *string      `json:"patch,omitempty"`
	Summary *DiffSummary `json:"summary,omitempty"`
}

// Conclusion is how a run ended. Status is a stage outcome.
type Conclusion struct {
	Timestamp         time.Time       `json:"timestamp"`
	Status            string          `json:"status"`
	Timing            Timing          `json:"timing"`
	Failure           *RunFailure     `json:"failure,omitempty"`
	FinalGitCommitSHA *string         `json:"final_git_commit_sha,omitempty"`
	Stages            []StageSummary  `json:"stages"`
	Billing           json.RawMessage `json:"billing,omitempty"`
	TotalRetries      int             `json:"total_retries"`
	Diff              RunDiff         `json:"diff"`
}

// RunFailure is why a run failed. Reason is one of the Failed constants.
type RunFailure struct {
	Reason string        `json:"reason"`
	Detail FailureDetail `json:"detail"`
}

// Values of FailureDetail.Category.
const (
	CategoryTransientInfra  = "transient_infra"
	CategoryDeterministic   = "deterministic"
	CategoryBudgetExhausted = "budget_exhausted"
	CategoryCompilationLoop = "compilation_loop"
	CategoryCanceled        = "canceled"
	CategoryStructural      = "structural"
)

// FailureDetail explains the failure of a stage or a run.
type FailureDetail struct {
	Message        string          `json:"message"`
	Causes         []string        `json:"causes,omitempty"`
	Category       string          `json:"category"`
	SystemActor    string          `json:"system_actor,omitempty"`
	Signature      string          `json:"signature,omitempty"`
	ExecOutputTail *ExecOutputTail `json:"exec_output_tail,omitempty"`
}

// ExecOutputTail is the end of what a process wrote.
type ExecOutputTail struct {
	Stdout          string `json:"stdout,omitempty"`
	Stderr          string `json:"stderr,omitempty"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
}

// StageSummary is one stage in a conclusion.
type StageSummary struct {
	StageID          string `json:"stage_id"`
	StageLabel       string `json:"stage_label"`
	Timing           Timing `json:"timing"`
	BillingUSDMicros *int64 `json:"billing_usd_micros,omitempty"`
	Retries          int    `json:"retries"`
}

// PendingInterview is an open question in the state of a run.
type PendingInterview struct {
	Question  Question  `json:"question"`
	StartedAt time.Time `json:"started_at"`
}
