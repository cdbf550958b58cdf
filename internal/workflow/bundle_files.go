package workflow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// BundleError says why a workflow's files cannot be collected.
type BundleError struct {
	Message string
	Err     error // may be nil
	NodeID  string
	At      Position // of the reference, where one is at fault
}

func (e *BundleError) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

func (e *BundleError) Unwrap() error { return e.Err }

// BundleOptions are the parts of a bundle that do not come from the workflow.
type BundleOptions struct {
	FabroHome    string // for child workflows that are named; may be ""
	UserSettings string // path of the user's settings.toml; left out unless it is a regular file
	Args         Args
	// The goal of this run, at most one of them.
	Goal     *string
	GoalFile string // relative to the working directory of the settings
}

// BundleFiles collects everything the workflow at a location needs to run
// elsewhere: its graph and workflow.toml, the project's and the user's settings,
// the files behind @references, imports and template includes, Dockerfiles, and
// the same of child workflows. Keys are relative to cwd.
//
// A file must lie, also once symbolic links are followed, below the project,
// below cwd, or below the directory of the graph; an include below the directory
// of the graph or of the file it is in. Nothing else on the machine can be sent
// along by a workflow file.
//
// Errors: *BundleError (with a *SyntaxError inside for a file that is no graph),
// *SettingsError, *LocateError.
func BundleFiles(loc Location, cwd string, opts BundleOptions) (*Bundle, error) {
	cwd, err := filepath.Abs(cwd)
	if err != nil {
		return nil, err
	}
	b := &bundler{
		cwd: cwd, home: opts.FabroHome,
		bundle: &Bundle{Workflows: map[string]BundleWorkflow{}, Args: opts.Args}, limit: maxBundleBytes,
	}
	project := ProjectRoot(filepath.Dir(loc.Graph))
	b.allow(cwd, filepath.Dir(loc.Graph), project)
	if opts.FabroHome != "" && below(filepath.Join(opts.FabroHome, "workflows"), loc.Graph) {
		b.allow(filepath.Join(opts.FabroHome, "workflows"))
	}
	if b.bundle.Target, err = b.workflow(loc); err != nil {
		return nil, err
	}
	if err := b.configs(project, opts.UserSettings); err != nil {
		return nil, err
	}
	if err := b.goal(opts); err != nil {
		return nil, err
	}
	return b.bundle, nil
}

type bundler struct {
	cwd    string
	home   string
	roots  []string // real paths below which files may lie
	bundle *Bundle
	limit  int // bytes that may still be added
	count  int
}

// unit is one workflow of the bundle while its files are collected.
type unit struct {
	key   string
	files map[string]string
	refs  map[string]FileRef
	dir   string          // of its graph: the root of its templates
	seen  map[string]bool // imported graphs, to cut cycles
	done  map[string]bool // templates whose includes are collected
}

func (b *bundler) allow(dirs ...string) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			b.roots = append(b.roots, real)
		}
	}
}

// below reports whether path is dir or lies in it, lexically.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// key is the manifest key of an absolute path.
func (b *bundler) key(path string) (string, error) {
	rel, err := filepath.Rel(b.cwd, path)
	if err != nil {
		return "", &BundleError{Message: "Failed to compute manifest path for " + path, Err: err}
	}
	key := filepath.ToSlash(rel)
	if _, err := CleanKey(key); err != nil {
		return "", &BundleError{Message: "Failed to compute manifest path for " + path, Err: err}
	}
	return key, nil
}

// read reads a file that a reference in `from` names, if it is where files may
// be.
func (b *bundler) read(path, reference, from string, roots ...string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		_, err := readFile(path)
		return "", err
	}
	if !slices.ContainsFunc(roots, func(root string) bool { return below(root, real) }) {
		return "", &BundleError{Message: fmt.Sprintf("reference `%s` from `%s` leads to %s, outside of %s", reference, from, real, strings.Join(roots, " and "))}
	}
	text, err := readFile(real)
	if err != nil {
		return "", err
	}
	return text, b.charge(text)
}

func (b *bundler) charge(text string) error {
	b.count++
	if b.limit -= len(text); b.limit < 0 || b.count > maxBundleFiles {
		return &BundleError{Message: fmt.Sprintf("the workflow and its files are more than %d bytes or %d files", maxBundleBytes, maxBundleFiles)}
	}
	return nil
}

// workflow adds a workflow with all its files, once.
func (b *bundler) workflow(loc Location) (string, error) {
	key, err := b.key(loc.Graph)
	if err != nil {
		return "", err
	}
	if _, done := b.bundle.Workflows[key]; done {
		return key, nil
	}
	text, err := b.read(loc.Graph, key, key, b.roots...)
	if err != nil {
		return "", err
	}
	w := BundleWorkflow{Source: text}
	u := &unit{key: key, files: map[string]string{}, refs: map[string]FileRef{}, dir: filepath.Dir(loc.Graph), seen: map[string]bool{key: true}, done: map[string]bool{}}
	if loc.Config != "" {
		if w.ConfigPath, err = b.key(loc.Config); err != nil {
			return "", err
		}
		if w.ConfigSource, err = b.read(loc.Config, w.ConfigPath, key, b.roots...); err != nil {
			return "", err
		}
		if err := b.dockerfiles(u, loc.Config, w.ConfigPath, w.ConfigSource); err != nil {
			return "", err
		}
	}
	b.bundle.Workflows[key] = w // before its children, so that a cycle ends
	if err := b.graph(u, loc.Graph, key, text); err != nil {
		return "", err
	}
	w.Files, w.Refs = u.files, u.refs
	b.bundle.Workflows[key] = w
	return key, nil
}

