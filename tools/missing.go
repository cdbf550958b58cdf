package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
	"fabro-mcp/tools/args"
	"fabro-mcp/tools/plain"
)

// errNoCandidates: a missing argument is none that a person could choose, or there
// is nothing to choose from.
var errNoCandidates = errors.New("nothing to choose from")

// errNotChosen: the person did not choose.
type errNotChosen struct{ what string }

func (e *errNotChosen) Error() string {
	return fmt.Sprintf("The person chose no %s, so nothing was done. Ask them what they want, or pass the argument.", e.what)
}

// maxCandidates bounds the choices of one form.
const maxCandidates = 20

// chooseFor asks the person for one of several candidates. key names the missing
// argument; a choice made in an earlier round of the same call is kept.
func (r *request) chooseFor(ctx context.Context, key, what, message string, candidates []formChoice) (string, error) {
	if value, done := r.state.Chosen[key]; done {
		return value, nil
	}
	// A repeated call sees the candidates of the first, whatever happened since.
	if offered, again := r.state.Offered[key]; again {
		candidates = offered
	}
	if len(candidates) == 0 {
		return "", errNoCandidates
	}
	if r.state.Offered == nil {
		r.state.Offered = map[string][]formChoice{}
	}
	r.state.Offered[key] = candidates
	schema := formSchema{Type: "object", Required: []string{"choice"}, Properties: map[string]formProperty{
		"choice": {Type: "string", Title: strings.ToUpper(what[:1]) + what[1:], OneOf: candidates},
	}}
	raw, err := schema.raw()
	if err != nil {
		return "", err
	}
	answers, err := r.ask(ctx, protocol.InputRequest{Key: key, Form: &protocol.ElicitForm{Message: message, Schema: raw}})
	switch {
	case errors.Is(err, errCannotAsk):
		return "", errNoCandidates
	case errors.Is(err, errUnanswered):
		return "", &errNotChosen{what}
	case errors.Is(err, errCapped), errors.Is(err, errAskFailed):
		return "", fmt.Errorf("%w. No %s was chosen, so nothing was done; it can be passed as an argument, too", err, what)
	case err != nil:
		return "", err
	}
	answer := answers[key].Elicit
	if answer == nil || answer.Action != protocol.ActionAccept {
		return "", &errNotChosen{what}
	}
	chosen, _ := answer.Content["choice"].(string)
	for _, c := range candidates {
		if c.Const == chosen {
			if r.state.Chosen == nil {
				r.state.Chosen = map[string]string{}
			}
			r.state.Chosen[key] = chosen
			return chosen, nil
		}
	}
	return "", &errNotChosen{what}
}

// askMissing gets a missing argument from the person: path is the argument.
func (r *request) askMissing(ctx context.Context, path string, arguments json.RawMessage) (string, error) {
	key := "argument:" + path
	switch {
	case path == "run_id" || path == "run_ids":
		candidates, err := r.runCandidates(ctx, arguments)
		if err != nil {
			return "", err
		}
		return r.chooseFor(ctx, key, "run", "Which run is meant for "+r.tool.title+"?", candidates)
	case r.tool.name == nameCreate && (path == "runs" || strings.HasSuffix(path, ".workflow")):
		return r.chooseFor(ctx, key, "workflow", "Which workflow should run?", r.workflowCandidates(specMember(arguments, path, "cwd")))
	}
	return "", errNoCandidates
}

// runCandidates are the newest runs; for questions and answers only those that
// wait for one.
func (r *request) runCandidates(ctx context.Context, arguments json.RawMessage) ([]formChoice, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	options := fabroapi.ListRunsOptions{Limit: maxCandidates}
	action := memberText(arguments, "action")
	switch {
	case r.tool.name == nameInteract && (action == actAnswer || action == actQuestions):
		options.Columns = []string{wire.ColumnBlocked}
	case r.tool.name == nameGather:
		options.Columns = []string{wire.ColumnPending, wire.ColumnRunnable, wire.ColumnInitializing, wire.ColumnRunning, wire.ColumnBlocked}
	}
	page, err := client.ListRuns(ctx, options)
	if err != nil {
		return nil, err
	}
	var out []formChoice
	for i := range page.Data {
		run := &page.Data[i]
		title := fmt.Sprintf("%s, %s, %s", workflowLabel(run), run.Lifecycle.Status, run.ID)
		if goal := plain.Line(run.Goal, 60); goal != "" {
			title += ": " + goal
		}
		out = append(out, formChoice{Const: run.ID, Title: title})
	}
	return out, nil
}

func (r *request) workflowCandidates(cwd string) []formChoice {
	var out []formChoice
	for _, w := range r.listWorkflows(cwd) {
		if len(out) == maxCandidates {
			break
		}
		title := w.Name
		if w.Description != "" {
			title += ": " + plain.Line(w.Description, 80)
		}
		out = append(out, formChoice{Const: w.Name, Title: title})
	}
	return out
}

// withMissing puts a chosen value into the arguments, in the shape that its path
// asks for.
func withMissing(arguments json.RawMessage, path, value string) (json.RawMessage, error) {
	quoted, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	switch {
	case path == "run_ids":
		return args.Set(arguments, path, append(append([]byte("["), quoted...), ']'))
	case path == "runs":
		return args.Set(arguments, path, append(append([]byte(`[{"workflow":`), quoted...), '}', ']'))
	}
	index, member, nested := specPath(path)
	if !nested {
		return args.Set(arguments, path, quoted)
	}
	items, err := specItems(arguments)
	if err != nil || index >= len(items) {
		return nil, args.Errorf("%s is required", path)
	}
	if items[index], err = args.Set(items[index], member, quoted); err != nil {
		return nil, err
	}
	list, err := json.Marshal(items)
	if err != nil {
		return nil, err
	}
	return args.Set(arguments, "runs", list)
}

// specPath splits "runs[2].workflow".
func specPath(path string) (index int, member string, ok bool) {
	rest, ok := strings.CutPrefix(path, "runs[")
	if !ok {
		return 0, "", false
	}
	number, member, ok := strings.Cut(rest, "].")
	index, err := strconv.Atoi(number)
	return index, member, ok && err == nil
}

func specItems(arguments json.RawMessage) ([]json.RawMessage, error) {
	members, err := args.Members(arguments)
	if err != nil {
		return nil, err
	}
	list, _ := members.Get("runs")
	var items []json.RawMessage
	return items, json.Unmarshal(list, &items)
}

// specMember reads another text member of the spec that path points into.
func specMember(arguments json.RawMessage, path, member string) string {
	index, _, ok := specPath(path)
	if !ok {
		return ""
	}
	items, err := specItems(arguments)
	if err != nil || index >= len(items) {
		return ""
	}
	return memberText(items[index], member)
}

// memberText reads a string member of an object, "" where there is none.
func memberText(object json.RawMessage, name string) string {
	members, err := args.Members(object)
	if err != nil {
		return ""
	}
	value, _ := members.Get(name)
	if args.Kind(value) != "string" {
		return ""
	}
	text, err := args.String(name, value)
	if err != nil {
		return ""
	}
	return text
}
