package workflow

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// referenceDir is the folder of real workflow files.
func referenceDir(t testing.TB) string {
	dir := os.Getenv("FABRO_REFERENCE_DATA")
	if dir == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: the real workflow files are not here")
	}
	return filepath.Join(dir, "data", "workflows")
}

func realFiles(t testing.TB, dir string) []string {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".fabro" {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// findings writes errors and warnings, and with infos everything, one a line.
func findings(list []Diagnostic, infos bool) []string {
	lines := []string{}
	for _, d := range list {
		if infos || d.Severity != SeverityInfo {
			about := d.NodeID
			if about == "" && d.Edge != nil {
				about = d.Edge[0] + "->" + d.Edge[1]
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d:%d %s %s %s", d.Line, d.Column, d.Severity, d.Rule, about)))
		}
	}
	return lines
}
