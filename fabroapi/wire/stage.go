package wire

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Values of StageProjection.State and RunStage.Status.
const (
	StagePending            = "pending"
	StageRunning            = "running"
	StageRetrying           = "retrying"
	StageSucceeded          = "succeeded"
	StagePartiallySucceeded = "partially_succeeded"
	StageFailed             = "failed"
	StageSkipped            = "skipped"
	StageCancelled          = "cancelled"
)

// Outcomes of a stage: the values of StageCompletion.Outcome. They are spelled
// like the states a finished stage has.
const (
	OutcomeSucceeded          = StageSucceeded
	OutcomePartiallySucceeded = StagePartiallySucceeded
	OutcomeFailed             = StageFailed
	OutcomeSkipped            = StageSkipped
)

// Values of StageProjection.Termination.
const (
	TerminationExited    = "exited"
	TerminationTimedOut  = "timed_out"
	TerminationCancelled = "cancelled"
)

// StageProjection is the state of one visit of a node. The first ten members
// are always written, null when there is nothing.
type StageProjection struct {
	FirstEventSeq    int64                  `json:"first_event_seq"`
	Prompt           *string                `json:"prompt"`
	Response         *string                `json:"response"`
	Completion       *StageCompletion       `json:"completion"`
	ProviderUsed     *StageModelUsage       `json:"provider_used"`
	Diff             *string                `json:"diff"`
	ScriptInvocation json.RawMessage        `json:"script_invocation"`
	ScriptTiming     json.RawMessage        `json:"script_timing"`
	ParallelResults  []ParallelBranchResult `json:"parallel_results"`
	Output           *string                `json:"output"`
	OutputBytes      *int64                 `json:"output_bytes,omitempty"`
	ParallelBranchID *string                `json:"parallel_branch_id,omitempty"`
	LiveStreaming    *bool                  `json:"live_streaming,omitempty"`
	Termination      *string                `json:"termination,omitempty"`
	StartedAt        *time.Time             `json:"started_at,omitempty"`
	Timing           *Timing                `json:"timing,omitempty"`
	Handler          string                 `json:"handler,omitempty"`
	Usage            Usage                  `json:"usage"`
	Model            json.RawMessage        `json:"model,omitempty"`
	GraphVisit       *int                   `json:"graph_visit,omitempty"`
	// AgentControl is running or waiting_for_steer.
	AgentControl string `json:"agent_control"`
	State        string `json:"state"`
}

// StageCompletion is how a stage ended.
type StageCompletion struct {
	Outcome       string    `json:"outcome"`
	Notes         *string   `json:"notes,omitempty"`
	FailureReason *string   `json:"failure_reason,omitempty"`
	Timestamp     time.Time `json:"timestamp"`
}

// StageModelUsage is the model a stage talked to. Mode is agent or prompt.
type StageModelUsage struct {
	Mode            string  `json:"mode"`
	Provider        *string `json:"provider,omitempty"`
	Model           *string `json:"model,omitempty"`
	ReasoningEffort *string `json:"reasoning_effort,omitempty"`
	Speed           *string `json:"speed,omitempty"`
}

// Usage counts tokens (BilledTokenCounts in the API description).
type Usage struct {
	InputTokens      int64  `json:"input_tokens"`
	OutputTokens     int64  `json:"output_tokens"`
	TotalTokens      int64  `json:"total_tokens"`
	ReasoningTokens  int64  `json:"reasoning_tokens"`
	CacheReadTokens  int64  `json:"cache_read_tokens"`
	CacheWriteTokens int64  `json:"cache_write_tokens"`
	TotalUSDMicros   *int64 `json:"total_usd_micros,omitempty"`
}

// ParallelBranchResult is how one branch of a fan-out ended.
type ParallelBranchResult struct {
	ID             string                     `json:"id"`
	Index          int                        `json:"index"`
	ItemLabel      string                     `json:"item_label,omitempty"`
	Status         string                     `json:"status"`
	ContextUpdates map[string]json.RawMessage `json:"context_updates"`
}

// RunStage is one stage as GET /runs/{id}/stages lists it.
type RunStage struct {
	ID                  string           `json:"id"`
	Name                string           `json:"name"`
	Handler             string           `json:"handler"`
	Status              string           `json:"status"`
	WallTimeMS          *int64           `json:"wall_time_ms,omitempty"`
	NodeID              string           `json:"node_id"`
	Visit               int              `json:"visit"`
	GraphVisit          *int             `json:"graph_visit,omitempty"`
	ResumedFromStageID  *string          `json:"resumed_from_stage_id,omitempty"`
	ParallelGroupID     *string          `json:"parallel_group_id,omitempty"`
	ParallelBranchIndex *int             `json:"parallel_branch_index,omitempty"`
	ProviderUsed        *StageModelUsage `json:"provider_used,omitempty"`
	StartedAt           *time.Time       `json:"started_at,omitempty"`
	Billing             Usage            `json:"billing"`
}

// Limits of the log endpoint, in bytes. A limit of 0 is refused.
const (
	DefaultLogLimit = 65536
	MaxLogLimit     = 1048576
)

// CommandLog is a part of what a command stage wrote (CommandLogResponse).
type CommandLog struct {
	Offset     int64 `json:"offset"`
	NextOffset int64 `json:"next_offset"`
	TotalBytes int64 `json:"total_bytes"`
	// Bytes is base64 on the wire.
	Bytes []byte `json:"bytes_base64"`
	// EOF is set when the stage has ended and nothing follows NextOffset.
	EOF           bool    `json:"eof"`
	CASRef        *string `json:"cas_ref"`
	LiveStreaming bool    `json:"live_streaming"`
}

// Artifact is a file that a run kept (RunArtifactEntry). Size is in bytes.
type Artifact struct {
	StageID      string `json:"stage_id"`
	NodeSlug     string `json:"node_slug"`
	Retry        int    `json:"retry"`
	RelativePath string `json:"relative_path"`
	Size         int64  `json:"size"`
}

// ArtifactList is the answer of GET /runs/{id}/artifacts; it has no pages.
type ArtifactList struct {
	Data []Artifact `json:"data"`
}

// StageArtifact is a file of one stage (ArtifactEntry).
type StageArtifact struct {
	Filename string `json:"filename"`
	Retry    int    `json:"retry"`
	Size     int64  `json:"size"`
}

// StageID joins a node id and a visit (from 1) to a stage id.
func StageID(node string, visit int) string { return node + "@" + strconv.Itoa(visit) }

// ParseStageID splits a stage id at its last "@".
func ParseStageID(id string) (node string, visit int, err error) {
	at := strings.LastIndexByte(id, '@')
	if at < 0 {
		return "", 0, errors.New("stage id must contain '@'")
	}
	node = id[:at]
	if node == "" {
		return "", 0, errors.New("stage id node_id must not be empty")
	}
	if id[at+1:] == "" {
		return "", 0, errors.New("stage id visit suffix must not be empty")
	}
	n, err := strconv.ParseUint(id[at+1:], 10, 32)
	if err != nil {
		return "", 0, errors.New("invalid stage id visit: " + strconv.Quote(id[at+1:]) + " is not a number")
	}
	if n == 0 {
		return "", 0, errors.New("stage id visit must be greater than zero")
	}
	return node, int(n), nil
}
