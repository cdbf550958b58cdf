package fabroapi

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// ManifestSpec says which workflow to run and how.
type ManifestSpec struct {
	// Workflow is a selector: the name of a project's or the user's workflow, or
	// the path of a graph or a workflow.toml.
	Workflow string
	// Cwd is the directory selectors and relative paths start from; empty means
	// the process's. On a local server commands run there.
	Cwd      string
	ParentID string
	Title    string
	// Goal replaces the workflow's goal when it is not empty or HasGoal is set.
	Goal    string
	HasGoal bool
	// GoalFile is a file to read the goal from, relative to the working directory
	// that the settings say.
	GoalFile string
	// Inputs are strings, booleans, integers and floating point numbers.
	Inputs map[string]any
	Labels map[string]string
	// Marks are labels that the run gets besides those it has anyway: Labels or, where
	// there are none, those of its settings.
	Marks map[string]string
	// The booleans are overrides; nil leaves the settings alone, false undoes a
	// true in them.
	DryRun          *bool
	AutoApprove     *bool
	PreserveSandbox *bool
	Model           string
	Provider        string
	Environment     string
	// Roots, if any, are the only directories that Cwd and all files may be in.
	Roots []string
	// AgentCommand runs agent stages on the embedded server.
	AgentCommand []string
}

// ManifestError says that a workflow is not fit to run.
type ManifestError struct {
	// Diagnostics holds every finding, errors and others.
	Diagnostics []wire.Diagnostic

	text string
}

// Error shows the errors with file, line and column.
func (e *ManifestError) Error() string { return e.text }

// BuildManifest collects everything that a run needs from the disk of this
// machine: the graph, its settings, every file it refers to, the goal, and what
// git says about the working directory. Nothing is pushed anywhere. Of the user's
// settings only the tables that concern a run are taken along.
//
// The workflow is checked for what a client can judge; *ManifestError carries
// the findings. Which environments, models and variables there are is the
// server's to say.
func BuildManifest(ctx context.Context, env Environment, spec ManifestSpec) (*wire.RunManifest, error) {
	allowed, err := newRoots(spec.Roots)
	if err != nil {
		return nil, err
	}
	cwd, err := manifestCwd(spec.Cwd, allowed)
	if err != nil {
		return nil, err
	}
	args, err := manifestArgs(spec)
	if err != nil {
		return nil, err
	}
	home, err := filepath.Abs(env.Home())
	if err != nil {
		return nil, err
	}
	// A path is judged before anything is read there.
	if filepath.Ext(spec.Workflow) != "" {
		if err := allowed.check("workflow", underneath(cwd, spec.Workflow)); err != nil {
			return nil, err
		}
	}
	if filepath.IsAbs(spec.GoalFile) {
		if err := allowed.check("goal file", spec.GoalFile); err != nil {
			return nil, err
		}
	}
	location, err := workflow.Locate(spec.Workflow, cwd, home)
	if err != nil {
		return nil, manifestError(err)
	}
	if err := checkLocation(allowed, location); err != nil {
		return nil, err
	}
	options := workflow.BundleOptions{FabroHome: home, UserSettings: env.SettingsPath(), Args: args, GoalFile: spec.GoalFile}
	if spec.HasGoal || spec.Goal != "" {
		options.Goal = &spec.Goal
	}
	bundle, err := workflow.BundleFiles(location, cwd, options)
	if err != nil {
		return nil, manifestError(err)
	}
	if err := checkBundle(allowed, cwd, bundle); err != nil {
		return nil, err
	}
	diagnostics, err := workflow.CheckBundle(*bundle)
	if err != nil {
		return nil, manifestError(err)
	}
	if workflow.HasErrors(diagnostics) {
		return nil, findings(diagnostics)
	}
	manifest, err := wireManifest(cwd, bundle)
	if err != nil {
		return nil, err
	}
	if len(spec.Marks) > 0 {
		// Labels in the arguments replace those of the settings.
		labels := maps.Clone(bundle.Labels)
		maps.Copy(labels, spec.Marks)
		if args.Labels, err = labelArgs(labels); err != nil {
			return nil, err
		}
	}
	manifest.Args = wireArgs(args)
	manifest.Git = gitContext(ctx, bundle.WorkingDir, scmOrigin(settingsSources(bundle)...))
	manifest.AgentCommand = spec.AgentCommand
	if spec.ParentID != "" {
		manifest.ParentID = &spec.ParentID
	}
	if spec.Title != "" {
		manifest.Title = &spec.Title
	}
	return manifest, ctx.Err()
}

func manifestCwd(dir string, allowed roots) (string, error) {
	cwd, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	if !utf8.ValidString(cwd) {
		return "", fmt.Errorf("cwd %q has a name that is not UTF-8, which no run can be told of; rename the directory", cwd)
	}
	// Before anything is said about a directory, it has to be an allowed one.
	if err := allowed.check("cwd", cwd); err != nil {
		return "", err
	}
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		return "", fmt.Errorf("cwd %s is no directory; give an existing one", cwd)
	}
	return cwd, nil
}

func manifestArgs(spec ManifestSpec) (workflow.Args, error) {
	args := workflow.Args{
		DryRun: spec.DryRun, AutoApprove: spec.AutoApprove, PreserveSandbox: spec.PreserveSandbox,
		Model: spec.Model, Provider: spec.Provider, Environment: spec.Environment,
	}
	var err error
	if args.Inputs, err = inputArgs(spec.Inputs); err != nil {
		return args, err
	}
	args.Labels, err = labelArgs(spec.Labels)
	return args, err
}

