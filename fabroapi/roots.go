package fabroapi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// roots are the directories that everything a manifest is made of must lie in,
// with symbolic links followed. Nil allows everything.
type roots []string

// newRoots resolves directories as --root names them.
func newRoots(dirs []string) (roots, error) {
	var out roots
	for _, dir := range dirs {
		real, err := filepath.Abs(dir)
		if err == nil {
			real, err = filepath.EvalSymlinks(real)
		}
		if err == nil {
			var info os.FileInfo
			if info, err = os.Stat(real); err == nil && !info.IsDir() {
				err = fmt.Errorf("it is no directory")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--root %s: %w", dir, err)
		}
		out = append(out, real)
	}
	return out, nil
}

// check refuses an absolute path outside. What a path that does not exist would
// be is decided by the part of it that does.
func (r roots) check(what, path string) error {
	if len(r) == 0 || r.contain(realPath(path)) {
		return nil
	}
	return fmt.Errorf("%s %s is outside of the allowed directories (%s)", what, path, strings.Join(r, ", "))
}

func (r roots) contain(path string) bool {
	for _, root := range r {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// realPath follows symbolic links as far as the path exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for dir := path; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if target, err := os.Readlink(dir); err == nil && rest == "" && filepath.IsAbs(target) {
			// A link to nowhere: judge where it leads.
			return realPath(target)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = parent
	}
}
