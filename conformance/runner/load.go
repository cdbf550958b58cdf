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

// Extension of the transcripts in a directory. Whatever else lies there (a list of
// digests, notes) is none; a file that is named by itself may be called anything.
const Extension = ".txtar"

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

// Load reads the files that are named, whatever they are called, and every file
// with the Extension below directories. All mistakes in all files are reported
// together.
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
			if err == nil && !d.IsDir() && filepath.Ext(file) == Extension {
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
		if err == nil && !d.IsDir() && path.Ext(file) == Extension {
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
		return nil, fmt.Errorf("no transcript found; in a directory their names end in %s", Extension)
	}
	return out, errors.Join(bad...)
}
