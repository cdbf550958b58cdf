package workflow

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fabro-mcp/internal/workflow/template"
)

// graph collects what one graph file refers to: the root graph of a unit, or one
// it imports.
func (b *bundler) graph(u *unit, path, key, text string) error {
	g, err := Parse(key, []byte(text))
	if err != nil {
		return &BundleError{Message: "Failed to parse " + path, Err: err}
	}
	if err := b.text(u, &g.Attrs, "goal", path, key); err != nil {
		return placed(err, "", g.Attrs.At("goal"))
	}
	for _, n := range g.Nodes {
		if err := b.text(u, &n.Attrs, "prompt", path, key); err != nil {
			return placed(err, n.ID, n.Attrs.At("prompt"))
		}
		if schema, _ := n.Attrs.String("output_schema"); strings.HasPrefix(schema, "@") {
			if err := b.add(u, RefFileInline, "file inline reference", schema[1:], path, key); err != nil {
				return placed(err, n.ID, n.Attrs.At("output_schema"))
			}
		}
		if reference, ok := n.Attrs.String("import"); ok {
			if err := b.imported(u, reference, path, key); err != nil {
				return placed(err, n.ID, n.Attrs.At("import"))
			}
		}
		if reference, ok := n.Attrs.String("stack.child_workflow"); ok {
			if err := b.childWorkflow(reference, path); err != nil {
				return placed(err, n.ID, n.Attrs.At("stack.child_workflow"))
			}
		}
	}
	return nil
}

// placed notes which reference led to an error, unless that is known from
// further down.
func placed(err error, node string, at Position) error {
	var fault *BundleError
	if errors.As(err, &fault) && !fault.At.Known() {
		fault.NodeID, fault.At = node, at
	}
	return err
}

// text collects the file behind an `@file` value, and the includes of the text.
func (b *bundler) text(u *unit, a *Attrs, attribute, path, key string) error {
	value, ok := a.String(attribute)
	if !ok {
		return nil
	}
	reference, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return b.includes(u, value, path, key, key)
	}
	what := "file inline reference"
	if attribute == "goal" {
		what = "graph goal file reference"
		if _, err := CleanKey(reference); err != nil && !template.HasSyntax(reference) {
			return &BundleError{Message: "unsupported manifest goal reference: " + value, Err: err}
		}
	}
	filePath, fileKey, err := b.resolve(u, RefFileInline, what, reference, path, key)
	if err != nil || u.done[fileKey] {
		return err
	}
	u.done[fileKey] = true
	return b.includes(u, u.files[fileKey], filePath, fileKey, fileKey)
}

// includes follows the static includes of a template, in all its branches. from
// is the file at the root of the chain.
func (b *bundler) includes(u *unit, text, path, key, from string) error {
	const what = "failed to discover template dependencies: "
	list, err := template.References(key, text)
	var dynamic *template.DynamicError
	switch {
	case errors.As(err, &dynamic):
		return &BundleError{Message: fmt.Sprintf("%sdynamic template dependency in `%s` must be declared explicitly", what, key)}
	case err != nil:
		return &BundleError{Message: fmt.Sprintf("%sinvalid template `%s`", what, key), Err: err}
	}
	for _, r := range list {
		if _, err := CleanKey(r.Name); err != nil {
			return &BundleError{Message: fmt.Sprintf("%sunsafe template reference `%s` from `%s`", what, r.Name, key), Err: err}
		}
		target := absolute(filepath.Dir(path), r.Name)
		root := u.dir
		if !below(root, path) {
			root = filepath.Dir(path)
		}
		realRoot, err := filepath.EvalSymlinks(root)
		if err != nil {
			return &BundleError{Message: what + "no template root", Err: err}
		}
		escapes := &BundleError{Message: fmt.Sprintf("%sfailed to load a template dependency of `%s`: template reference `%s` from `%s` escapes template root `%s`", what, from, r.Name, key, root)}
		if !below(root, target) {
			return escapes
		}
		if isMissing(target) {
			if r.IgnoreMissing {
				continue
			}
			return &BundleError{Message: fmt.Sprintf("%smissing template dependency `%s` from `%s`", what, r.Name, key)}
		}
		if real, err := filepath.EvalSymlinks(target); err != nil || !below(realRoot, real) {
			return escapes
		}
		targetKey, err := b.key(target)
		if err != nil {
			return err
		}
		if _, there := u.files[targetKey]; !there {
			content, err := b.read(target, r.Name, key, realRoot)
			if err != nil {
				return err
			}
			u.files[targetKey] = content
			u.refs[targetKey] = FileRef{Type: RefFileInline, Original: targetKey, From: from}
		}
		if u.done[targetKey] {
			continue
		}
		u.done[targetKey] = true
		if err := b.includes(u, u.files[targetKey], target, targetKey, from); err != nil {
			return err
		}
	}
	return nil
}

func (b *bundler) imported(u *unit, reference, path, key string) error {
	filePath, fileKey, err := b.resolve(u, RefImport, "import reference", reference, path, key)
	if err != nil || u.seen[fileKey] {
		return err
	}
	u.seen[fileKey] = true
	return b.graph(u, filePath, fileKey, u.files[fileKey])
}

// childWorkflow adds the workflow of a manager loop as one of its own. The
// reference is a selector, relative to the graph that has it.
func (b *bundler) childWorkflow(reference, path string) error {
	switch {
	case template.HasSyntax(reference):
		return &BundleError{Message: "templates are not supported in child workflow references: " + reference}
	case strings.HasPrefix(reference, "~"):
		return &BundleError{Message: "unsupported manifest workflow reference: " + reference}
	}
	loc, err := Locate(reference, filepath.Dir(path), b.home)
	if err != nil {
		return &BundleError{Message: fmt.Sprintf("child workflow %q", reference), Err: err}
	}
	_, err = b.workflow(loc)
	return err
}
