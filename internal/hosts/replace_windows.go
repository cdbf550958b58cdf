package hosts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace writes a file by renaming a finished, synced one into its place.
// The library used elsewhere leaves Windows out, where a rename over an
// existing file is not promised to be atomic, but never leaves half a file.
func replace(path string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, werr := tmp.Write(data)
	err = errors.Join(werr, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
