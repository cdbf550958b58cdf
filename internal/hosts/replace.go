//go:build !windows

package hosts

import (
	"io/fs"

	"github.com/google/renameio/v2"
)

// replace writes a file by renaming a finished, synced one into its place.
func replace(path string, data []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, data, mode, renameio.WithExistingPermissions())
}
