package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"fabro-mcp/conformance/record"
	"fabro-mcp/internal/atomicfile"
)

type recordCmd struct {
	Output string   `short:"o" required:"" placeholder:"FILE" help:"The transcript to write."`
	Title  string   `help:"Its title."`
	Redact []string `sep:"none" placeholder:"TEXT" help:"A text that must not be written; may be repeated. Values of secret-looking members and variables are left out in any case."`
}

// Help is shown by record --help.
func (c *recordCmd) Help() string {
	return `Put it in front of the server in a client's configuration:

  mcp-conformance record -o session.txtar -- ./server --flag

Every byte is passed on unchanged. The file holds a script to replay with "mcp-conformance run session.txtar -- ./server --flag", and the raw lines with their times.`
}

// Run passes everything through and leaves with the server's exit code.
func (c *recordCmd) Run(w *world) error {
	if len(w.command) == 0 {
		return usageError{errors.New(`no server to record: write its command after "--"`)}
	}
	// Signals are the server's to answer, so they do not end us before it.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	code, err := record.Run(context.WithoutCancel(w.ctx), record.Config{
		Command: w.command, Stdin: w.stdin, Stdout: w.stdout, Stderr: w.stderr, Title: c.Title, Redact: c.Redact, Signals: signals,
		Write: func(text []byte) error { return atomicfile.Write(c.Output, text, 0o600) },
	})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if code != 0 {
		return exit(max(code, 1))
	}
	return nil
}
