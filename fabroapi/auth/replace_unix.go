//go:build !windows

package auth

import (
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// ReplaceFile puts text in the place of a file at once and durably, with exactly
// the given permissions. A symbolic link stays one.
func ReplaceFile(path string, text []byte, perm os.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(perm), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer file.Cleanup()
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}
