//go:build !windows

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
	keepOwner(file.File, path)
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// keepOwner gives the new file the owner of the old one: somebody with more rights
// than its owner must not take it away. It stays with the writer where the system
// does not allow that.
func keepOwner(file *os.File, path string) {
	info, err := os.Stat(path)
	if err != nil {
		return // there is no old one
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Getuid() || int(st.Gid) != os.Getgid()) {
		_ = file.Chown(int(st.Uid), int(st.Gid))
	}
}
