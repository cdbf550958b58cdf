package workflow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Location is a workflow on disk. Paths are absolute and lexically clean.
type Location struct {
	Graph  string
	Config string // workflow.toml, "" when there is none
	Name   string // the selector's name when it was one, else the slug
	Slug   string // see Slug
}

// LocateError says that a selector leads to no workflow.
type LocateError struct {
	Selector  string
	Path      string   // the file that is missing, when the selector is a path
	Available []string // names, when the selector is one
	Nearest   string   // the one of them most like the selector, or ""
	Dir       string   // where names were looked for

	reason string // another fault of the selector
	hint   string // what was perhaps meant
}

func (e *LocateError) Error() string {
	switch {
	case e.reason != "":
		return e.reason
	case e.Path != "":
		return "workflow not found: " + e.Path + e.hint
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Unknown workflow '%s'\n\n", e.Selector)
	if len(e.Available) == 0 {
		fmt.Fprintf(&b, "No workflows found in %s", e.Dir)
	} else {
		fmt.Fprintf(&b, "Available workflows: %s", strings.Join(e.Available, ", "))
	}
	if e.Nearest != "" {
		fmt.Fprintf(&b, "\n\nDid you mean '%s'?", e.Nearest)
	}
	return b.String()
}

// Locate finds the workflow a selector means. A selector with a file extension
// is a path, relative to cwd: a .toml file is a workflow.toml, anything else a
// graph. Without an extension it is a name, looked for in .fabro/workflows of
// the project around cwd and then in fabroHome/workflows. fabroHome may be "".
//
// Errors are *LocateError, *SettingsError for a broken workflow.toml, or from
// the file system.
func Locate(selector, cwd, fabroHome string) (Location, error) {
	cwd, err := filepath.Abs(cwd)
	if err != nil {
		return Location{}, err
	}
	switch {
	case strings.TrimSpace(selector) == "":
		return Location{}, &LocateError{reason: "no workflow was named; give a name or the path of a .fabro file"}
	case strings.ContainsRune(selector, 0):
		return Location{}, &LocateError{Selector: selector, reason: "the workflow selector has a NUL character"}
	case strings.HasPrefix(selector, "~/"):
		return Location{}, &LocateError{Selector: selector, reason: "unsupported manifest workflow reference: " + selector + " (write the home directory out)"}
	case filepath.Ext(selector) == "":
		return locateName(selector, cwd, fabroHome)
	}
	return locatePath(absolute(cwd, selector))
}

func absolute(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func locatePath(path string) (Location, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Location{}, &LocateError{Path: path, hint: "; it is a directory: name a workflow or its file"}
	}
	if !isFile(path) {
		return Location{}, &LocateError{Path: path}
	}
	loc := Location{Graph: path}
	if filepath.Ext(path) == ".toml" {
		graph, err := graphOf(path)
		if err != nil {
			return Location{}, err
		}
		loc.Config, loc.Graph = path, graph
		if !isFile(graph) {
			return Location{}, &LocateError{Path: graph}
		}
	} else if config := filepath.Join(filepath.Dir(path), "workflow.toml"); isFile(config) {
		// A broken file beside a graph that was named is an error too: its inputs
		// would be missed in silence. A file about another graph is not ours.
		graph, err := graphOf(config)
		if err != nil {
			return Location{}, err
		}
		if graph == path {
			loc.Config = config
		}
	}
	loc.Slug = Slug(filepath.ToSlash(loc.Graph))
	loc.Name = loc.Slug
	return loc, nil
}

func locateName(name, cwd, fabroHome string) (Location, error) {
	var dirs []string
	project := ProjectRoot(cwd)
	if project != "" {
		dirs = append(dirs, filepath.Join(project, ".fabro", "workflows"))
	}
	if fabroHome != "" {
		dirs = append(dirs, filepath.Join(fabroHome, "workflows"))
	}
	if filepath.IsLocal(filepath.FromSlash(name)) {
		for _, dir := range dirs {
			loc, err := locateIn(filepath.Join(dir, filepath.FromSlash(name)))
			var missing *LocateError
			if errors.As(err, &missing) && missing.Path == "" {
				continue
			}
			if err == nil {
				loc.Name = name
			}
			return loc, err
		}
	}
	if path := absolute(cwd, name); isFile(path) {
		return locatePath(path)
	}
	hint := hintFor(name, cwd)
	if project == "" && hint == "" {
		hint = "; a name is looked for in a project, which this is not (no .fabro/project.toml here or above)"
		if fabroHome != "" {
			hint += ", and in " + filepath.Join(fabroHome, "workflows")
		}
	}
	if hint != "" {
		return Location{}, &LocateError{Selector: name, Path: absolute(cwd, name), hint: hint}
	}
	e := &LocateError{Selector: name, Dir: dirs[0]}
	for _, dir := range dirs {
		e.Available = append(e.Available, namesIn(dir)...)
	}
	slices.Sort(e.Available)
	e.Available = slices.Compact(e.Available)
	e.Nearest = nearest(name, e.Available)
	return Location{}, e
}

// hintFor looks for what a selector that leads nowhere may mean: the directory
// of a workflow, or a workflow by name where nothing says that this is a project.
func hintFor(name, cwd string) string {
	for _, file := range []string{"workflow.toml", "workflow.fabro"} {
		if isFile(filepath.Join(absolute(cwd, name), file)) {
			return "; it is a directory: name the file " + filepath.ToSlash(filepath.Join(filepath.FromSlash(name), file))
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || ProjectRoot(cwd) != "" {
		return ""
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := locateIn(filepath.Join(dir, ".fabro", "workflows", filepath.FromSlash(name))); err == nil {
			return fmt.Sprintf("; %s has a workflow of that name, but no .fabro/project.toml (it may be empty), which makes a directory a project", dir)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// locateIn finds the workflow in a directory that is named after it.
func locateIn(dir string) (Location, error) {
	if config := filepath.Join(dir, "workflow.toml"); isFile(config) {
		return locatePath(config)
	}
	if graph := filepath.Join(dir, "workflow.fabro"); isFile(graph) {
		return locatePath(graph)
	}
	return Location{}, &LocateError{}
}

// namesIn lists the workflows of a directory. A directory that cannot be read
// has none.
func namesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if _, err := locateIn(filepath.Join(dir, e.Name())); err == nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// graphOf reads which graph a workflow.toml is about.
func graphOf(config string) (string, error) {
	source, err := readFile(config)
	if err != nil {
		return "", err
	}
	file, err := parseSettings(config, source, false)
	var fault *SettingsError
	if errors.As(err, &fault) {
		fault.Message = "Failed to parse run config TOML: " + fault.Message
		return "", fault
	}
	graph := "workflow.fabro"
	if file.Workflow.Graph != nil {
		graph = *file.Workflow.Graph
	}
	return absolute(filepath.Dir(config), graph), nil
}

// ProjectRoot is the nearest directory, from dir upwards, that has a
// .fabro/project.toml; "" when there is none.
func ProjectRoot(dir string) string {
	for {
		if isFile(filepath.Join(dir, ".fabro", "project.toml")) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// maxFileBytes bounds one file of a bundle, maxBundleBytes all of them together,
// maxBundleFiles their number.
const (
	maxFileBytes   = 16 << 20
	maxBundleBytes = 64 << 20
	maxBundleFiles = 5000
)

// readFile reads a regular file of bounded size. Anything else, such as a pipe
// that would never end, is refused before it is opened. A byte-order mark is left out.
func readFile(path string) (string, error) {
	fail := func(reason string) (string, error) {
		return "", &BundleError{Message: fmt.Sprintf("Failed to read %s: %s", path, reason)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("no such file")
	case err != nil:
		return "", &BundleError{Message: "Failed to read " + path, Err: err}
	case info.IsDir():
		return fail("it is a directory")
	case !info.Mode().IsRegular():
		return fail("it is not a regular file")
	case info.Size() > maxFileBytes:
		return fail(fmt.Sprintf("it has %d bytes; a workflow's file may have at most %d", info.Size(), maxFileBytes))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &BundleError{Message: "Failed to read " + path, Err: err}
	}
	text, err := Text(data)
	if err != nil {
		return fail(err.Error())
	}
	return text, nil
}
