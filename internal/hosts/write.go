package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFileBytes bounds what is read: real files of hosts stay far below it.
const maxFileBytes = 64 << 20

// Install puts the entry into the file, creating it and its folder where they
// are missing. It reports whether the file changed; one that has the entry
// already is not written. A failed Install leaves the file as it was.
//
// The new text goes to a temporary file in the same folder, which then takes the
// old one's place in one rename and keeps its mode. A symbolic link stays: its
// target is replaced.
func Install(file File, name string, entry Entry) (changed bool, err error) {
	path, err := resolve(file.Path)
	if err != nil {
		return false, err
	}
	mode := fs.FileMode(0o600)
	src := []byte("{}\n")
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return false, fmt.Errorf("MCP config %s is not a regular file", path)
	case err == nil && info.Size() > maxFileBytes:
		return false, fmt.Errorf("MCP config %s has %d bytes, which is more than a host's settings can be", path, info.Size())
	case err == nil:
		mode = info.Mode().Perm()
		if src, err = os.ReadFile(path); err != nil {
			return false, fmt.Errorf("failed to read %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("failed to read %s: %w", path, err)
	}

	out, err := Edit(src, name, entry, file.Comments)
	if err != nil {
		return false, fmt.Errorf("failed to parse MCP config %s: %w\nThe file was left as it is; mend it, or add by hand what `fabro mcp config` prints", path, err)
	}
	if info != nil && bytes.Equal(out, src) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("failed to create %s: %w", filepath.Dir(path), err)
	}
	if err := replace(path, out, mode); err != nil {
		return false, fmt.Errorf("failed to write %s: %w", path, err)
	}
	return true, nil
}

// resolve follows symbolic links, so that a file kept elsewhere by a dotfile
// manager is edited where it is.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("MCP config %s is a symbolic link to a file that does not exist", path)
		}
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("failed to read %s: %w", path, err)
	}
	return real, nil
}
