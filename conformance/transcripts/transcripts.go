// Package transcripts holds the suites: what an MCP server is sent over stdio and what it
// must answer, one behaviour a file. docs/transcripts.md describes the grammar.
//
// A file lies in the folder of the revision that brought its subject in, and its
// "revisions" line says at which it is played: what has held from the beginning is in
// 2024-11-05. The folders tasks, dual-era and process hold what is no matter of a single
// revision: the tasks extension, both eras in one process, and the process itself. The
// folder fabro is about one program, ours: its tools, resources, prompts and gates.
package transcripts

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"sort"
)

//go:embed */*.txtar
var files embed.FS

// FS is the tree of all built-in transcripts.
func FS() fs.FS { return files }

// Suites returns the names of the folders, sorted.
func Suites() []string {
	var names []string
	for _, p := range Paths() {
		if dir := path.Dir(p); !slices.Contains(names, dir) {
			names = append(names, dir)
		}
	}
	return names
}

// Paths returns the paths of all transcripts below FS, sorted.
func Paths() []string {
	paths, err := fs.Glob(files, "*/*.txtar")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	sort.Strings(paths)
	return paths
}
