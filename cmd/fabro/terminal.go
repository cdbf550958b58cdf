package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabro-mcp/internal/mcpclient"
	"fabro-mcp/tools/plain"
)

// terminal asks the person who typed the command.
type terminal struct {
	in  io.Reader
	out io.Writer
}

// field is one member of a requested schema, in the shapes that MCP allows.
type field struct {
	Type    string   `json:"type"`
	Title   string   `json:"title"`
	Enum    []string `json:"enum"`
	Names   []string `json:"enumNames"`
	OneOf   []choice `json:"oneOf"`
	Items   *field   `json:"items"`
	AnyOf   []choice `json:"anyOf"`
	Default any      `json:"default"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// choices are the values to choose from, with what a person reads.
func (f field) choices() []choice {
	if f.Items != nil {
		return f.Items.choices()
	}
	out := append(slices.Clone(f.OneOf), f.AnyOf...)
	for i, v := range f.Enum {
		c := choice{Const: v, Title: v}
		if i < len(f.Names) {
			c.Title = f.Names[i]
		}
		out = append(out, c)
	}
	return out
}

// answer shows a question and reads one line for each of its fields. An empty
// line declines the whole question.
func (t terminal) answer(_ context.Context, q mcpclient.Question) (mcpclient.Answer, error) {
	var schema struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	if err := json.Unmarshal(q.Schema, &schema); err != nil {
		return mcpclient.Answer{}, fmt.Errorf("the server's form cannot be read: %w", err)
	}
	fmt.Fprintf(t.out, "\n%s\n", plain.Clean(q.Message))
	lines := bufio.NewScanner(t.in)
	content := map[string]any{}
	names := slices.Clone(schema.Required)
	for name := range schema.Properties {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		value, err := t.ask(lines, name, schema.Properties[name])
		if err != nil {
			return mcpclient.Answer{}, err
		}
		if value == nil && slices.Contains(schema.Required, name) {
			return mcpclient.Answer{Action: "decline"}, nil
		}
		if value != nil {
			content[name] = value
		}
	}
	return mcpclient.Answer{Action: "accept", Content: content}, nil
}

// ask reads one value, again while it does not fit. Nil means none was given.
func (t terminal) ask(lines *bufio.Scanner, name string, f field) (any, error) {
	choices := f.choices()
	for i, c := range choices {
		fmt.Fprintf(t.out, "  %d) %s\n", i+1, plain.Line(c.Title, 500))
	}
	label := name
	if f.Title != "" {
		label = f.Title
	}
	for {
		fmt.Fprintf(t.out, "%s%s: ", plain.Line(label, 500), hint(f, len(choices)))
		if !lines.Scan() {
			return nil, lines.Err()
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			return nil, nil
		}
		if value, ok := f.parse(text, choices); ok {
			return value, nil
		}
		fmt.Fprintf(t.out, "%q does not fit. ", text)
	}
}

func hint(f field, choices int) string {
	switch {
	case f.Type == "array":
		return fmt.Sprintf(" (numbers 1 to %d, separated by blanks)", choices)
	case choices > 0:
		return fmt.Sprintf(" (1 to %d)", choices)
	case f.Type == "boolean":
		return " (y/n)"
	}
	return ""
}

func (f field) parse(text string, choices []choice) (any, bool) {
	switch {
	case f.Type == "array":
		picked := []string{}
		for _, word := range strings.Fields(text) {
			c, ok := pick(word, choices)
			if !ok {
				return nil, false
			}
			picked = append(picked, c)
		}
		return picked, true
	case len(choices) > 0:
		c, ok := pick(text, choices)
		return c, ok
	case f.Type == "boolean":
		switch strings.ToLower(text) {
		case "y", "yes":
			return true, true
		case "n", "no":
			return false, true
		}
		return nil, false
	case f.Type == "integer", f.Type == "number":
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	}
	return text, true
}

// pick finds a choice by its number, its value or its title.
func pick(word string, choices []choice) (string, bool) {
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1].Const, true
	}
	for _, c := range choices {
		if strings.EqualFold(word, c.Const) || strings.EqualFold(word, c.Title) {
			return c.Const, true
		}
	}
	return "", false
}
