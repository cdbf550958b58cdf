package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// request is one open request of the peer.
type request struct {
	conn   *conn
	rev    *revision
	id     []byte   // raw; a part of frame
	sum    uint64   // of the id, in openRequests
	same   *request // the next one of that sum
	method *method
	params []byte       // an object or nil; a part of frame
	meta   *requestMeta // never nil once the request is routed
	caps   clientCapabilities
	frame  []byte // owned by the request; nil in batches
	index  paramIndex
	batch  *batch // nil outside batches

	closed   bool // guarded by output.mu: nothing more is sent
	queued   bool // it waited for a handler, and may have been cancelled
	slot     *int // guarded by conn.mu: what the request counts among
	finished bool // guarded by conn.mu: it is no longer counted as open

	ctx requestContext

	// How the result is rounded off; set by the method.
	resultType string // empty is "complete"
	ttl        time.Duration
	scope      CacheScope
	resultMeta map[string]any
	stays      bool // the method keeps the request open and answers later

	x    Exchange
	call ToolCall
}

// taken tells requests that were taken on from those that were answered at once,
// and those that were dropped.
func (r *request) taken() bool { return r.ctx.conn != nil }

// CacheScope says who may keep a result.
type CacheScope string

// Cache scopes. The zero value means private.
const (
	ScopePublic  CacheScope = "public"
	ScopePrivate CacheScope = "private"
)

// param returns a member of params, nil where it is absent.
func (r *request) param(name string) []byte {
	if r.index.n >= 0 && r.frame != nil {
		return r.index.find(r.frame, name)
	}
	return field(r.params, name)
}

// stringParam returns a required string.
func (r *request) stringParam(name string) (string, *Error) {
	raw := r.param(name)
	if raw == nil {
		return "", invalidParams("Missing parameter: %s", name)
	}
	s, ok := stringValue(raw)
	if !ok {
		return "", invalidParams("Parameter %s must be a string", name)
	}
	return s, nil
}

// appendResult closes the members of a result that b holds from its bracket on.
func (r *request) appendResultEnd(b []byte) []byte {
	if r.rev.has(featResultType) {
		kind := r.resultType
		if kind == "" {
			kind = "complete"
		}
		b = keyString(b, "resultType", kind)
	}
	if r.rev.has(featCacheHints) && r.method.caches && r.resultType == "" {
		b = keyInt(b, "ttlMs", r.ttl.Milliseconds())
		scope := r.scope
		if scope == "" {
			scope = ScopePrivate
		}
		b = keyString(b, "cacheScope", string(scope))
	}
	return append(r.appendResultMeta(b), '}')
}

func (r *request) appendResultMeta(b []byte) []byte {
	identify := r.rev.has(featResultType)
	if len(r.resultMeta) == 0 && !identify {
		return b
	}
	if len(r.resultMeta) == 0 {
		b = append(key(b, "_meta"), '{')
	} else {
		meta, err := marshal(r.resultMeta)
		if err != nil {
			meta = []byte("{}")
		}
		b = append(key(b, "_meta"), meta[:len(meta)-1]...)
	}
	if identify {
		if _, own := r.resultMeta[metaServerInfo]; !own {
			b = key(b, metaServerInfo)
			b = r.conn.server.Info.append(b, r.rev)
		}
	}
	return append(b, '}')
}

// respond runs the method and renders the whole response line into b.
func (r *request) respond(b []byte) []byte {
	b = appendResponse(b, r.id)
	head := len(b)
	b = append(key(b, "result"), '{')
	body, err := r.method.serve(r, b)
	if err == nil && r.stays {
		return body[:0]
	}
	if err == nil {
		b = r.appendResultEnd(body)
		if len(b) <= r.conn.server.opts.MaxResultBytes {
			return append(b, "}\n"...)
		}
		b, err = r.tooLarge(b[:head], len(b))
		if err == nil {
			return append(b, "}\n"...)
		}
	}
	return append(appendError(b[:head], r.asError(err)), "}\n"...)
}

// tooLarge replaces a result over the limit.
func (r *request) tooLarge(b []byte, size int) ([]byte, error) {
	limit := r.conn.server.opts.MaxResultBytes
	if r.method.name != "tools/call" {
		return b, &Error{Code: CodeInternal, Message: "The result is too large to be sent", Data: map[string]any{"bytes": size, "limit": limit}}
	}
	r.resultMeta, r.resultType = nil, ""
	b = append(key(b, "result"), '{')
	b = appendToolError(b, "The result of "+r.call.Name+" is too large to be sent ("+itoa(size)+" bytes; the limit is "+itoa(limit)+"). Ask for less at a time.")
	return r.appendResultEnd(b), nil
}

// asError turns a handler's error into one of the wire.
func (r *request) asError(err error) *Error {
	var e *Error
	var gone ErrResourceNotFound
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &gone):
		return &Error{Code: r.rev.resourceNotFound, Message: gone.Error(), Data: map[string]any{"uri": gone.URI}}
	case errors.Is(err, ErrTaskNotFound):
		return invalidParams("Task not found")
	case errors.Is(err, context.Canceled) && r.taken() && r.ctx.Err() != nil:
		return &Error{Code: CodeInternal, Message: capitalised(context.Cause(&r.ctx).Error())}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// arguments returns params.arguments as an object of the request's own frame.
func (r *request) arguments() (json.RawMessage, *Error) {
	raw := r.param("arguments")
	if raw == nil || isNull(raw) {
		return json.RawMessage("{}"), nil
	}
	if !isObject(raw) {
		return nil, invalidParams("Parameter arguments must be an object")
	}
	return json.RawMessage(raw), nil
}
