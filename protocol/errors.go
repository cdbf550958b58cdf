package protocol

import (
	"errors"
	"fmt"
	"strings"
)

// Codes of JSON-RPC 2.0 and of the MCP revisions.
const (
	CodeParse              = -32700 // the line is no JSON text
	CodeInvalidRequest     = -32600 // JSON, but no valid message
	CodeMethodNotFound     = -32601 // unknown method, or one whose capability is not declared
	CodeInvalidParams      = -32602 // missing or ill-typed params; unknown tool, prompt, cursor, task
	CodeInternal           = -32603 // the server's own fault
	CodeResourceNotFound   = -32002 // handshake revisions; later ones use CodeInvalidParams
	CodeURLRequired        = -32042 // 2025-11-25: a URL must be visited first
	CodeMissingCapability  = -32021 // 2026-07-28: the request lacks a client capability
	CodeUnsupportedVersion = -32022 // 2026-07-28: the claimed revision is not served
)

// Error is a JSON-RPC error. A handler that returns one (wrapped or not) makes the
// engine answer with it instead of with a result. Codes of one's own belong
// outside -32768 to -32000.
type Error struct {
	Code    int64
	Message string // one concise sentence
	Data    any    // anything that encoding/json can marshal; nil is absent
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errors that callers tell apart.
var (
	// ErrCannotAsk is returned by Ask when the peer did not declare the capability
	// that a question needs.
	ErrCannotAsk = errors.New("the client cannot ask anybody: it did not declare the capability this question needs")
	// ErrInputClosed ends questions and waits when the peer has closed its side.
	ErrInputClosed = errors.New("the client closed its side of the connection")
	// ErrShuttingDown is the cause of a handler's context when the server ends.
	ErrShuttingDown = errors.New("the server is shutting down")
	// ErrCancelled is the cause of a handler's context when the peer cancelled the
	// request; a *CancelledError is one that gives a reason. Nothing the handler
	// returns is sent any more.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrPeerGone is returned by Serve when the peer no longer reads.
	ErrPeerGone = errors.New("the client is gone: standard output is closed")
	// ErrSealInvalid is returned by a Sealer for a text it did not seal, or that
	// has expired.
	ErrSealInvalid = errors.New("not sealed by this server, or expired")
	// ErrNoTask is returned by a TaskProvider that wants this call to run at once.
	ErrNoTask = errors.New("run this call without a task")
	// ErrTaskNotFound is returned by a TaskProvider for an id it does not know.
	ErrTaskNotFound = errors.New("no such task")
)

// ErrResourceNotFound is returned by Resources for a uri that names nothing. The
// engine gives it the code of the peer's revision.
type ErrResourceNotFound struct{ URI string }

func (e ErrResourceNotFound) Error() string { return "Resource not found: " + clip(e.URI) }

// CancelledError is ErrCancelled with the reason that the peer gave, in its own
// words.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string { return ErrCancelled.Error() + ": " + clip(e.Reason) }

// Is tells errors.Is that this is ErrCancelled.
func (e *CancelledError) Is(target error) bool { return target == ErrCancelled }

// cancelled returns the cause that the params of notifications/cancelled make.
func cancelled(params []byte) error {
	if reason, _ := stringValue(field(params, "reason")); reason != "" {
		return &CancelledError{Reason: reason}
	}
	return ErrCancelled
}

func invalidParams(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func methodNotFound(method string) *Error {
	return &Error{Code: CodeMethodNotFound, Message: "Method not found: " + clip(method)}
}

var errEnding = &Error{Code: CodeInternal, Message: "The server is shutting down", Data: map[string]any{"retryable": true}}

var errBusy = &Error{Code: CodeInternal, Message: "The server is busy: too many requests are waiting", Data: map[string]any{"retryable": true}}

// clip shortens text of the peer's for a message.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
