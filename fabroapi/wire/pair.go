package wire

import (
	"encoding/json"
	"time"
)

// Values of PairRecord.Status.
const (
	PairActive = "active"
	PairEnded  = "ended"
	PairFailed = "failed"
)

// PairStatus is the answer of GET /runs/{id}/pair (RunPairStatusResponse).
type PairStatus struct {
	RunID       string       `json:"run_id"`
	CurrentPair *PairRecord  `json:"current_pair"`
	Targets     []PairTarget `json:"targets"`
}

// PairTarget is an agent stage that one can pair with.
type PairTarget struct {
	StageID   string `json:"stage_id"`
	NodeLabel string `json:"node_label"`
}

// PairRecord is a live conversation of a person with the agent of one stage.
type PairRecord struct {
	PairID        string     `json:"pair_id"`
	RunID         string     `json:"run_id"`
	Status        string     `json:"status"`
	StartedAt     time.Time  `json:"started_at"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`
	FailureReason *string    `json:"failure_reason,omitempty"`
	Target        PairTarget `json:"target"`
}

// PairStartRequest is the body of POST /runs/{id}/pair.
type PairStartRequest struct {
	StageID string `json:"stage_id"`
}

// PairMessageRequest is the body of POST /runs/{id}/pair/{pair_id}/messages.
// ClientMessageID makes the request idempotent.
type PairMessageRequest struct {
	Text            string `json:"text"`
	ClientMessageID string `json:"client_message_id,omitempty"`
}

// PairMessage is a message that was accepted (PairMessageRecord).
type PairMessage struct {
	MessageID       string    `json:"message_id"`
	ClientMessageID *string   `json:"client_message_id,omitempty"`
	PairID          string    `json:"pair_id"`
	RunID           string    `json:"run_id"`
	StageID         string    `json:"stage_id"`
	Text            string    `json:"text"`
	AcceptedAt      time.Time `json:"accepted_at"`
}

// PairTranscript is a part of what was said (PairTranscriptResponse).
type PairTranscript struct {
	Data []PairEntry        `json:"data"`
	Meta PairTranscriptMeta `json:"meta"`
}

// PairTranscriptMeta says where to go on reading.
type PairTranscriptMeta struct {
	NextSinceSeq int64 `json:"next_since_seq"`
	HasMore      bool  `json:"has_more"`
}

// Kinds of PairEntry.Kind.
const (
	PairUserMessage      = "user_message"
	PairSystemMessage    = "system_message"
	PairAssistantMessage = "assistant_message"
	PairToolCall         = "tool_call"
	PairError            = "error"
	PairWarning          = "warning"
)

// PairEntry is one entry of a transcript. Kind tells which of the members from
// MessageID on are set.
type PairEntry struct {
	Kind    string     `json:"kind"`
	Seq     int64      `json:"seq"`
	EventID string     `json:"event_id"`
	TS      time.Time  `json:"ts"`
	PairID  string     `json:"pair_id"`
	Target  PairTarget `json:"target"`

	MessageID         string  `json:"message_id,omitempty"`
	ClientMessageID   *string `json:"client_message_id,omitempty"`
	SystemMessageKind string  `json:"system_message_kind,omitempty"` // human_joined, human_left
	Text              *string `json:"text,omitempty"`
	ToolCallCount     *int    `json:"tool_call_count,omitempty"`
	ToolCallID        string  `json:"tool_call_id,omitempty"`
	ToolName          string  `json:"tool_name,omitempty"`
	Status            string  `json:"status,omitempty"` // started, completed
	Summary           *string `json:"summary,omitempty"`
	IsError           *bool   `json:"is_error,omitempty"`
	Truncated         *bool   `json:"truncated,omitempty"`
	WarningKind       string  `json:"warning_kind,omitempty"`
	Message           *string `json:"message,omitempty"`
	// DetailRef leads to the complete text: the sequence number of an event and,
	// for tool calls, the call.
	DetailRef json.RawMessage `json:"detail_ref,omitempty"`
}
