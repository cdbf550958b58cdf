package runs

import (
	"fmt"
	"net/http"
)

// Refusal is an answer other than success, as the API gives it: an HTTP status, a sentence, and for some conditions a code.
type Refusal struct {
	Status int
	Code   string
	Detail string
}

func (e *Refusal) Error() string { return e.Detail }

func conflict(format string, args ...any) error {
	return &Refusal{Status: http.StatusConflict, Detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &Refusal{Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
}

var (
	errNoRun       = &Refusal{Status: http.StatusNotFound, Detail: "Run not found."}
	errNoParent    = &Refusal{Status: http.StatusNotFound, Detail: "Parent run not found."}
	errOwnParent   = &Refusal{Status: http.StatusBadRequest, Detail: "A run cannot be its own parent."}
	errParentCycle = &Refusal{Status: http.StatusBadRequest, Detail: "Parent link would create a cycle."}
	errNotPending  = &Refusal{Status: http.StatusConflict, Detail: "Run is not pending approval."}
	errAnswered    = &Refusal{Status: http.StatusConflict, Detail: "Question no longer exists or was already answered."}
	errNoDelivery  = &Refusal{Status: http.StatusServiceUnavailable, Detail: "Failed to deliver answer to the active run."}
)

// refuseArchived refuses to change an archived run.
func (r *run) refuseArchivedLocked() error {
	if r.state.Run.Lifecycle.Archived {
		return Archived(r.id)
	}
	return nil
}
