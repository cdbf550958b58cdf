package runs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// bundle is what a manifest says about what to run, with its keys checked.
func bundle(m *wire.RunManifest) (workflow.Bundle, error) {
	b := workflow.Bundle{Workflows: make(map[string]workflow.BundleWorkflow, len(m.Workflows))}
	if m.Version != wire.ManifestVersion {
		return b, badRequest("unsupported manifest version %d", m.Version)
	}
	var err error
	if b.Target, err = workflow.CleanKey(m.Target.Path); err != nil {
		return b, badRequest("invalid manifest target path: %v", err)
	}
	for key, w := range m.Workflows {
		clean, err := workflow.CleanKey(key)
		if err != nil {
			return b, badRequest("invalid manifest workflow key: %v", err)
		}
		bw := workflow.BundleWorkflow{Source: w.Source, Files: make(map[string]string, len(w.Files)), Refs: make(map[string]workflow.FileRef, len(w.Files))}
		if w.Config != nil {
			bw.ConfigPath, bw.ConfigSource = w.Config.Path, w.Config.Source
		}
		for key, f := range w.Files {
			clean, err := workflow.CleanKey(key)
			if err != nil {
				return b, badRequest("invalid manifest file key: %v", err)
			}
			bw.Files[clean] = f.Content
			ref := workflow.FileRef{Type: f.Ref.Type, Original: f.Ref.Original}
			if f.Ref.From != nil {
				ref.From = *f.Ref.From
			}
			bw.Refs[clean] = ref
		}
		b.Workflows[clean] = bw
	}
	if _, ok := b.Workflows[b.Target]; !ok {
		return b, badRequest("manifest target path is missing from workflows map")
	}
	for _, c := range m.Configs {
		bc := workflow.BundleConfig{Type: c.Type}
		if c.Path != nil {
			bc.Path = *c.Path
		}
		if c.Source != nil {
			bc.Source = *c.Source
		}
		b.Configs = append(b.Configs, bc)
	}
	if m.Goal != nil {
		b.Goal = &workflow.BundleGoal{Type: m.Goal.Type, Text: m.Goal.Text}
	}
	if a := m.Args; a != nil {
		b.Args = workflow.Args{DryRun: a.DryRun, AutoApprove: a.AutoApprove, PreserveSandbox: a.PreserveSandbox, Model: a.Model, Provider: a.Provider,
			Environment: a.Environment, Labels: a.Label, Inputs: a.Input}
	}
	return b, nil
}

// compile turns a manifest into a workflow that can run. With strict, undefined variables are errors; the diagnostics are
// returned in any case. A refusal's text begins with Fabro's "Validation failed" and goes on with the first error.
func compile(m *wire.RunManifest, vars map[string]string, strict bool) (*workflow.Compiled, []workflow.Diagnostic, error) {
	b, err := bundle(m)
	if err != nil {
		return nil, nil, err
	}
	c, diagnostics, err := workflow.Compile(b, workflow.CompileOptions{StrictVariables: strict, Vars: vars})
	if err != nil {
		var bad *workflow.SettingsError
		if errors.As(err, &bad) {
			return nil, diagnostics, badRequest("%v", err)
		}
		return nil, diagnostics, badRequest("Validation failed: %v", err)
	}
	return c, diagnostics, nil
}

// firstError says what is wrong with a workflow, or returns nil.
func firstError(diagnostics []workflow.Diagnostic) error {
	errs := 0
	var first *workflow.Diagnostic
	for i := range diagnostics {
		if diagnostics[i].Severity == workflow.SeverityError {
			if errs++; first == nil {
				first = &diagnostics[i]
			}
		}
	}
	if first == nil {
		return nil
	}
	var b strings.Builder
	b.WriteString("Validation failed: ")
	if first.SourcePath != "" && first.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", first.SourcePath, first.Line, first.Column)
	}
	fmt.Fprintf(&b, "%s (%s)", first.Message, first.Rule)
	if first.Fix != "" {
		fmt.Fprintf(&b, "; %s", first.Fix)
	}
	if errs > 1 {
		fmt.Fprintf(&b, " (and %d more)", errs-1)
	}
	return &Refusal{Status: http.StatusBadRequest, Detail: b.String()}
}

// Diagnostics turns findings into their wire form.
func Diagnostics(list []workflow.Diagnostic) []wire.Diagnostic {
	out := make([]wire.Diagnostic, 0, len(list))
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	number := func(n int) *int {
		if n == 0 {
			return nil
		}
		return &n
	}
	for _, d := range list {
		w := wire.Diagnostic{Rule: d.Rule, Severity: d.Severity, Message: d.Message, NodeID: text(d.NodeID), Edge: d.Edge, Fix: text(d.Fix),
			SourcePath: text(d.SourcePath), Line: number(d.Line), Column: number(d.Column)}
		if d.SpanLen > 0 {
			w.SpanStart, w.SpanLen = wire.Ptr(int64(d.SpanStart)), wire.Ptr(int64(d.SpanLen))
		}
		for _, r := range d.Related {
			w.Related = append(w.Related, wire.RelatedDiagnostic{Message: r.Message, SourcePath: text(r.SourcePath), Line: number(r.Line), Column: number(r.Column)})
		}
		out = append(out, w)
	}
	return out
}

// Check is what a look at a manifest found.
type Check struct {
	Compiled    *workflow.Compiled
	Diagnostics []workflow.Diagnostic
	Summary     wire.WorkflowSummary
	OK          bool
}

// Check compiles a manifest without running it.
func (m *Manager) Check(ctx context.Context, manifest *wire.RunManifest, strict bool) (*Check, error) {
	vars, err := m.variables(ctx)
	if err != nil {
		return nil, err
	}
	c, diagnostics, err := compile(manifest, vars, strict)
	if err != nil {
		return nil, err
	}
	sum := wire.WorkflowSummary{Name: c.Graph.Name, GraphPath: wire.Ptr(manifest.Target.Path), Nodes: len(c.Graph.Nodes), Edges: len(c.Graph.Edges), Goal: c.Goal,
		Diagnostics: Diagnostics(diagnostics)}
	if c.Name != "" {
		sum.Name = c.Name
	}
	return &Check{Compiled: c, Diagnostics: diagnostics, Summary: sum, OK: !workflow.HasErrors(diagnostics)}, nil
}

func dryRun(c *workflow.Compiled) bool      { return c.Settings.DryRun() }
func autoApprove(c *workflow.Compiled) bool { return c.Settings.AutoApprove() }

// cleanTitle checks a title: one line of 1 to 100 characters without control characters, once trimmed.
func cleanTitle(title string) (string, error) {
	title = strings.TrimSpace(title)
	switch {
	case title == "":
		return "", badRequest("Run title must not be empty.")
	case utf8.RuneCountInString(title) > wire.MaxTitleLength:
		return "", badRequest("Run title must be at most %d characters.", wire.MaxTitleLength)
	case strings.ContainsFunc(title, unicode.IsControl):
		return "", badRequest("Run title must be a single line without control characters.")
	}
	return title, nil
}

// titleOf makes a title from a goal: its first line without leading #s and "Plan:", cut to 97 characters and "..." when
// it is longer than 100.
func titleOf(goal string) string {
	for line := range strings.Lines(goal) {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimLeft(line, "#"))
		line = strings.TrimSpace(strings.TrimPrefix(line, "Plan:"))
		if line == "" {
			continue
		}
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, line)
		if runes := []rune(line); len(runes) > wire.MaxTitleLength {
			return string(runes[:wire.MaxTitleLength-3]) + "..."
		}
		return line
	}
	return "Untitled run"
}
