package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fabro-mcp/internal/atomicfile"
)

// maxFileBytes bounds what is read: real files of hosts stay far below it.
const maxFileBytes = 64 << 20

// attempts bounds how often Install starts again because the host itself has
// written its file meanwhile.
const attempts = 5

// Install puts the entry into the file, creating it and its folder where they
// are missing. It reports whether the file changed; one that has the entry
// already is not written. A failed Install leaves the file as it was.
//
// The new text goes to a temporary file in the same folder, which then takes the
// old one's place in one rename and keeps its mode. A symbolic link stays: its
// target is replaced. Writers of this program take turns; a file that the host
// changes between reading and writing is read again.
func Install(file File, name string, entry Entry) (changed bool, err error) {
	path, err := resolve(file.Path)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("failed to create %s: %w", filepath.Dir(path), err)
	}
	unlock, err := lock(path)
	if err != nil {
		return false, err
	}
	defer func() {
		if uerr := unlock(); err == nil && uerr != nil {
			err = fmt.Errorf("the file is written, but its lock could not be given up: %w", uerr)
		}
	}()
	for range attempts {
		before, mode, err := read(path)
		if err != nil {
			return false, err
		}
		src := before
		if src == nil {
			src = []byte("{}\n")
		}
		out, err := Edit(src, name, entry, file.Comments)
		if err != nil {
			return false, fmt.Errorf("failed to parse MCP config %s: %w\nThe file was left as it is; mend it, or add by hand what `fabro mcp config` prints", path, err)
		}
		if bytes.Equal(out, before) {
			return false, nil
		}
		if now, _, err := read(path); err != nil || !bytes.Equal(now, before) {
			continue // the host has written it; what it wrote must not be lost
		}
		if err := atomicfile.Write(path, out, mode); err != nil {
			return false, fmt.Errorf("failed to write %s: %w", path, err)
		}
		return true, nil
	}
	return false, fmt.Errorf("%s changes all the time; close the program that writes it and try again", path)
}

// read returns the file's text and mode; a missing file has no text, not even an
// empty one.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o600, nil
	case err != nil:
		return nil, 0, fmt.Errorf("failed to read %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("MCP config %s is not a regular file", path)
	case info.Size() > maxFileBytes:
		return nil, 0, fmt.Errorf("MCP config %s has %d bytes, which is more than a host's settings can be", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("failed to read %s: %w", path, err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, info.Mode().Perm(), nil
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
