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

// Change is what Install did to a file.
type Change struct {
	Written bool   // the file was not yet as it should be
	Old     *Entry // what the host started by that name before, where that is another command or other arguments
	New     Entry  // what it starts now
}

// Install puts the entry into the file, creating it and its folder where they
// are missing. It reports what changed; a file that has the entry already is not
// written. A failed Install leaves the file as it was.
//
// The new text goes to a temporary file in the same folder, which then takes the
// old one's place in one rename and keeps its mode. A symbolic link stays: its
// target is replaced. Writers of this program take turns; a file that the host
// changes between reading and writing is read again.
func Install(file File, name string, entry Entry) (change Change, err error) {
	path, err := resolve(file.Path)
	if err != nil {
		return Change{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Change{}, fmt.Errorf("failed to create %s: %w", filepath.Dir(path), err)
	}
	unlock, err := lock(path)
	if err != nil {
		return Change{}, err
	}
	defer func() {
		if uerr := unlock(); err == nil && uerr != nil {
			err = fmt.Errorf("the file is written, but its lock could not be given up: %w", uerr)
		}
	}()
	for range attempts {
		before, mode, err := read(path)
		if err != nil {
			return Change{}, err
		}
		src := before
		if src == nil {
			src = []byte("{}\n")
		}
		out, err := Edit(src, name, entry, file.Comments)
		if err != nil {
			return Change{}, fmt.Errorf("failed to parse MCP config %s: %w\nThe file was left as it is; mend it, or add by hand what `fabro mcp config` prints", path, err)
		}
		if bytes.Equal(out, before) {
			return Change{}, nil
		}
		if now, _, err := read(path); err != nil || !bytes.Equal(now, before) {
			continue // the host has written it; what it wrote must not be lost
		}
		if err := atomicfile.Write(path, out, mode); err != nil {
			return Change{}, fmt.Errorf("failed to write %s: %w", path, err)
		}
		return changeOf(before, out, name), nil
	}
	return Change{}, fmt.Errorf("%s changes all the time; close the program that writes it and try again", path)
}

// changeOf compares the entries of a file before and after it was written.
func changeOf(before, after []byte, name string) Change {
	change := Change{Written: true}
	if now, err := plain(after); err == nil {
		if entry := entryIn(now, name); entry != nil {
			change.New = *entry
		}
	}
	if was, err := plain(before); err == nil { // an error: there was no file
		if old := entryIn(was, name); old != nil && !equal(*old, change.New) {
			change.Old = old
		}
	}
	return change
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
