package judge

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabro-mcp/conformance/schema"
	"fabro-mcp/conformance/strictjson"
	"fabro-mcp/conformance/transcript"
)

// Received judges one line of the server and says what it is. terminated is
// false for a last line without newline.
func (j *Judge) Received(line []byte, terminated bool) []*Frame {
	now := j.fallback()
	if !terminated {
		j.find(now, "the last line of standard output does not end with a newline: "+quoteLine(line), "framing.newline-delimited")
	}
	if bytes.HasSuffix(line, []byte("\r")) {
		j.advise(now, "the line ends with a carriage return before the newline; messages are separated by a newline alone", "framing.newline-delimited")
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(bytes.TrimSpace(line)) == 0 {
		j.find(now, "an empty line on standard output, which is no MCP message", "framing.stdout-only-mcp")
		return nil
	}
	v, err := strictjson.Parse(line)
	var bad *strictjson.Error
	if errors.As(err, &bad) {
		switch bad.Fault {
		case strictjson.UTF8:
			j.find(now, fmt.Sprintf("a line of standard output %s", bad), "framing.utf8", "framing.stdout-only-mcp")
		case strictjson.Duplicate, strictjson.Surrogate:
			j.advise(now, fmt.Sprintf("a message %s; readers disagree on what it means", bad), "framing.stdout-schema-valid")
		default:
			j.find(now, fmt.Sprintf("a line of standard output is no MCP message, it %s: %s", bad, quoteLine(line)), "framing.stdout-only-mcp")
		}
	}
	if v == nil {
		return []*Frame{{Kind: Broken, Raw: line, Revision: now}}
	}
	if v.Is(strictjson.Array) {
		return j.batch(line, v)
	}
	return []*Frame{j.message(line, v)}
}

func (j *Judge) batch(line []byte, v *strictjson.Value) []*Frame {
	now := j.fallback()
	frame := &Frame{Kind: Batch, Raw: line, Value: v, Revision: now}
	if j.batches == 0 || now != "2025-03-26" && now != "2024-11-05" {
		j.find(now, "an array on standard output: a line carries exactly one message", "framing.single-message-per-line", "framing.stdout-only-mcp")
	} else {
		j.batches--
	}
	if len(v.Items) == 0 {
		j.find(now, "an empty array on standard output", "jsonrpc.batch.notifications-only", "framing.stdout-only-mcp")
	}
	out := []*Frame{frame}
	for _, item := range v.Items {
		out = append(out, j.message(item.Raw, item))
	}
	return out
}

// message judges one message.
func (j *Judge) message(raw []byte, v *strictjson.Value) *Frame {
	f := &Frame{Raw: raw, Value: v, Revision: j.fallback(), ID: v.Get("id"), Method: v.Get("method").Str()}
	if !v.Is(strictjson.Object) {
		j.find(f.Revision, "a line of standard output is JSON but no message: "+quoteLine(raw), "framing.stdout-only-mcp")
		return f
	}
	if v.Get("jsonrpc").Str() != "2.0" {
		j.find(f.Revision, `a message without "jsonrpc":"2.0": `+quoteLine(raw), "jsonrpc.version-tag")
	}
	result, failure := v.Get("result"), v.Get("error")
	switch {
	case v.Get("method") != nil && (result != nil || failure != nil):
		j.find(f.Revision, "a message with both a method and a result or error: "+quoteLine(raw), "jsonrpc.response.result-or-error")
	case result != nil && failure != nil:
		j.find(f.Revision, "a reply with both result and error: "+quoteLine(raw), "jsonrpc.response.result-or-error")
		f.Kind = Error
		j.reply(f, v)
	case result != nil:
		f.Kind = Result
		j.reply(f, v)
	case failure != nil:
		f.Kind = Error
		j.reply(f, v)
	case f.Method != "" && f.ID != nil:
		f.Kind = Request
		j.request(f, v)
	case f.Method != "":
		f.Kind = Notification
		j.notification(f, v)
	case f.ID != nil:
		j.find(f.Revision, "a reply with neither result nor error: "+quoteLine(raw), "jsonrpc.response.result-or-error")
		f.Kind = Error
		j.reply(f, v)
	default:
		j.find(f.Revision, "a JSON object on standard output that is no message: "+quoteLine(raw), "framing.stdout-only-mcp")
	}
	return f
}

// reply judges the id, then the content, of a result or error.
func (j *Judge) reply(f *Frame, v *strictjson.Value) {
	if f.ID == nil || f.ID.Is(strictjson.Null) {
		j.replyWithoutID(f, v)
		return
	}
	r := j.requests[Key(f.ID)]
	if r == nil {
		if !j.allowed[Key(f.ID)] {
			j.strangeID(f)
		}
		return
	}
	f.Answers, f.Revision = r.method, r.revision
	if r.claimless && f.Kind == Result && transcript.Modern(r.revision) {
		f.Revision = newestHandshake
	}
	switch {
	case r.answered && j.unreadable > 0:
		j.unreadable-- // an id that was in use twice
	case r.answered:
		j.find(f.Revision, fmt.Sprintf("a second reply to %s (id %s)", orNone(r.method), f.ID.Raw), "jsonrpc.response.exactly-one")
	case r.cancelled > 0 && j.answeredOf > r.cancelled && r.listen:
		j.find(f.Revision, fmt.Sprintf("a reply to subscriptions/listen (id %s) after it was cancelled", f.ID.Raw), "subs.cancel.no-result")
	case r.listen && f.Kind == Result && !r.acked:
		j.find(f.Revision, fmt.Sprintf("the result of subscriptions/listen (id %s) before its acknowledgement", f.ID.Raw), "subs.ack.before-result")
	case r.cancelled > 0 && j.answeredOf > r.cancelled:
		// Something sent after the cancel is already answered, so the cancel was read.
		j.find(f.Revision, fmt.Sprintf("a reply to %s (id %s), although it was cancelled and the server had already answered a request sent after the cancel", r.method, f.ID.Raw),
			"cancel.server.nothing-further", "cancel.server.no-response")
	}
	r.answered = true
	r.handle = !r.modern && v.At("result", "task").Is(strictjson.Object)
	j.answeredOf = max(j.answeredOf, r.sent)
	j.open = slices.DeleteFunc(j.open, func(o *request) bool { return o == r })
	if r.method == "initialize" && f.Kind == Result && !r.modern && j.session == "" {
		if version := v.At("result", "protocolVersion").Str(); known(version) {
			j.session, f.Revision = version, version
			j.serverCaps = v.At("result", "capabilities")
		}
	}
	j.content(f, v, r)
}

// replyWithoutID accepts an error without an id, or with a null id, as often as
// lines were sent whose id could not be read.
func (j *Judge) replyWithoutID(f *Frame, v *strictjson.Value) {
	switch {
	case f.Kind == Result:
		j.find(f.Revision, "a result without an id: "+quoteLine(f.Raw), "jsonrpc.id.echoed")
	case j.unreadable > 0:
		j.unreadable--
		j.errorShape(f, v)
	default:
		j.find(f.Revision, "an error without an id, although every line sent had a readable one or was a notification: "+quoteLine(f.Raw),
			"jsonrpc.error.id-echoed", "jsonrpc.notification.no-response")
	}
}

// strangeID explains a reply whose id was never sent.
func (j *Judge) strangeID(f *Frame) {
	for _, r := range j.requests {
		have, sent := string(f.ID.Raw), showKey(r.key)
		switch {
		case r.answered:
		case strings.Trim(have, `"`) == strings.Trim(sent, `"`):
			j.find(r.revision, fmt.Sprintf("the id %s came back as %s", sent, have), "jsonrpc.id.type-preserved", "jsonrpc.id.echoed")
			r.answered = true
			return
		case len(sent) > 15 && len(have) > 15 && have[:12] == sent[:12]:
			j.find(r.revision, fmt.Sprintf("the id %s came back as %s: it lost precision", sent, have), "jsonrpc.id.large-integer", "jsonrpc.id.echoed")
			r.answered = true
			return
		}
	}
	if n, ok := f.ID.Int(); !f.ID.Is(strictjson.String) && !ok {
		j.find(f.Revision, fmt.Sprintf("the id %s of a reply is neither a string nor an integer %v", f.ID.Raw, n), "jsonrpc.id.echoed")
		return
	}
	j.find(f.Revision, fmt.Sprintf("a reply with the id %s, which no request had", f.ID.Raw), "jsonrpc.id.echoed")
}

// content holds a reply to the schema of its revision, after the rules that
// have an id of their own.
func (j *Judge) content(f *Frame, v *strictjson.Value, r *request) {
	if f.Kind == Error {
		j.errorShape(f, v)
		return
	}
	if result := v.Get("result"); !result.Is(strictjson.Object) {
		j.find(f.Revision, fmt.Sprintf("the result of %s is %s, not an object", r.method, result.Raw), "jsonrpc.response.result-object")
		return
	}
	if r.modern && v.At("result", "resultType") == nil {
		j.find(f.Revision, fmt.Sprintf("the result of %s has no resultType", r.method), "meta.result-type.present")
		return
	}
	set := schemas(f.Revision)
	if set == nil || r.invalid || r.unclaimed {
		return
	}
	if err := set.Response(r.method, f.Raw); err != nil {
		j.schema(f, r.method, err)
		return
	}
	if !r.modern {
		j.newerMembers(f, r.method, set)
	}
}

// newerMembers warns about what only later revisions have: a peer that agreed
// on an older one cannot know it.
func (j *Judge) newerMembers(f *Frame, method string, set *schema.Set) {
	result := f.Value.Get("result").Raw
	for _, path := range set.Newer(set.ResultDefinition(method, result), result) {
		rule := "schema.legacy-keys.hidden"
		if path == "resultType" || path == "ttlMs" || path == "cacheScope" || strings.HasPrefix(path, "_meta") {
			rule = "versioning.era.legacy-shape"
		}
		j.find(f.Revision, fmt.Sprintf("the result of %s has %s, which %s does not know", method, path, f.Revision), rule)
	}
}

func (j *Judge) schema(f *Frame, what string, err error) {
	var violation *schema.Violation
	if !errors.As(err, &violation) {
		return // unknown messages are judged where they are recognised
	}
	j.find(f.Revision, fmt.Sprintf("the %s for %s breaks the schema of %s (%s): %s", kindName(f.Kind), what, violation.Revision, violation.Definition, strings.Join(violation.Problems, "; ")),
		"framing.stdout-schema-valid")
}

func kindName(k Kind) string {
	return [...]string{"line", "request", "notification", "result", "error", "batch"}[k]
}

func (j *Judge) errorShape(f *Frame, v *strictjson.Value) {
	failure := v.Get("error")
	code, plain := failure.Get("code").Int()
	switch {
	case !failure.Is(strictjson.Object) || !failure.Get("message").Is(strictjson.String) || failure.Get("code") == nil:
		j.find(f.Revision, "an error without integer code and string message: "+quoteLine(f.Raw), "jsonrpc.error.shape")
		return
	case !plain:
		j.find(f.Revision, fmt.Sprintf("the error code %s is no integer", failure.Get("code").Raw), "jsonrpc.error.code-integer", "jsonrpc.error.shape")
		return
	}
	if c := code.Int64(); code.IsInt64() && transcript.Modern(f.Revision) {
		j.modernCode(f, c)
	}
	r := j.requests[Key(f.ID)]
	if set := schemas(f.Revision); set != nil && (r == nil || !r.invalid) {
		j.schema(f, orNone(f.Answers), set.ErrorResponse(f.Raw))
	}
}

func (j *Judge) modernCode(f *Frame, code int64) {
	switch {
	case code == -32002:
		j.find(f.Revision, "the retired error code -32002", "jsonrpc.codes.32002-retired")
	case code == -32042:
		j.find(f.Revision, "the retired error code -32042", "jsonrpc.codes.32042-retired")
	case code == -32020:
		j.find(f.Revision, "the error code -32020, which speaks of HTTP headers, over stdio", "jsonrpc.codes.defined-meaning-only")
	case code <= -32023 && code >= -32099:
		j.find(f.Revision, fmt.Sprintf("the error code %d, which is reserved and undefined", code), "jsonrpc.codes.no-undefined-reserved")
	case code <= -32000 && code >= -32019:
		j.find(f.Revision, fmt.Sprintf("the error code %d, from a range new servers stay away from", code), "jsonrpc.codes.legacy-range-avoid")
	}
}

func quoteLine(line []byte) string {
	const limit = 200
	if len(line) > limit {
		return fmt.Sprintf("%q… (%d bytes)", line[:limit], len(line))
	}
	return fmt.Sprintf("%q", line)
}
