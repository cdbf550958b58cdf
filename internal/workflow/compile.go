package workflow

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// CompileOptions say how strict Compile is and what variables there are.
type CompileOptions struct {
	// StrictVariables makes an undefined template variable an error, as at run
	// creation and preflight; otherwise it is a warning, as in validate.
	StrictVariables bool
	// Vars are the values of `{{ vars.NAME }}`.
	Vars map[string]string

	forClient bool // see CheckBundle
	child     bool // of a manager loop: its own children are not looked at
}

// Compiled is a workflow ready to run, or as ready as its errors let it be.
type Compiled struct {
	Graph    *Graph // after all transforms
	Goal     string // rendered; "" when there is none
	Settings Settings
	Path     string // key of the graph in the bundle
	Slug     string // see Slug
	Name     string // [workflow] name, else the graph's name

	bundle Bundle
	opts   CompileOptions
}

// TargetError says that a bundle does not hold the graph it names.
type TargetError struct{ Target string }

func (e *TargetError) Error() string {
	return fmt.Sprintf("the bundle holds no workflow %q", e.Target)
}

// Compile takes a bundle through all transforms in Fabro's order and checks the
// result. Findings about a graph that could be read are diagnostics, and the
// compiled workflow is there beside them; HasErrors(diagnostics) says whether it
// may run.
//
// Errors: *SyntaxError for a target that is no graph, *SettingsError (possibly
// joined) for settings, *TargetError, *KeyError.
func Compile(b Bundle, opts CompileOptions) (*Compiled, []Diagnostic, error) {
	settings, err := MergeSettings(b, opts.Vars)
	if err != nil {
		return nil, nil, err
	}
	return compile(b, opts, settings)
}

func compile(b Bundle, opts CompileOptions, settings Settings) (*Compiled, []Diagnostic, error) {
	target, err := CleanKey(b.Target)
	if err != nil {
		return nil, nil, err
	}
	w, ok := b.Workflows[b.Target]
	if !ok {
		return nil, nil, &TargetError{b.Target}
	}
	g, err := Parse(target, []byte(w.Source))
	if err != nil {
		return nil, nil, err
	}
	c := &compiler{
		graph: g, bundle: b, files: w.Files, settings: &settings, opts: opts, budget: maxCompiledText,
		sources: map[string]*Source{target: g.Source}, templates: map[string]loaded{}, goalless: map[*Node]bool{},
	}
	c.overrideGoal(b.Goal)
	c.expandImports()
	c.inlineFiles()
	c.renderTemplates()
	c.interpolateScripts()
	c.applyStylesheet()
	c.lint()
	out := &Compiled{
		Graph: c.graph, Goal: c.graph.Goal(), Settings: settings, Path: target, Slug: Slug(target), Name: settings.WorkflowName,
		bundle: b, opts: opts,
	}
	if out.Name == "" {
		out.Name = g.Name
	}
	return out, c.sorted(), nil
}

// maxCompiledText bounds the text that files, templates and variables add to one
// graph, in bytes: a hundred thousand nodes may all name the same large file.
const maxCompiledText = 256 << 20

type compiler struct {
	graph     *Graph
	bundle    Bundle
	files     map[string]string
	settings  *Settings
	opts      CompileOptions
	diags     []Diagnostic
	budget    int
	sources   map[string]*Source
	templates map[string]loaded

	goalless       map[*Node]bool // reported by noGoal
	goalOverridden bool           // the goal is not the graph's own text
	tooMuch        bool           // the budget is spent and that has been reported
}

type loaded struct {
	template *template.Template
	err      error
}

// spend takes n bytes from the budget.
func (c *compiler) spend(n int, d Diagnostic, at Position) bool {
	if c.budget -= n; c.budget >= 0 {
		return true
	}
	if !c.tooMuch {
		c.tooMuch = true
		d.Rule, d.Severity = "size_limit", SeverityError
		d.Message = fmt.Sprintf("files and templates make this workflow longer than %d bytes", maxCompiledText)
		d.Fix = "name long files in fewer places, or let the stages read them"
		c.report(d, at)
	}
	return false
}