// configs adds the settings files beside the workflow's own.
func (b *bundler) configs(project, user string) error {
	add := func(kind, path string) error {
		text, err := readFile(path)
		if err != nil {
			return err
		}
		b.bundle.Configs = append(b.bundle.Configs, BundleConfig{Type: kind, Path: path, Source: text})
		return b.charge(text)
	}
	if project != "" {
		path := filepath.Join(project, ".fabro", "project.toml")
		if err := add(ConfigProject, path); err != nil {
			return err
		}
		key, err := b.key(path)
		if err != nil {
			return err
		}
		w := b.bundle.Workflows[b.bundle.Target]
		u := &unit{key: b.bundle.Target, files: w.Files, refs: w.Refs}
		if err := b.dockerfiles(u, path, key, b.bundle.Configs[0].Source); err != nil {
			return err
		}
	}
	if user != "" && isFile(user) {
		return add(ConfigUser, user)
	}
	return nil
}

// dockerfiles adds the Dockerfiles a settings file names. Faults of its other
// settings are for the server to judge, which may know more keys.
func (b *bundler) dockerfiles(u *unit, path, key, source string) error {
	f, err := parseSettings(path, source, false)
	if err != nil {
		return &BundleError{Message: "Failed to parse run config TOML", Err: err}
	}
	tables := []environmentTable{f.Run.Environment.environmentTable}
	for _, t := range f.Environments {
		tables = append(tables, t)
	}
	for _, t := range tables {
		table, _ := t.Image.Dockerfile.(map[string]any)
		reference, ok := table["path"].(string)
		if !ok {
			continue
		}
		if err := b.add(u, RefDockerfile, "Dockerfile reference", reference, path, key); err != nil {
			return err
		}
	}
	return nil
}

// add puts a referenced file into the unit, unless it is there already.
func (b *bundler) add(u *unit, kind, what, reference, fromPath, fromKey string) error {
	_, _, err := b.resolve(u, kind, what, reference, fromPath, fromKey)
	return err
}

func (b *bundler) resolve(u *unit, kind, what, reference, fromPath, fromKey string) (path, key string, err error) {
	if template.HasSyntax(reference) {
		return "", "", &BundleError{Message: fmt.Sprintf("templates are not supported in %ss: %s", what, reference)}
	}
	if _, err := CleanKey(reference); err != nil {
		return "", "", &BundleError{Message: "unsupported manifest reference: " + reference, Err: err}
	}
	path = absolute(filepath.Dir(fromPath), reference)
	if key, err = b.key(path); err != nil {
		return "", "", err
	}
	if _, done := u.files[key]; done {
		return path, key, nil
	}
	text, err := b.read(path, reference, fromKey, b.roots...)
	if err != nil {
		return "", "", err
	}
	u.files[key] = text
	u.refs[key] = FileRef{Type: kind, Original: reference, From: fromKey}
	return path, key, nil
}

// goal decides the goal that travels with the bundle: the run's own, else that
// of the settings, else that of the graph. It keeps what else the settings say of
// a run.
func (b *bundler) goal(opts BundleOptions) error {
	settings, err := mergeSettings(*b.bundle, nil, true)
	if err != nil {
		return &BundleError{Message: "failed to resolve manifest settings", Err: err}
	}
	b.bundle.WorkingDir, b.bundle.Labels = b.cwd, settings.Metadata
	if settings.WorkingDir != "" {
		b.bundle.WorkingDir = absolute(b.cwd, settings.WorkingDir)
	}
	switch {
	case opts.Goal != nil:
		b.bundle.Goal = &BundleGoal{Type: "value", Text: *opts.Goal}
	case opts.GoalFile != "":
		return b.goalFile("failed to resolve --goal-file contents", absolute(b.bundle.WorkingDir, opts.GoalFile))
	case settings.Goal != "":
		b.bundle.Goal = &BundleGoal{Type: "value", Text: settings.Goal}
	case settings.GoalFile != "":
		if template.HasSyntax(settings.GoalFile) {
			return &BundleError{Message: "run.goal.file interpolation failed: the path may not be a template: " + settings.GoalFile}
		}
		from := absolute(b.cwd, settings.GoalFrom)
		return b.goalFile("failed to resolve run.goal.file contents", absolute(filepath.Dir(from), settings.GoalFile))
	default:
		b.graphGoal()
	}
	return nil
}

func (b *bundler) goalFile(what, path string) error {
	text, err := readFile(path)
	if err != nil {
		return &BundleError{Message: what, Err: err}
	}
	b.bundle.Goal, b.bundle.GoalPath = &BundleGoal{Type: "file", Text: text}, path
	return b.charge(text)
}

// graphGoal takes the graph's own goal along, for information.
func (b *bundler) graphGoal() {
	w := b.bundle.Workflows[b.bundle.Target]
	g, err := Parse(b.bundle.Target, []byte(w.Source))
	if err != nil || g.Goal() == "" {
		return
	}
	text := g.Goal()
	if reference, ok := strings.CutPrefix(text, "@"); ok {
		key, err := resolveKey(b.bundle.Target, reference)
		if err != nil {
			return
		}
		text = w.Files[key]
	}
	b.bundle.Goal = &BundleGoal{Type: "graph", Text: text}
}

// isMissing reports whether an error is about a file that does not exist.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}
