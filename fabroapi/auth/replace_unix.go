//go:build !windows

package auth

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replaceFile puts text in the place of a file at once and durably, readable by
// its owner only. A symbolic link stays one.
func replaceFile(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer file.Cleanup()
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}
