package tools

import (
	"context"
	"errors"
	"fmt"
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

// ask puts forms to the person. The error is a *pendingAsk that the caller must
// pass on, errCannotAsk, errUnanswered, errAskFailed, or the end of the call.
func (r *request) ask(ctx context.Context, forms ...protocol.InputRequest) (map[string]protocol.InputResponse, error) {
	r.call.SetState(r.state)
	waiting, cancel := context.WithTimeout(ctx, r.askFor)
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
		return nil, errUnanswered
	case errors.Is(err, protocol.ErrInputClosed):
		return nil, protocol.ErrInputClosed
	case !r.call.AsksTogether():
		return nil, fmt.Errorf("%w: %w", errAskFailed, err)
	}
	return nil, &pendingAsk{err}
}
