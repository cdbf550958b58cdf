package tools

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/tools/plain"
)

// sentence is the text of a failed call: what was wrong and what to do next.
func (h *host) sentence(err error) string {
	text := strings.TrimSpace(plain.Clean(err.Error()))
	var api *fabroapi.APIError
	if !errors.As(err, &api) {
		if errors.Is(err, context.DeadlineExceeded) {
			text += ". The Fabro server did not answer in time; call again."
		}
		return plain.Clip(text, plain.Limit)
	}
	if hint := h.hintFor(api); hint != "" && !strings.Contains(text, hint) {
		if !strings.HasSuffix(text, ".") {
			text += "."
		}
		text += " " + hint
	}
	return plain.Clip(text, plain.Limit)
}

// hintFor is the next step after a refusal of the API. Refusals with a code answer
// only what the tool they name did itself.
func (h *host) hintFor(api *fabroapi.APIError) string {
	switch api.Code {
	case wire.CodeUseAnswerEndpoint:
		return "The run waits for an answer: fabro_run_interact with action get_questions shows the question, action answer answers it."
	case wire.CodeRunNotSteerable, wire.CodeRunNotInterruptible:
		return "Messages and interrupts reach a run only while an agent stage of it is running."
	case wire.CodeAgentNotSteerable:
		return "Wait for the stage to end, or cancel the run."
	case wire.CodeNoActiveSteerableSession:
		return "Send a message without interrupt instead: it is kept until the agent can take it."
	case wire.CodeWorkerControlUnavailable:
		return "Try again in a moment; if it stays so, the run's worker is gone."
	case wire.CodeAlreadyPaired:
		return "fabro_run_pair with action status shows the active pair; end it or write to it."
	case wire.CodePairNotActive, wire.CodePairNotCurrent, wire.CodePairNotFound, wire.CodePairTargetNotActive:
		return "fabro_run_pair with action status shows what can be paired with now."
	case wire.CodeRunNotPairable:
		return "Only a running agent stage can be paired with."
	}
	switch {
	case api.Status == http.StatusNotImplemented:
		return "This server cannot do that; the embedded server has no agents to steer or pair with. Use a full Fabro server (--server)."
	case api.Status == http.StatusNotFound && h.offers(nameSearch):
		return nameSearch + " lists the runs there are."
	case api.Status == http.StatusTooManyRequests:
		return "The Fabro server is busy; call again in a moment."
	case api.Status >= 500:
		return "The Fabro server has a problem; try again in a moment."
	}
	return ""
}

// isGone reports whether the API no longer knows the run.
func isGone(err error) bool {
	var api *fabroapi.APIError
	return errors.As(err, &api) && (api.Status == http.StatusNotFound || api.Status == http.StatusGone)
}

// isConflict reports whether the API refused because something changed meanwhile.
func isConflict(err error) bool {
	var api *fabroapi.APIError
	return errors.As(err, &api) && api.Status == http.StatusConflict
}

// isRefusal reports whether the API answered at all, other than with a fault of
// its own.
func isRefusal(err error) bool {
	var api *fabroapi.APIError
	return errors.As(err, &api) && api.Status >= 400 && api.Status < 500 && api.Status != http.StatusTooManyRequests && api.Status != http.StatusRequestTimeout
}
