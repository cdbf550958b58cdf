package projection

import (
	"fmt"

	"fabro-mcp/fabroapi/wire"
)

// TransitionError is an unlawful step between two statuses.
type TransitionError struct{ From, To wire.RunStatus }

func (e *TransitionError) Error() string {
	return fmt.Sprintf("invalid status transition: %s -> %s", e.From, e.To)
}

// anyReason stands for every reason of a failed run in lawful.
const anyReason = "*"

// lawful holds, for each status kind, the kinds that may follow. Failed is followed by the reasons that are allowed.
var lawful = map[string]map[string][]string{
	wire.StatusSubmitted: {wire.StatusPending: nil, wire.StatusRunnable: nil, wire.StatusFailed: {wire.FailedCancelled}},
	wire.StatusPending:   {wire.StatusRunnable: nil, wire.StatusSubmitted: nil, wire.StatusFailed: {wire.FailedCancelled, wire.FailedApprovalDenied}},
	wire.StatusRunnable:  {wire.StatusStarting: nil, wire.StatusSubmitted: nil, wire.StatusFailed: {wire.FailedCancelled}},
	wire.StatusStarting:  {wire.StatusRunning: nil, wire.StatusSubmitted: nil, wire.StatusFailed: {anyReason}},
	wire.StatusRunning: {wire.StatusBlocked: nil, wire.StatusPaused: nil, wire.StatusSucceeded: nil, wire.StatusSubmitted: nil,
		wire.StatusFailed: {anyReason}},
	wire.StatusBlocked:  {wire.StatusRunning: nil, wire.StatusPaused: nil, wire.StatusSubmitted: nil, wire.StatusFailed: {anyReason}},
	wire.StatusPaused:   {wire.StatusRunning: nil, wire.StatusBlocked: nil, wire.StatusPaused: nil, wire.StatusSubmitted: nil, wire.StatusFailed: {anyReason}},
	wire.StatusRemoving: {wire.StatusSubmitted: nil, wire.StatusFailed: {anyReason}},
	wire.StatusFailed:   {wire.StatusSubmitted: nil},
}

// Transition says whether a run may go from one status to another. Staying is always allowed; every run may be removed or declared dead.
func Transition(from, to wire.RunStatus) error {
	if from == to || to.Kind == wire.StatusDead || to.Kind == wire.StatusRemoving && from.Kind != wire.StatusRemoving {
		return nil
	}
	reasons, ok := lawful[from.Kind][to.Kind]
	if !ok {
		return &TransitionError{from, to}
	}
	if to.Kind != wire.StatusFailed {
		return nil
	}
	for _, r := range reasons {
		if r == anyReason || r == to.Reason {
			return nil
		}
	}
	return &TransitionError{from, to}
}
