package workflow

import (
	"fmt"
	"path"
	"strings"
)

// Bundle is everything Compile needs, without the disk: the parts of a run
// manifest that say what to run.
type Bundle struct {
	// Target is the key in Workflows of the graph to run. Keys, and the keys of
	// Files below, are slash-separated paths relative to the manifest's cwd;
	// they may begin with `../`.
	Target    string
	Workflows map[string]BundleWorkflow
	Configs   []BundleConfig
	Goal      *BundleGoal
	Args      Args
	// WorkingDir is where commands will run, absolute. Only BundleFiles fills it
	// in; Compile does not look at it.
	WorkingDir string
	// Labels are the labels that a run of this bundle will have, as the settings and
	// the arguments give them. Only BundleFiles fills it in.
	Labels map[string]string
	// GoalPath is the absolute path of the file the goal was read from, "" when it
	// was not. Only BundleFiles fills it in.
	GoalPath string
}

// BundleWorkflow is one graph file with what it refers to.
type BundleWorkflow struct {
	Source       string
	ConfigPath   string // of workflow.toml; "" when there is none
	ConfigSource string
	Files        map[string]string  // content by key
	Refs         map[string]FileRef // why each file is there; only bundling fills it in
}

// FileRef is the reference that brought a file into a bundle.
type FileRef struct {
	Type     string // file_inline, import or dockerfile
	Original string // as written
	From     string // key of the file with the reference
}

// Types of FileRef.
const (
	RefFileInline = "file_inline"
	RefImport     = "import"
	RefDockerfile = "dockerfile"
)

// BundleConfig is a settings file.
type BundleConfig struct {
	Type   string // project or user
	Path   string
	Source string
}

// Types of BundleConfig.
const (
	ConfigProject = "project"
	ConfigUser    = "user"
)

// BundleGoal is the goal a manifest brings along.
type BundleGoal struct {
	Type string // value, file or graph; graph is information only and overrides nothing
	Text string
}

// Args are the overrides of one run. Nil and "" mean that nothing is overridden.
type Args struct {
	DryRun, AutoApprove, PreserveSandbox *bool
	Model, Provider, Environment         string
	Labels                               []string // key=value
	Inputs                               []string // key=value, the value a TOML scalar or else text
}

// KeyError says that a path is no manifest key.
type KeyError struct{ Key, Reason string }

func (e *KeyError) Error() string { return fmt.Sprintf("%q %s", e.Key, e.Reason) }

// CleanKey checks a manifest key and brings it into its normal form. Errors are
// *KeyError.
func CleanKey(key string) (string, error) {
	bad := func(reason string) (string, error) { return "", &KeyError{key, reason} }
	switch {
	case strings.TrimSpace(key) == "":
		return bad("is empty")
	case strings.HasPrefix(key, "/"):
		return bad("is absolute; write it relative to the run's directory")
	case strings.HasPrefix(key, "~"):
		return bad("begins with ~; write it relative to the run's directory")
	case strings.Contains(key, `\`):
		return bad("has a backslash; separate directories with /")
	case len(key) > 1 && key[1] == ':' && isIdentStart(key[0]) && key[0] != '_':
		return bad("begins with a drive letter")
	case strings.ContainsRune(key, 0):
		return bad("has a NUL character")
	}
	return path.Clean(key), nil
}

// resolveKey finds the key a reference in the file `from` means.
func resolveKey(from, reference string) (string, error) {
	if _, err := CleanKey(reference); err != nil {
		return "", err
	}
	return path.Join(path.Dir(from), reference), nil
}

// Slug is the short name of a workflow: the stem of its graph file, or the name
// of the directory when the stem is `workflow`.
func Slug(graphPath string) string {
	base := path.Base(graphPath)
	stem := strings.TrimSuffix(base, path.Ext(base))
	if stem == "workflow" {
		if dir := path.Base(path.Dir(graphPath)); dir != "." && dir != "/" && dir != ".." {
			return dir
		}
	}
	return stem
}
