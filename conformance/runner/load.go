package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fabro-mcp/conformance/transcript"
)

// Extensions of transcript files.
var Extensions = []string{".txtar", ".txt"}

// Name is how a transcript is called in reports and baselines: its path with
// forward slashes, from below a directory named "transcripts" when there is
// one, without the extension.
func Name(file string) string {
	name := filepath.ToSlash(file)
	if _, below, ok := strings.Cut("/"+name, "/transcripts/"); ok {
		name = below
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "./"), path.Ext(name))
}

// Load reads transcript files, and every transcript below directories. All
// mistakes in all files are reported together.
func Load(paths ...string) ([]*transcript.Transcript, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		err = filepath.WalkDir(p, func(file string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains(Extensions, filepath.Ext(file)) {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return parseAll(files, os.ReadFile)
}

// LoadFS reads every transcript below root of a file system, such as the
// embedded suites.
func LoadFS(fsys fs.FS, root string) ([]*transcript.Transcript, error) {
	var files []string
	err := fs.WalkDir(fsys, root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(Extensions, path.Ext(file)) {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return parseAll(files, func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) })
}

func parseAll(files []string, read func(string) ([]byte, error)) ([]*transcript.Transcript, error) {
	slices.Sort(files)
	files = slices.Compact(files)
	var out []*transcript.Transcript
	var bad []error
	for _, file := range files {
		data, err := read(file)
		if err == nil {
			var t *transcript.Transcript
			if t, err = transcript.Parse(file, data); err == nil {
				out = append(out, t)
			}
		}
		if err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) == 0 && len(out) == 0 {
		return nil, fmt.Errorf("no transcript found; files end in %s", strings.Join(Extensions, " or "))
	}
	return out, errors.Join(bad...)
}
