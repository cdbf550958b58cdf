package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// structuredWindow is how much of the end of an output is searched for JSON, in bytes. Where that is too expensive,
	// only what narrowWindow says is.
	structuredWindow = 1 << 20
	narrowWindow     = 4 << 10

	// structuredBudget bounds the bytes looked at in one search: text full of opening braces must not cost its square.
	structuredBudget = 8 << 20

	// attemptCost is what it takes to look at a brace at all, in bytes.
	attemptCost = 64
)

// routing is the JSON object with which a stage says where the run goes and what the context learns.
type routing struct {
	PreferredLabel string         `json:"preferred_next_label"`
	Outcome        *string        `json:"outcome"`
	FailureReason  string         `json:"failure_reason"`
	SuggestedNext  []string       `json:"suggested_next_ids"`
	ContextUpdates map[string]any `json:"context_updates"`
	JumpTo         string         `json:"jump_to_node"`
}

var routingKeys = []string{"preferred_next_label", "outcome", "failure_reason", "suggested_next_ids", "context_updates"}

// structured applies the node's output_schema to the text a stage produced, and returns what is wrong with it, if
// anything. Without output_schema a command's text is never looked at; a model's may carry routing, and need not.
func (s *stage) structured(o *Outcome, text string, model bool) (problem string) {
	schema, ok := s.node.Attrs.String("output_schema")
	switch {
	case ok && schema != "routing":
		object := lastObject(text, nil)
		if object == nil {
			return "The output holds no JSON object for output_schema"
		}
		if err := checkSchema([]byte(schema), object); err != nil {
			return "The output does not satisfy output_schema: " + err.Error()
		}
		value, err := decodeValue(object)
		if err != nil {
			return "The output's JSON cannot be read: " + err.Error()
		}
		o.set("output."+s.node.ID, value)
		return ""
	case !ok && !model:
		return ""
	}
	object := lastObject(text, routingKeys)
	if object == nil {
		if ok {
			return "The output holds no JSON object with any of " + strings.Join(routingKeys, ", ")
		}
		return ""
	}
	err := applyRouting(o, object)
	if err != nil && ok {
		return "The output's routing JSON is not valid: " + err.Error()
	}
	return ""
}

// outcomeNames are the words that routing JSON may use for an outcome. "retry" asks for another attempt.
var outcomeNames = map[string]Status{
	"succeeded": Succeeded, "success": Succeeded,
	"partially_succeeded": PartiallySucceeded, "partial_success": PartiallySucceeded,
	"failed": Failed, "fail": Failed, "retry": Failed,
	"skipped": Skipped,
}

func applyRouting(o *Outcome, object json.RawMessage) error {
	var r routing
	if err := json.Unmarshal(object, &r); err != nil {
		return err
	}
	status := o.Status
	if r.Outcome != nil {
		var known bool
		if status, known = outcomeNames[*r.Outcome]; !known {
			return fmt.Errorf("outcome %q is none of succeeded, partially_succeeded, failed, skipped, retry", *r.Outcome)
		}
	}
	if updates, ok := plainNumbersOf(object); ok {
		for key, value := range updates {
			o.set(key, value)
		}
	}
	o.Status = status
	if status == Failed {
		reason := r.FailureReason
		if reason == "" {
			reason = "The stage reported failure"
		}
		o.Failure = failureFromText(reason)
		o.retryRequested = *r.Outcome == "retry"
	}
	if r.PreferredLabel != "" {
		o.PreferredLabel = r.PreferredLabel
	}
	if len(r.SuggestedNext) > 0 {
		o.SuggestedNext = r.SuggestedNext
	}
	o.JumpTo = r.JumpTo
	return nil
}

// plainNumbersOf reads the context updates again, with whole numbers as such.
func plainNumbersOf(object json.RawMessage) (map[string]any, bool) {
	value, err := decodeValue(object)
	if err != nil {
		return nil, false
	}
	members, _ := value.(map[string]any)
	updates, ok := members["context_updates"].(map[string]any)
	return updates, ok
}

// lastObject finds the last JSON object in text that stands by itself (not inside another one) and has any of the keys,
// or any at all when keys is empty.
func lastObject(text string, keys []string) json.RawMessage {
	for _, window := range []int{structuredWindow, narrowWindow} {
		object, complete := searchObject(text[max(len(text)-window, 0):], keys)
		if complete || len(text) <= narrowWindow {
			return object
		}
	}
	return nil
}

// searchObject goes through text from its beginning. It is not complete when the budget ends before the text.
func searchObject(text string, keys []string) (last json.RawMessage, complete bool) {
	budget := structuredBudget
	at := 0
	for {
		next := strings.IndexByte(text[at:], '{')
		if next < 0 {
			return last, true
		}
		at += next
		if budget <= 0 {
			return last, false
		}
		length, looked, ok := objectAt(text[at:])
		budget -= looked + attemptCost
		if !ok {
			at++
			continue
		}
		if object := json.RawMessage(text[at : at+length]); hasAny(object, keys) {
			last = object
		}
		at += length
	}
}

// objectAt reports whether a JSON object begins text, how long it is, and how much was looked at to find out.
func objectAt(text string) (length, looked int, ok bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	var object json.RawMessage
	err := dec.Decode(&object)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return int(dec.InputOffset()), len(object), true
	case errors.As(err, &syntax):
		return 0, int(syntax.Offset), false
	}
	return 0, len(text), false // it never ended
}

func hasAny(object json.RawMessage, keys []string) bool {
	if len(keys) == 0 {
		return true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return false
	}
	for _, key := range keys {
		if _, ok := members[key]; ok {
			return true
		}
	}
	return false
}