func (c *compiler) overrideGoal(goal *BundleGoal) {
	text := c.settings.Goal
	if goal != nil && (goal.Type == "value" || goal.Type == "file") {
		text = goal.Text
	}
	if text == "" {
		return
	}
	c.graph.Attrs.Delete("goal")
	c.graph.Attrs.Set("goal", String(text))
	c.goalOverridden = true
}

// source is a bundled file, indexed for positions.
func (c *compiler) source(key string) (*Source, bool) {
	if s := c.sources[key]; s != nil {
		return s, true
	}
	text, ok := c.files[key]
	if !ok {
		return nil, false
	}
	s := NewSource(key, text)
	c.sources[key] = s
	return s, true
}

// inlineFiles puts the content of a file in the place of each `@file`. A
// reference that cannot be followed stays; lint reports it.
func (c *compiler) inlineFiles() {
	if !c.goalOverridden {
		c.inline(&c.graph.Attrs, "goal", Diagnostic{})
	}
	for _, n := range c.graph.Nodes {
		for _, key := range []string{"prompt", "output_schema"} {
			c.inline(&n.Attrs, key, Diagnostic{NodeID: n.ID})
		}
	}
}

func (c *compiler) inline(a *Attrs, key string, d Diagnostic) {
	value, _ := a.String(key)
	reference, ok := strings.CutPrefix(value, "@")
	if !ok {
		return
	}
	at := a.At(key)
	if template.HasSyntax(reference) {
		return
	}
	file, err := resolveKey(c.pathOf(at), reference)
	if err != nil {
		return
	}
	source, ok := c.source(file)
	if !ok || !c.spend(len(source.Text), d, at) {
		return
	}
	a.set(attr{key: key, value: String(source.Text), at: Position{Source: source}, whole: true})
}

// pathOf is the file a position is in; what is written in no file counts as
// written in the graph's.
func (c *compiler) pathOf(at Position) string {
	if at.Known() {
		return at.Source.Path
	}
	return c.graph.Source.Path
}

// Child compiles the workflow a manager loop runs, from the same bundle. As on a
// server the child gets no settings, inputs or variables of its parent, and an
// undefined variable in it is an error.
func (c *Compiled) Child(n *Node) (*Compiled, []Diagnostic, error) {
	return compileChild(c.bundle, c.Path, n, CompileOptions{StrictVariables: true})
}

func compileChild(parent Bundle, parentPath string, n *Node, opts CompileOptions) (*Compiled, []Diagnostic, error) {
	b := Bundle{Workflows: parent.Workflows}
	if source, ok := n.Attrs.String("stack.child_dot_source"); ok {
		b.Target = parentPath + "#" + n.ID
		b.Workflows = maps.Clone(parent.Workflows)
		b.Workflows[b.Target] = BundleWorkflow{Source: source, Files: parent.Workflows[parent.Target].Files}
	} else {
		reference, ok := n.Attrs.String("stack.child_workflow")
		if !ok {
			return nil, nil, fmt.Errorf("node %q names no child: set stack.child_workflow or stack.child_dot_source", n.ID)
		}
		from := parentPath
		if at := n.Attrs.At("stack.child_workflow"); at.Known() {
			from = at.Source.Path
		}
		if b.Target, ok = parent.child(from, reference); !ok {
			return nil, nil, fmt.Errorf("node %q: the child workflow %q was not sent along with the run", n.ID, reference)
		}
	}
	settings, err := MergeSettings(Bundle{}, nil)
	if err != nil {
		return nil, nil, err
	}
	return compile(b, opts, settings)
}

// child finds the bundled workflow that a reference in the file `from` means: a
// graph by its path, by the path of its workflow.toml, or by its name.
func (b *Bundle) child(from, reference string) (string, bool) {
	if key, err := resolveKey(from, reference); err == nil {
		if _, ok := b.Workflows[key]; ok {
			return key, true
		}
		for target, w := range b.Workflows {
			if w.ConfigPath == key {
				return target, true
			}
		}
	}
	if path.Ext(reference) != "" {
		return "", false
	}
	for target := range b.Workflows {
		if Slug(target) == reference && target != b.Target {
			return target, true
		}
	}
	return "", false
}