func wireArgs(args workflow.Args) *wire.ManifestArgs {
	out := &wire.ManifestArgs{
		Model: args.Model, Provider: args.Provider, Environment: args.Environment,
		DryRun: args.DryRun, AutoApprove: args.AutoApprove, PreserveSandbox: args.PreserveSandbox,
		Label: args.Labels, Input: args.Inputs,
	}
	if out.Model == "" && out.Provider == "" && out.Environment == "" && out.DryRun == nil && out.AutoApprove == nil &&
		out.PreserveSandbox == nil && len(out.Label) == 0 && len(out.Input) == 0 {
		return nil
	}
	return out
}

func checkLocation(allowed roots, location workflow.Location) error {
	if err := allowed.check("workflow", location.Graph); err != nil {
		return err
	}
	if location.Config == "" {
		return nil
	}
	return allowed.check("workflow settings", location.Config)
}

// underneath is path seen from dir.
func underneath(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// checkBundle refuses a bundle that took anything from outside.
func checkBundle(allowed roots, cwd string, bundle *workflow.Bundle) error {
	if len(allowed) == 0 {
		return nil
	}
	if err := allowed.check("working directory", bundle.WorkingDir); err != nil {
		return err
	}
	if bundle.GoalPath != "" {
		if err := allowed.check("goal file", bundle.GoalPath); err != nil {
			return err
		}
	}
	for _, config := range bundle.Configs {
		if config.Type == workflow.ConfigProject {
			if err := allowed.check("project settings", config.Path); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(bundle.Workflows)) {
		w := bundle.Workflows[key]
		if err := allowed.check("workflow", underneath(cwd, key)); err != nil {
			return err
		}
		if w.ConfigPath != "" {
			if err := allowed.check("workflow settings", underneath(cwd, w.ConfigPath)); err != nil {
				return err
			}
		}
		for _, file := range slices.Sorted(maps.Keys(w.Files)) {
			if err := allowed.check("file", underneath(cwd, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// settingsSources are the settings files of a bundle, highest layer first.
func settingsSources(bundle *workflow.Bundle) []string {
	sources := []string{bundle.Workflows[bundle.Target].ConfigSource}
	for _, kind := range []string{workflow.ConfigProject, workflow.ConfigUser} {
		for _, config := range bundle.Configs {
			if config.Type == kind {
				sources = append(sources, config.Source)
			}
		}
	}
	return sources
}

func wireManifest(cwd string, bundle *workflow.Bundle) (*wire.RunManifest, error) {
	out := &wire.RunManifest{
		Version: wire.ManifestVersion, Cwd: cwd,
		Target:    wire.ManifestTarget{Path: bundle.Target},
		Workflows: map[string]wire.ManifestWorkflow{},
	}
	for key, w := range bundle.Workflows {
		entry := wire.ManifestWorkflow{Source: w.Source}
		if w.ConfigPath != "" {
			entry.Config = &wire.ManifestWorkflowConfig{Path: w.ConfigPath, Source: w.ConfigSource}
		}
		for file, content := range w.Files {
			if entry.Files == nil {
				entry.Files = map[string]wire.ManifestFile{}
			}
			ref := w.Refs[file]
			entry.Files[file] = wire.ManifestFile{Content: content, Ref: wire.ManifestFileRef{Type: ref.Type, Original: ref.Original, From: wire.Ptr(ref.From)}}
		}
		out.Workflows[key] = entry
	}
	for _, config := range bundle.Configs {
		source := config.Source
		if config.Type == workflow.ConfigUser {
			var err error
			if source, err = travellingSettings(config.Path, source); err != nil {
				return nil, err
			}
			if source == "" {
				continue
			}
		}
		out.Configs = append(out.Configs, wire.ManifestConfig{Type: config.Type, Path: wire.Ptr(config.Path), Source: wire.Ptr(source)})
	}
	if bundle.Goal != nil {
		out.Goal = &wire.ManifestGoal{Type: bundle.Goal.Type, Text: bundle.Goal.Text}
	}
	return out, nil
}

// manifestError turns an error about a place in a file into findings; others are
// sentences already.
func manifestError(err error) error {
	if list := workflow.DiagnosticsOf(err); len(list) > 0 {
		return findings(list)
	}
	return err
}

// maxShownFindings bounds the errors in the text of a ManifestError.
const maxShownFindings = 20

func findings(diagnostics []workflow.Diagnostic) error {
	e := &ManifestError{}
	var shown []workflow.Diagnostic
	for _, d := range diagnostics {
		e.Diagnostics = append(e.Diagnostics, wireDiagnostic(d))
		if d.Severity == workflow.SeverityError {
			shown = append(shown, d)
		}
	}
	count := len(shown)
	text := fmt.Sprintf("the workflow has %d errors", count)
	if count == 1 {
		text = "the workflow has an error"
	}
	e.text = text + "\n" + strings.TrimRight(workflow.FormatDiagnostics(shown[:min(count, maxShownFindings)]), "\n")
	if count > maxShownFindings {
		e.text += fmt.Sprintf("\n… and %d more", count-maxShownFindings)
	}
	return e
}

func wireDiagnostic(d workflow.Diagnostic) wire.Diagnostic {
	out := wire.Diagnostic{
		Rule: d.Rule, Severity: d.Severity, Message: d.Message, Edge: d.Edge,
		NodeID: optional(d.NodeID), Fix: optional(d.Fix), SourcePath: optional(d.SourcePath),
		Line: optional(d.Line), Column: optional(d.Column),
	}
	if d.SpanLen > 0 {
		out.SpanStart, out.SpanLen = wire.Ptr(int64(d.SpanStart)), wire.Ptr(int64(d.SpanLen))
	}
	for _, r := range d.Related {
		out.Related = append(out.Related, wire.RelatedDiagnostic{Message: r.Message, SourcePath: optional(r.SourcePath), Line: optional(r.Line), Column: optional(r.Column)})
	}
	return out
}

// optional is nil for a zero value.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
