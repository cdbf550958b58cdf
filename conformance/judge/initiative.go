package judge

import (
	"errors"
	"fmt"

	"fabro-mcp/conformance/schema"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// neededCapability names the client capability a server needs for a request.
var neededCapability = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

// request judges a request of the server.
func (j *Judge) request(f *Frame, v *strictjson.Value) {
	if j.session == "" || transcript.Modern(j.session) {
		// Without a handshake there is nobody who could be asked.
		j.find(f.Revision, fmt.Sprintf("the server sent a request, %s (id %s)", f.Method, f.ID.Raw),
			"framing.server-no-requests", "lifecycle.server.no-requests-before-initialized")
		return
	}
	if _, plain := f.ID.Int(); !plain && !f.ID.Is(strictjson.String) {
		j.find(f.Revision, fmt.Sprintf("the id %s of a request of the server is neither a string nor an integer", f.ID.Raw), "jsonrpc.request.id-present")
	}
	key := Key(f.ID)
	if j.ourReplies[key] {
		j.find(f.Revision, fmt.Sprintf("the server used the id %s for a second request", f.ID.Raw), "jsonrpc.id.server-unique-in-session")
	}
	j.ourReplies[key] = true
	if !j.initialized && f.Method != "ping" {
		j.find(f.Revision, fmt.Sprintf("the server sent %s before notifications/initialized", f.Method), "lifecycle.server.no-requests-before-initialized")
	}
	if needed := neededCapability[f.Method]; needed != "" && j.caps.Get(needed) == nil {
		j.find(f.Revision, fmt.Sprintf("the server sent %s, but the client did not declare %s", f.Method, needed), "lifecycle.capabilities-respected.must", "lifecycle.capabilities-respected.should")
	}
	if set := schemas(f.Revision); set != nil {
		if err := set.Request(schema.Server, f.Raw); err != nil {
			j.unknownOr(f, err)
		}
	}
}

func (j *Judge) unknownOr(f *Frame, err error) {
	if isUnknown(err) {
		j.find(f.Revision, fmt.Sprintf("the %s %s does not exist in %s", kindName(f.Kind), f.Method, f.Revision), "framing.stdout-only-mcp")
		return
	}
	j.schema(f, f.Method, err)
}

// notification judges a notification of the server: what it belongs to decides
// which revision is in force and whether it may be there at all.
func (j *Judge) notification(f *Frame, v *strictjson.Value) {
	params := v.Get("params")
	if key := Key(params.At("_meta", metaSubscription)); key != "" {
		if r := j.requests[key]; r != nil && r.listen {
			f.Revision = r.revision
			j.onSubscription(f, r)
			j.notificationSchema(f)
			return
		}
		j.find(j.modernest(), fmt.Sprintf("%s carries the subscription id %s, which no listen request has", f.Method, showKey(key)), "subs.id.value", "jsonrpc.no-unsolicited-notifications")
		return
	}
	switch f.Method {
	case "notifications/progress":
		j.onProgress(f, params)
	case "notifications/message":
		j.onLog(f, params)
	case "notifications/cancelled":
		j.onCancelled(f, params)
	default:
		j.unscoped(f)
	}
	j.notificationSchema(f)
}

func (j *Judge) notificationSchema(f *Frame) {
	if set := schemas(f.Revision); set != nil {
		if err := set.Notification(schema.Server, f.Raw); err != nil {
			j.unknownOr(f, err)
		}
	}
}

// modernest is the revision of the youngest modern request, else the fallback.
func (j *Judge) modernest() string {
	for i := len(j.open) - 1; i >= 0; i-- {
		if j.open[i].modern {
			return j.open[i].revision
		}
	}
	return j.fallback()
}

// unscoped judges a notification without request or subscription. Where no
// session exists, a modern server has nothing to say unasked.
func (j *Judge) unscoped(f *Frame) {
	if j.session != "" {
		if !j.initialized {
			j.find(f.Revision, fmt.Sprintf("%s before notifications/initialized", f.Method), "lifecycle.server.no-list-changed-before-initialized")
		}
		return
	}
	f.Revision = j.modernest()
	j.find(f.Revision, fmt.Sprintf("%s belongs to no request and no subscription", f.Method), "jsonrpc.no-unsolicited-notifications", "lifecycle.server.no-list-changed-before-initialized")
}

// filterKey names the member of a listen's filter that asks for a notification.
var filterKey = map[string]string{
	"notifications/tools/list_changed":     "toolsListChanged",
	"notifications/prompts/list_changed":   "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
	"notifications/resources/updated":      "resourceSubscriptions",
	"notifications/tasks":                  "taskIds",
}

// wanted reports whether a filter asks for a notification.
func wanted(filter *strictjson.Value, method string) bool {
	key, limited := filterKey[method]
	if !limited {
		return true
	}
	v := filter.Get(key)
	return v.Is(strictjson.Bool) && v.True || v.Is(strictjson.Array) && len(v.Items) > 0
}

func (j *Judge) onSubscription(f *Frame, r *request) {
	acknowledgement := f.Method == "notifications/subscriptions/acknowledged"
	first := !r.acked
	r.acked = true
	switch {
	case first && !acknowledgement:
		j.find(f.Revision, fmt.Sprintf("%s is the first message of the subscription %s, before its acknowledgement", f.Method, showKey(r.key)), "subs.ack.first")
	case !wanted(r.filter, f.Method):
		j.find(f.Revision, fmt.Sprintf("%s on the subscription %s, whose filter does not ask for it", f.Method, showKey(r.key)), "subs.filter.only-requested")
	case r.answered:
		j.find(f.Revision, fmt.Sprintf("%s for the subscription %s after its final reply", f.Method, showKey(r.key)), "jsonrpc.no-unsolicited-notifications")
	case r.cancelled > 0 && j.answeredOf > r.cancelled:
		j.find(f.Revision, fmt.Sprintf("%s for the subscription %s after it was cancelled", f.Method, showKey(r.key)), "cancel.server.nothing-further")
	case f.Method == "notifications/message":
		j.find(f.Revision, "a log message on a subscription", "logging.per-request.not-on-listen")
	}
}

func (j *Judge) onProgress(f *Frame, params *strictjson.Value) {
	token := params.Get("progressToken")
	r := j.tokens[Key(token)]
	if r == nil {
		f.Revision = j.modernest()
		j.find(f.Revision, "progress with a token that no request gave: "+quoteLine(f.Raw), "progress.none-without-token", "progress.token.echo")
		return
	}
	f.Revision = r.revision
	last, now := j.progress[r.token], params.Get("progress")
	if before, ok := last.Rat(); ok {
		if value, ok := now.Rat(); ok && value.Cmp(before) <= 0 {
			j.find(f.Revision, fmt.Sprintf("progress went from %s to %s", last.Raw, now.Raw), "progress.increases")
		}
	}
	j.progress[r.token] = now
	switch {
	case r.answered && !r.handle:
		j.find(f.Revision, fmt.Sprintf("progress for %s (id %s) after its reply", r.method, showKey(r.key)), "progress.stops")
	case r.cancelled > 0 && j.answeredOf > r.cancelled:
		j.find(f.Revision, fmt.Sprintf("progress for %s (id %s) after it was cancelled", r.method, showKey(r.key)), "progress.stops-after-cancel", "cancel.server.nothing-further")
	}
}

// onLog judges a log message. In a modern revision it must belong to an open
// request that asked for logs; nothing in the message says which.
func (j *Judge) onLog(f *Frame, params *strictjson.Value) {
	if j.session != "" {
		if j.serverCaps != nil && j.serverCaps.Get("logging") == nil && !j.openModernLog() {
			j.find(f.Revision, "a log message, although the server does not declare logging", "logging.undeclared-silent")
		}
		return
	}
	f.Revision = j.modernest()
	if !j.openModernLog() {
		j.find(f.Revision, "a log message, although no open request asked for logs", "logging.per-request.opt-in")
	}
}

func (j *Judge) openModernLog() bool {
	for _, r := range j.open {
		if r.modern && r.logLevel != "" && !r.answered {
			f := r.cancelled == 0 || j.answeredOf <= r.cancelled
			if f {
				return true
			}
		}
	}
	return false
}

// onCancelled judges a cancel by the server: of its own requests in a session,
// of a listen in a modern revision.
func (j *Judge) onCancelled(f *Frame, params *strictjson.Value) {
	key := Key(params.Get("requestId"))
	r := j.requests[key]
	switch {
	case r != nil && r.listen:
		f.Revision = r.revision
	case j.ourReplies[key]:
	case j.session == "":
		f.Revision = j.modernest()
		j.find(f.Revision, "the server cancelled something that is no listen request: "+quoteLine(f.Raw), "cancel.server-sent.only-listen", "cancel.own-requests-only")
	default:
		j.find(f.Revision, "the server cancelled a request it did not send: "+quoteLine(f.Raw), "cancel.own-requests-only", "cancel.server-sent.only-listen")
	}
}

func isUnknown(err error) bool { return errors.Is(err, schema.ErrUnknownMessage) }
