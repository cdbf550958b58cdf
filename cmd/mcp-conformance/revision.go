package main

import (
	"fmt"
	"os"
	"path/filepath"

	"fabro-mcp/conformance/revdiff"
)

type revisionCmd struct {
	Diff revisionDiffCmd `cmd:"" help:"What came, went or changed between two schema files, as a Markdown checklist."`
}

type revisionDiffCmd struct {
	Old string `arg:"" type:"existingfile" name:"old.json" help:"schema.json of the older revision."`
	New string `arg:"" type:"existingfile" name:"new.json" help:"schema.json of the newer revision."`
}

// Run prints the checklist.
func (c *revisionDiffCmd) Run(w *world) error {
	read := func(path string) (*revdiff.Schema, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := revdiff.Parse(data)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", path, err)}
		}
		return s, nil
	}
	old, err := read(c.Old)
	if err != nil {
		return err
	}
	new, err := read(c.New)
	if err != nil {
		return err
	}
	return revdiff.WriteMarkdown(w.stdout, title(c.Old), title(c.New), revdiff.Compare(old, new))
}

// title names a revision by its file, or by its folder where the file is
// called schema.json as the official ones are.
func title(path string) string {
	base := filepath.Base(path)
	if base == "schema.json" {
		if abs, err := filepath.Abs(path); err == nil {
			return filepath.Base(filepath.Dir(abs))
		}
	}
	return base[:len(base)-len(filepath.Ext(base))]
}
