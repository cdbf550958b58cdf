// Package wire holds the JSON types of Fabro's REST API: what the client in
// package fabroapi sends and reads, and what the embedded server answers.
//
// The types carry no behaviour beyond encoding. Three habits hold throughout:
//
//   - Decoding is tolerant. Members that a type does not name are ignored, enum
//     values are plain strings (a newer server may know more of them), and a
//     member that the API marks as required may be missing.
//   - Encoding is complete. A member that the API says is always present is
//     written even when it is null or empty; a member that the API marks as
//     optional is left out when it is empty. Lists that must be present have to
//     be non-nil slices, because a nil slice would be written as null.
//   - Times are UTC and written as RFC 3339 ending in Z.
//
// The names follow the OpenAPI description ("Fabro Run API" 0.2.0). This
// package imports nothing of the project.
package wire

import (
	"encoding/json"
	"time"
)

// APIPrefix starts the path of every operation except health and login.
const APIPrefix = "/api/v1"

// Page size limits of list operations (the page[limit] parameter) and of event
// lists (the limit parameter). A server clamps what lies outside.
const (
	DefaultPageLimit  = 20
	MaxPageLimit      = 100
	DefaultEventLimit = 100
	MaxEventLimit     = 1000
)

// List is one page of a listing.
type List[T any] struct {
	Data []T      `json:"data"`
	Meta ListMeta `json:"meta"`
}

// ListMeta says whether more pages follow.
type ListMeta struct {
	HasMore bool `json:"has_more"`
	// Total counts the items on all pages. Not every operation knows it.
	Total *int `json:"total,omitempty"`
}

// ErrorEnvelope is the body of every answer with a status of 400 or more.
type ErrorEnvelope struct {
	Errors    []ErrorEntry `json:"errors"`
	RequestID string       `json:"request_id,omitempty"`
}

// ErrorEntry is one error of an envelope; in practice there is exactly one.
type ErrorEntry struct {
	// Status is the HTTP status as a string, for example "404".
	Status string `json:"status"`
	// Title is the standard reason phrase of the status.
	Title string `json:"title"`
	// Detail is the sentence for a person.
	Detail string `json:"detail"`
	// Code names a condition that a program can act on, see the Code constants.
	// Most errors have none.
	Code      string `json:"code,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// Codes of ErrorEntry.Code that clients meet.
const (
	CodeUnauthorized             = "unauthorized"
	CodeAccessTokenInvalid       = "access_token_invalid"
	CodeAccessTokenExpired       = "access_token_expired"
	CodeUseAnswerEndpoint        = "use_answer_endpoint"
	CodeRunNotSteerable          = "run_not_steerable"
	CodeRunNotInterruptible      = "run_not_interruptible"
	CodeAgentNotSteerable        = "agent_not_steerable"
	CodeNoActiveSteerableSession = "no_active_steerable_session"
	CodeWorkerControlUnavailable = "worker_control_unavailable"
	CodeAlreadyPaired            = "already_paired"
	CodePairNotActive            = "pair_not_active"
	CodePairNotCurrent           = "pair_not_current"
	CodePairTargetNotActive      = "pair_target_not_active"
	CodePairMessageNotAccepted   = "pair_message_not_accepted"
	CodePairNotFound             = "pair_not_found"
	CodeRunNotPairable           = "run_not_pairable"
	CodeEventNotFound            = "event_not_found"
)

// Health is the answer of GET /health, which needs no credential.
type Health struct {
	// Status is "ok" on a server that can take requests.
	Status string `json:"status"`
}

// SystemInfo is the answer of GET /system/info.
type SystemInfo struct {
	Version       string           `json:"version,omitempty"`
	ServerURL     string           `json:"server_url,omitempty"`
	GitSHA        *string          `json:"git_sha,omitempty"`
	BuildDate     *string          `json:"build_date,omitempty"`
	Profile       *string          `json:"profile,omitempty"`
	OS            string           `json:"os,omitempty"`
	Arch          string           `json:"arch,omitempty"`
	StorageEngine string           `json:"storage_engine,omitempty"`
	StorageDir    string           `json:"storage_dir,omitempty"`
	UptimeSecs    int64            `json:"uptime_secs,omitempty"`
	Runs          *SystemRunCounts `json:"runs,omitempty"`
	// SandboxProvider is local, docker or daytona.
	SandboxProvider string `json:"sandbox_provider,omitempty"`
}

// SystemRunCounts counts the runs a server holds.
type SystemRunCounts struct {
	Total              int64 `json:"total"`
	Active             int64 `json:"active"`
	SchedulerSlotsUsed int64 `json:"scheduler_slots_used"`
}

// ServerRecord is the file server.json in which a running server says where it
// listens. The embedded server uses the same shape for its own record and fills
// in the last two members, which a real Fabro server does not write.
type ServerRecord struct {
	PID       int        `json:"pid"`
	Bind      ServerBind `json:"bind"`
	LogPath   string     `json:"log_path"`
	StartedAt time.Time  `json:"started_at"`
	Version   string     `json:"version,omitempty"`
	// TokenPath is the file that holds the bearer token of an embedded server.
	TokenPath string `json:"token_path,omitempty"`
}

// ServerBind is a Unix socket path or a TCP address "ip:port"; one of the two
// is set.
type ServerBind struct {
	Unix string `json:"unix,omitempty"`
	TCP  string `json:"tcp,omitempty"`
}

// emptyObject stands in for a raw object that is absent where the API requires
// one.
var emptyObject = json.RawMessage("{}")

// Ptr returns a pointer to v, for the many nullable members of this package.
func Ptr[T any](v T) *T { return &v }
