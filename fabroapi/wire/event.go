package wire

import (
	"encoding/json"
	"strings"
	"time"
)

// EventEnvelope is one entry of a run's event log. Event names and properties
// are open: a client must accept names it does not know.
type EventEnvelope struct {
	// Seq counts the events of one run from 1 without gaps.
	Seq   int64     `json:"seq"`
	ID    string    `json:"id"`
	TS    time.Time `json:"ts"`
	RunID string    `json:"run_id"`
	// Event is the dotted name, for example "stage.completed".
	Event            string `json:"event"`
	SessionID        string `json:"session_id,omitempty"`
	ParentSessionID  string `json:"parent_session_id,omitempty"`
	NodeID           string `json:"node_id,omitempty"`
	NodeLabel        string `json:"node_label,omitempty"`
	StageID          string `json:"stage_id,omitempty"`
	ParallelGroupID  string `json:"parallel_group_id,omitempty"`
	ParallelBranchID string `json:"parallel_branch_id,omitempty"`
	ToolCallID       string `json:"tool_call_id,omitempty"`
	Actor            *Actor `json:"actor,omitempty"`
	// Properties is always an object on the wire; nil is written as {}.
	Properties json.RawMessage `json:"properties"`
}

// MarshalJSON writes absent properties as an empty object.
func (e EventEnvelope) MarshalJSON() ([]byte, error) {
	type plain EventEnvelope
	if len(e.Properties) == 0 {
		e.Properties = emptyObject
	}
	return json.Marshal(plain(e))
}

// Category is the first segment of an event name: "stage" of "stage.completed".
func Category(event string) string {
	category, _, _ := strings.Cut(event, ".")
	return category
}

// Names of the events that clients act on.
const (
	EventRunCompleted         = "run.completed"
	EventRunFailed            = "run.failed"
	EventRunBlocked           = "run.blocked"
	EventRunUnblocked         = "run.unblocked"
	EventInterviewStarted     = "interview.started"
	EventInterviewCompleted   = "interview.completed"
	EventInterviewTimeout     = "interview.timeout"
	EventInterviewInterrupted = "interview.interrupted"
	EventStageStarted         = "stage.started"
	EventStageCompleted       = "stage.completed"
	EventStageFailed          = "stage.failed"
)

// TerminalEvent reports whether an event ends a run.
func TerminalEvent(event string) bool { return event == EventRunCompleted || event == EventRunFailed }

// EventDetail is the answer of GET /runs/{id}/events/{seq}: one event whose
// long member, if it has one, is lifted out into Content and cut there.
type EventDetail struct {
	Event      EventHead       `json:"event"`
	Properties json.RawMessage `json:"properties"`
	Content    *EventContent   `json:"content,omitempty"`
	Truncated  bool            `json:"truncated"`
	// Redacted means that secrets were masked.
	Redacted         bool `json:"redacted"`
	MaxContentLength int  `json:"max_content_length"`
}

// EventHead is an envelope without properties.
type EventHead struct {
	Seq        int64     `json:"seq"`
	ID         string    `json:"id"`
	TS         time.Time `json:"ts"`
	RunID      string    `json:"run_id"`
	Event      string    `json:"event"`
	Actor      *Actor    `json:"actor,omitempty"`
	SessionID  string    `json:"session_id,omitempty"`
	NodeID     string    `json:"node_id,omitempty"`
	NodeLabel  string    `json:"node_label,omitempty"`
	StageID    string    `json:"stage_id,omitempty"`
	ToolCallID string    `json:"tool_call_id,omitempty"`
}

// EventContent is the long text of an event. Kind is text, tool_output,
// tool_arguments, error or details.
type EventContent struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}
