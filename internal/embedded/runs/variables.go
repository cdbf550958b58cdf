package runs

import (
	"context"
	"encoding/json"
	"net/http"
)

var errNoVariable = &Refusal{Status: http.StatusNotFound, Detail: "Variable not found."}

// isVariableName reports whether a name has letters, digits and _ only and does not begin with a digit.
func isVariableName(name string) bool {
	for i, c := range name {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Variable returns one variable.
func (m *Manager) Variable(ctx context.Context, name string) (*Variable, error) {
	list, err := m.Variables(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, errNoVariable
}

// CreateVariable makes a variable that is not there yet.
func (m *Manager) CreateVariable(ctx context.Context, name, value string, description *string) (*Variable, error) {
	if !isVariableName(name) {
		return nil, badRequest("Invalid variable name %q: letters, digits and _, not beginning with a digit.", name)
	}
	if _, err := m.Variable(ctx, name); err == nil {
		return nil, conflict("Variable %s already exists.", name)
	}
	now := m.cfg.Now().UTC()
	v := &Variable{Name: name, Value: value, CreatedAt: now, UpdatedAt: now}
	return v, m.writeVariable(v, description)
}

// UpdateVariable changes a variable.
func (m *Manager) UpdateVariable(ctx context.Context, name, value string, description *string) (*Variable, error) {
	v, err := m.Variable(ctx, name)
	if err != nil {
		return nil, err
	}
	v.Value, v.UpdatedAt = value, m.cfg.Now().UTC()
	return v, m.writeVariable(v, description)
}

func (m *Manager) writeVariable(v *Variable, description *string) error {
	if description != nil {
		v.Description = *description
	}
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = m.store.SetVariable(v.Name, doc)
	return err
}

// DeleteVariable removes a variable.
func (m *Manager) DeleteVariable(ctx context.Context, name string) error {
	existed, err := m.store.SetVariable(name, nil)
	if err == nil && !existed {
		err = errNoVariable
	}
	return err
}
