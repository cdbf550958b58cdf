package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"fabro-mcp/internal/workflow"
	"fabro-mcp/tools/plain"
)

// workflowEntry is a workflow that can be run by name.
type workflowEntry struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Source      string `json:"source"` // project or user
	Path        string `json:"path"`   // of its workflow.toml, or of its graph when there is none
}

// The files of a workflow that is found by its name: its settings, and the graph
// that they mean when they name none. The graph alone is a workflow as well.
const configFile, graphFile = "workflow.toml", "workflow.fabro"

// hasConfig reports whether the workflow has settings beside its graph.
func (w *workflowEntry) hasConfig() bool { return filepath.Base(w.Path) == configFile }

// maxWorkflowFile bounds a workflow.toml that is read for its description.
const maxWorkflowFile = 1 << 20

// listWorkflows finds the workflows of the project around cwd and of the user, the
// project's first: a name that both have means the project's.
func (h *host) listWorkflows(cwd string) []workflowEntry {
	dir := h.directory(cwd)
	if dir == "" {
		dir, _ = os.Getwd() // without a working directory there is no project
	}
	var out []workflowEntry
	if root := projectRoot(dir); root != "" {
		out = h.workflowsIn(filepath.Join(root, ".fabro", "workflows"), "project", out)
	}
	if home := h.cfg.Env.Home(); home != "" {
		out = h.workflowsIn(filepath.Join(home, "workflows"), "user", out)
	}
	return out
}

// projectRoot is the nearest directory at or above dir that holds a project.
func projectRoot(dir string) string {
	if dir == "" {
		return ""
	}
	for {
		if info, err := os.Stat(filepath.Join(dir, ".fabro", "project.toml")); err == nil && info.Mode().IsRegular() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

func (h *host) workflowsIn(dir, source string, out []workflowEntry) []workflowEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, entry := range entries {
		name := entry.Name()
		if slices.ContainsFunc(out, func(w workflowEntry) bool { return w.Name == name }) {
			continue
		}
		w := workflowEntry{Name: name, Source: source, Path: filepath.Join(dir, name, configFile)}
		info, err := os.Stat(w.Path)
		if err != nil || !info.Mode().IsRegular() {
			w.Path = filepath.Join(dir, name, graphFile)
			info, err = os.Stat(w.Path)
		}
		if err != nil || !info.Mode().IsRegular() || !h.inRoots(w.Path) {
			continue
		}
		if w.hasConfig() {
			w.Title, w.Description = describeWorkflow(w.Path, info.Size())
		}
		out = append(out, w)
	}
	return out
}

// describeWorkflow reads the name and description of a workflow.toml; a file that
// cannot be read has none.
func describeWorkflow(path string, size int64) (title, description string) {
	if size > maxWorkflowFile {
		return "", ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", ""
	}
	var file struct {
		Workflow struct {
			Name        string `toml:"name"`
			Description string `toml:"description"`
		} `toml:"workflow"`
	}
	text, err := workflow.Text(data)
	if err != nil || toml.Unmarshal([]byte(text), &file) != nil {
		return "", ""
	}
	return plain.Line(file.Workflow.Name, 120), plain.Line(file.Workflow.Description, 400)
}

// inRoots reports whether a path lies in one of the configured roots, symbolic
// links resolved. Without roots everything does.
func (h *host) inRoots(path string) bool {
	if len(h.cfg.Roots) == 0 {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, root := range h.cfg.Roots {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(root, real)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// readWorkflow reads the text of a workflow's settings and graph; there are no
// settings where the graph is alone.
func (h *host) readWorkflow(w workflowEntry) (config, graph string, err error) {
	if !w.hasConfig() {
		graph, err = h.readText(w.Path)
		return "", graph, err
	}
	config, err = h.readText(w.Path)
	if err != nil {
		return "", "", err
	}
	var file struct {
		Workflow struct {
			Graph string `toml:"graph"`
		} `toml:"workflow"`
	}
	if err := toml.Unmarshal([]byte(config), &file); err != nil {
		return "", "", fmt.Errorf("%s: %w", w.Path, err)
	}
	name := file.Workflow.Graph
	if name == "" {
		name = graphFile
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(w.Path), path)
	}
	if !h.inRoots(path) {
		return "", "", fmt.Errorf("the graph %s of workflow %s lies outside the allowed roots", path, w.Name)
	}
	graph, err = h.readText(path)
	return config, graph, err
}

func (h *host) readText(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxWorkflowFile {
		return "", fmt.Errorf("%s is no regular file of at most %d bytes", path, maxWorkflowFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text, err := workflow.Text(data)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}
