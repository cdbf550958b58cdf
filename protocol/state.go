package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// exchangeState is what a request that asks for input carries over to its retry.
type exchangeState struct {
	answers map[string]json.RawMessage // of all rounds so far
	kept    json.RawMessage            // by SetState on the previous round
	next    any
	hasNext bool
}

// sealedState is the plain text of a requestState.
type sealedState struct {
	Binding string                     `json:"b"` // what the state belongs to
	Answers map[string]json.RawMessage `json:"a,omitempty"`
	Kept    json.RawMessage            `json:"s,omitempty"`
}

// inputRequired is the error that makes a request end in input_required.
type inputRequired struct{ requests []InputRequest }

func (e *inputRequired) Error() string {
	if len(e.requests) == 0 {
		return "the request is to be repeated"
	}
	keys := make([]string, len(e.requests))
	for i, q := range e.requests {
		keys[i] = q.Key
	}
	return "input is required: " + strings.Join(keys, ", ")
}

func asInputRequired(err error) *inputRequired {
	var asked *inputRequired
	errors.As(err, &asked)
	return asked
}

// State unmarshals what SetState kept on the previous round of this request into
// v; ok is false where there was none.
func (x *Exchange) State(v any) (ok bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == nil || x.state.kept == nil {
		return false, nil
	}
	return true, json.Unmarshal(x.state.kept, v)
}

// SetState keeps v for the next round of this request, in case Ask ends this one.
// It travels, sealed, through the client. Without SetState the state of the
// previous round stays.
func (x *Exchange) SetState(v any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == nil {
		x.state = new(exchangeState)
	}
	x.state.next, x.state.hasNext = v, true
}

// Repeat gives the request back without a question: the error that it returns, which
// the handler must return unchanged, makes the peer repeat the request with what
// SetState kept. So a handler sheds load, or does long work in rounds. It is nil for
// a peer whose revision has no rounds, and in work that was detached for a task: the
// handler goes on then.
func (x *Exchange) Repeat() error {
	if x.detached() || !x.request.rev.has(featInputRequired) {
		return nil
	}
	return &inputRequired{}
}

// openState reads requestState and inputResponses of a retry.
func (x *Exchange) openState() *Error {
	r := x.request
	if !r.rev.has(featInputRequired) {
		return nil
	}
	raw, responses := r.param("requestState"), r.param("inputResponses")
	if raw == nil && responses == nil {
		return nil
	}
	var state sealedState
	if raw != nil {
		text, ok := stringValue(raw)
		if !ok {
			return invalidParams("Parameter requestState must be a string")
		}
		plain, err := r.conn.server.Sealer.Open("requestState", text)
		if err == nil {
			err = json.Unmarshal(plain, &state)
		}
		switch {
		case err != nil:
			return invalidParams("Invalid requestState: it was altered, has expired, or was not issued by this server")
		case state.Binding != r.binding():
			return invalidParams("Invalid requestState: it belongs to another request")
		}
	}
	if responses != nil && !isObject(responses) {
		return invalidParams("Parameter inputResponses must be an object")
	}
	if state.Answers == nil {
		state.Answers = make(map[string]json.RawMessage)
	}
	var bad *Error
	members(responses, func(name, value []byte) bool {
		if !isObject(value) {
			bad = invalidParams("Parameter inputResponses.%s must be an object", clip(string(name)))
			return false
		}
		state.Answers[string(name)] = json.RawMessage(value)
		return true
	})
	x.state = &exchangeState{answers: state.Answers, kept: state.Kept}
	return bad
}

// askByResult looks for the responses in what the request brought along, and ends
// the round where some are missing.
func (x *Exchange) askByResult(requests []InputRequest) (map[string]InputResponse, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := make(map[string]InputResponse, len(requests))
	var answers map[string]json.RawMessage
	if x.state != nil {
		answers = x.state.answers
	}
	var missing []InputRequest
	for _, q := range requests {
		raw, ok := answers[q.Key]
		if !ok {
			missing = append(missing, q)
			continue
		}
		resp, err := q.read(raw)
		if err != nil {
			return nil, invalidParams("Unusable response in inputResponses.%s: %v", clip(q.Key), err)
		}
		found[q.Key] = resp
	}
	if missing != nil {
		return nil, &inputRequired{requests: missing}
	}
	return found, nil
}

// appendInputRequired ends the round: the questions, and everything known so far
// in a sealed requestState.
func (r *request) appendInputRequired(b []byte, asked *inputRequired) ([]byte, error) {
	r.resultType = "input_required"
	x := &r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	if len(asked.requests) > 0 {
		b = append(key(b, "inputRequests"), '{')
		for i := range asked.requests {
			q := &asked.requests[i]
			b = append(quote(separate(b), q.Key), ':')
			if b, err = q.append(b, r.rev); err != nil {
				return b, err
			}
		}
		b = append(b, '}')
	}
	state := sealedState{Binding: r.binding()}
	if s := x.state; s != nil {
		state.Answers, state.Kept = s.answers, s.kept
		if s.hasNext {
			if state.Kept, err = marshal(s.next); err != nil {
				return b, err
			}
		}
	}
	plain, err := marshal(state)
	if err != nil {
		return b, err
	}
	sealed, err := r.conn.server.Sealer.Seal("requestState", plain, r.conn.opts.StateTTL)
	if err != nil {
		return b, err
	}
	return keyString(b, "requestState", sealed), nil
}

// binding digests what a retry must have in common with the first request: method,
// what it is about, its arguments in whatever spelling, and the server's scope.
func (r *request) binding() string {
	h := sha256.New()
	for _, part := range []string{r.method.name, string(r.param("name")), string(r.param("uri")), r.conn.opts.StateScope} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	if args := r.param("arguments"); args != nil && !isNull(args) {
		h.Write(canonical(nil, args))
	} else {
		h.Write([]byte("{}"))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// canonical appends a sound value with its members sorted, strings decoded and
// quoted again, and no white space. Numbers keep their spelling.
func canonical(b, raw []byte) []byte { return canonicalWith(b, raw, nil) }

// canonicalWith is canonical with a way to spell numbers.
func canonicalWith(b, raw []byte, number func(raw []byte) []byte) []byte {
	switch {
	case isObject(raw):
		type member struct {
			name  string
			value []byte
		}
		var all []member
		members(raw, func(n, v []byte) bool {
			all = append(all, member{string(n), v})
			return true
		})
		slices.SortFunc(all, func(x, y member) int { return strings.Compare(x.name, y.name) })
		b = append(b, '{')
		for i, m := range all {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(quote(b, m.name), ':')
			b = canonicalWith(b, m.value, number)
		}
		return append(b, '}')
	case isArray(raw):
		b = append(b, '[')
		elements(raw, func(v []byte) bool {
			b = canonicalWith(comma(b), v, number)
			return true
		})
		return append(b, ']')
	case isString(raw):
		s, _ := stringValue(raw)
		return quote(b, s)
	case number != nil && isNumber(raw):
		return append(b, number(raw)...)
	}
	return append(b, raw...)
}

// randomID returns 16 random bytes as text.
func randomID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}
