package protocol

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Exchange is what a handler may do towards the peer while its request is open.
// It is safe for concurrent use; after the reply everything on it is without
// effect.
type Exchange struct {
	request *request
	// ask, where set, takes the questions of work that has left its request behind
	// for a task.
	ask func(ctx context.Context, requests []InputRequest) (map[string]InputResponse, error)

	mu    sync.Mutex // protects the fields below
	ended bool
	// What few requests need is made when it is; nil is a zero value.
	progress *progressState
	logs     *bucket
	state    *exchangeState
}

// Revision is the protocol revision of this request.
func (x *Exchange) Revision() string { return x.request.rev.name }

// Client is who the peer says it is. Nothing should depend on it.
func (x *Exchange) Client() Implementation {
	r := x.request
	if r.rev.has(featPerRequest) {
		impl, _ := readImplementation(r.meta.clientInfo)
		return impl
	}
	if s := r.conn.session.Load(); s != nil {
		return s.client
	}
	return Implementation{}
}

// ClientExtension is what the peer declared, for this request, of an extension of
// the protocol: an object of settings, {} where there are none. It is nil where the
// peer did not declare the extension, or its revision has no extensions.
func (x *Exchange) ClientExtension(name string) json.RawMessage {
	r := x.request
	settings := field(field(r.meta.clientCaps, "extensions"), name)
	if !r.rev.has(featExtensions) || !isObject(settings) {
		return nil
	}
	return json.RawMessage(settings)
}

// Trace is the trace context that came with the request.
func (x *Exchange) Trace() TraceContext { return x.request.meta.trace }

// InputClosed is closed when the peer has closed its side. Whoever waits for
// something returns what it knows then, at once.
func (x *Exchange) InputClosed() <-chan struct{} { return x.request.conn.inputClosed }

// detached tells an exchange that has left its request behind.
func (x *Exchange) detached() bool { return x.ask != nil }

// Detach returns an exchange for work that goes on as a task after the call was
// answered. Questions go to ask, log messages nowhere. Progress goes on where the
// revision has it so, until End.
func (x *Exchange) Detach(ask func(ctx context.Context, requests []InputRequest) (map[string]InputResponse, error)) *Exchange {
	return &Exchange{request: x.request, ask: ask}
}

// End ends a detached exchange: its task has ended.
func (x *Exchange) End() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

// bucket limits a rate: burst at once, then one each interval.
type bucket struct {
	spent float64
	last  time.Time
}

func (k *bucket) take(now time.Time, burst float64, interval time.Duration) bool {
	k.spent = max(0, k.spent-float64(now.Sub(k.last))/float64(interval))
	k.last = now
	if k.spent+1 > burst {
		return false
	}
	k.spent++
	return true
}
