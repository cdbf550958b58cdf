// Command mcp-conformance tells whether an MCP server over stdio does what the
// specification says. It parses flags and wires the rooms under conformance/;
// docs/transcripts.md and docs/ci.md are written for its users.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"fabro-mcp/conformance/report"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = ""

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

type cli struct {
	Run      runCmd      `cmd:"" help:"Play transcripts against a command."`
	Check    checkCmd    `cmd:"" help:"Judge any server: finds out what it offers, needs no fixtures."`
	Record   recordCmd   `cmd:"" help:"Sit between a client and a server and write a transcript."`
	Bridge   bridgeCmd   `cmd:"" help:"Put a stdio server behind Streamable HTTP on loopback."`
	Explain  explainCmd  `cmd:"" help:"Explain one requirement."`
	List     listCmd     `cmd:"" help:"List suites, transcripts, requirements and coverage."`
	Revision revisionCmd `cmd:"" help:"Tools for a maintainer who follows the specification."`

	Version kong.VersionFlag `help:"Print the version and exit."`
}

// world is what a command acts on, so that tests can hand in their own.
type world struct {
	ctx     context.Context
	command []string // what stands after --
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
}

// exit carries an exit code out of a command whose output says it all.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a mistake in how the command was called.
type usageError struct{ error }

const description = `Tells whether an MCP server over stdio does what the specification says, byte for byte, on every revision, and which sentence it breaks.

  mcp-conformance check -- ./my-server           judge any server
  mcp-conformance run tests/ -- ./my-server      play transcripts
  mcp-conformance record -o t.txtar -- ./server  write one from a real session

The command under test stands after "--". Exit codes: 0 good (warnings too, unless --strict), 1 failures, 2 usage, 3 nothing failed but a transcript needs a fixture that the server lacks (a run that is cut short is a 1).`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	w := &world{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	if i := slices.Index(args, "--"); i >= 0 {
		args, w.command = args[:i], args[i+1:]
	}
	var c cli
	left := -1
	parser, err := kong.New(&c, kong.Name("mcp-conformance"), kong.Description(description),
		kong.Vars{"version": "mcp-conformance " + versionText()}, kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { left = code }), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Bind(w))
	if err != nil {
		fmt.Fprintln(stderr, "mcp-conformance:", err)
		return report.ExitUsage
	}
	parser.Model.HelpFlag.Help = "Print this help and exit."
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctxParsed, err := parser.Parse(args)
	if left >= 0 {
		return left
	}
	if err != nil {
		var wrong *kong.ParseError
		place := "mcp-conformance"
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			place = wrong.Context.Selected().FullPath()
		}
		if strings.Contains(err.Error(), "unexpected argument") && w.command == nil {
			err = fmt.Errorf(`%w; the command under test stands after "--": %s -- ./my-server`, err, place)
		}
		fmt.Fprintf(stderr, "mcp-conformance: %v\nTry `%s --help`.\n", err, place)
		return report.ExitUsage
	}
	err = ctxParsed.Run(w)
	var code exit
	var usage usageError
	switch {
	case err == nil:
		return report.ExitGood
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "mcp-conformance: %v\n", err)
		return report.ExitUsage
	}
	fmt.Fprintf(stderr, "mcp-conformance: %v\n", err)
	return report.ExitFailed
}

// onTerminal reports whether a writer is a terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
