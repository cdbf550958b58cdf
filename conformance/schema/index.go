package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result types that the revisions know beside the plain result. taskHandle is not on the
// wire: it stands for the result of 2025-11-25 that holds a task instead of the answer.
const (
	inputRequired = "input_required"
	taskCreated   = "task"
	taskHandle    = "\x00task"
)

// newIndex reads the unions of a revision's files.
func newIndex(names []string, parsed []map[string]json.RawMessage) (index, error) {
	ix := index{
		files:         map[string]string{},
		definitions:   map[string]json.RawMessage{},
		requests:      map[Side]map[string]string{Client: {}, Server: {}},
		notifications: map[Side]map[string]string{Client: {}, Server: {}},
		results:       map[string]map[string]string{},
	}
	for i, definitions := range parsed {
		for name, text := range definitions {
			if unions[name] == nil {
				ix.files[name], ix.definitions[name] = names[i], text
			}
		}
	}
	for _, definitions := range parsed {
		for name, read := range unions {
			if definitions[name] == nil {
				continue
			}
			members, err := unionMembers(definitions[name])
			if err != nil {
				return index{}, fmt.Errorf("%s: %w", name, err)
			}
			for _, member := range members {
				if err := read(&ix, member); err != nil {
					return index{}, fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return ix, nil
}

// unions maps the four unions to what is done with each of their members.
var unions = map[string]func(*index, string) error{
	"ClientRequest":      func(ix *index, m string) error { return ix.addRequest(Client, m) },
	"ServerRequest":      func(ix *index, m string) error { return ix.addRequest(Server, m) },
	"ClientNotification": func(ix *index, m string) error { return ix.addNotification(Client, m) },
	"ServerNotification": func(ix *index, m string) error { return ix.addNotification(Server, m) },
}

func (ix *index) addRequest(from Side, definition string) error {
	stem, ok := strings.CutSuffix(definition, "Request")
	method, err := ix.method(definition)
	if !ok || err != nil {
		return fmt.Errorf("%s is no request: %w", definition, err)
	}
	ix.requests[from][method] = stem
	kinds := map[string]string{"": "EmptyResult"}
	if ix.files[stem+"Result"] != "" {
		kinds[""] = stem + "Result"
	}
	params := string(ix.definitions[stem+"RequestParams"])
	if strings.Contains(params, `"inputResponses"`) && strings.Contains(params, `"requestState"`) {
		kinds[inputRequired] = "InputRequiredResult"
	}
	if strings.Contains(params, `"task"`) {
		kinds[taskHandle] = "CreateTaskResult"
	}
	if method == "tools/call" && ix.files["CreateTaskResult"] != "" && kinds[taskHandle] == "" {
		kinds[taskCreated] = "CreateTaskResult" // the extension's, for the one method it supports
	}
	ix.results[method] = kinds
	return nil
}

func (ix *index) addNotification(from Side, definition string) error {
	method, err := ix.method(definition)
	if err != nil {
		return fmt.Errorf("%s is no notification: %w", definition, err)
	}
	ix.notifications[from][method] = definition
	return nil
}

// method reads the const that a request's or notification's definition gives its method.
func (ix *index) method(definition string) (string, error) {
	var d struct {
		Properties struct{ Method struct{ Const string } }
	}
	if err := json.Unmarshal(ix.definitions[definition], &d); err != nil {
		return "", err
	}
	if d.Properties.Method.Const == "" {
		return "", fmt.Errorf("%s names no method", definition)
	}
	return d.Properties.Method.Const, nil
}

func unionMembers(text json.RawMessage) ([]string, error) {
	var union struct {
		AnyOf []struct {
			Ref string `json:"$ref"`
		}
	}
	if err := json.Unmarshal(text, &union); err != nil {
		return nil, err
	}
	var names []string
	for _, alternative := range union.AnyOf {
		name, ok := strings.CutPrefix(alternative.Ref, "#/definitions/")
		if !ok {
			return nil, fmt.Errorf("alternative %q is no local reference", alternative.Ref)
		}
		names = append(names, name)
	}
	return names, nil
}
