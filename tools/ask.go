package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"fabro-mcp/protocol"
)

// askTimeout bounds how long one form waits for a person.
const askTimeout = 10 * time.Minute

// Outcomes of asking other than an answer.
var (
	// errCannotAsk: the host cannot show a form, or says so now.
	errCannotAsk = errors.New("the host cannot ask its user")
	// errUnanswered: nobody reacted within host.askFor.
	errUnanswered = errors.New("nobody answered in time (a form waits ten minutes)")
	// errCapped: nobody reacted before the call had to come back (--max-wait).
	errCapped = errors.New("nobody answered before this server's cap on one call (--max-wait); call again to ask again")
	// errAskFailed: the host was asked and answered with an error, or with
	// something that is no answer.
	errAskFailed = errors.New("the host could not ask its user")
)

// pendingAsk carries an error of Exchange.Ask that must reach the protocol
// unchanged: the peer is to collect the answers and call again.
type pendingAsk struct{ err error }

func (p *pendingAsk) Error() string { return p.err.Error() }
func (p *pendingAsk) Unwrap() error { return p.err }

// canAsk reports whether this call may put a form to a person.
func (r *request) canAsk() bool { return r.call.CanAsk(protocol.InputForm) }

// rest is how long this call may still take.
func (r *request) rest() time.Duration {
	if r.cfg.MaxWait <= 0 {
		return math.MaxInt64
	}
	return max(0, r.cfg.MaxWait-r.now().Sub(r.began))
}

// ask puts forms to the person. The error is a *pendingAsk that the caller must
// pass on, errCannotAsk, errUnanswered, errCapped, errAskFailed, or the end of the
// call. Where the peer asks between two calls, a person's time is no part of ours.
func (r *request) ask(ctx context.Context, forms ...protocol.InputRequest) (map[string]protocol.InputResponse, error) {
	r.call.SetState(r.state)
	limit, late := r.askFor, errUnanswered
	if rest := r.rest(); rest < limit {
		limit, late = rest, errCapped
	}
	if limit == 0 && !r.call.AsksTogether() {
		return nil, late // no form that disappears at once
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers, err := r.call.Ask(waiting, forms...)
	switch {
	case err == nil:
		return answers, nil
	case errors.Is(err, protocol.ErrCannotAsk):
		return nil, errCannotAsk
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case waiting.Err() != nil:
		return nil, late
	case errors.Is(err, protocol.ErrInputClosed):
		return nil, protocol.ErrInputClosed
	case !r.call.AsksTogether():
		return nil, fmt.Errorf("%w: %w", errAskFailed, err)
	}
	return nil, &pendingAsk{err}
}
