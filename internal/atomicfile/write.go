//go:build !windows

// Package atomicfile replaces files whole: whoever reads one sees the old text or
// the new, never half of either, also after a crash.
package atomicfile

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write puts data in the place of the file at path, or creates it, with exactly
// the given permissions. The data is on the disk when Write returns. A symbolic
// link stays one: its target is replaced. The directory must exist.
func Write(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file, err := renameio.NewPendingFile(path,
		renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer file.Cleanup()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}
