package auth

import (
	"os"
	"path/filepath"
)

// ReplaceFile puts text in the place of a file at once. Who may read it is
// decided by the directory, which is inside the user's profile.
func ReplaceFile(path string, text []byte, _ os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".auth.json.tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails once it is renamed
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
