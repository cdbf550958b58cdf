package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"fabro-mcp/tools/plain"

	"golang.org/x/term"
)

// checked is standard output that remembers the first error: not each line that a
// command prints is worth an error check, and none may be lost in silence (a full
// disk behind `fabro run list > FILE`).
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.err = err
	return n, err
}

// failed says that something could not be written. That nobody reads any more is
// no failure: the reader has seen enough.
func (c *checked) failed() error {
	if c.err == nil || errors.Is(c.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("the output is not complete: %w", c.err)
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	if c, ok := w.(*checked); ok {
		w = c.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// complain prints an error. What it quotes may come from anywhere, so nothing in it
// may act on the terminal.
func complain(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "fabro: %s\n", plain.Clean(err.Error()))
}

// workingDir is where relative paths begin. A directory that has been deleted, or
// may not be entered, is still known by the name that the shell gave it: paths below
// it then fail with that name, and absolute ones work.
func workingDir() string {
	if cwd, err := os.Getwd(); err == nil {
		return cwd
	}
	if cwd := os.Getenv("PWD"); filepath.IsAbs(cwd) {
		return cwd
	}
	return string(filepath.Separator)
}
