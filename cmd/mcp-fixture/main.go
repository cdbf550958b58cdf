// Command mcp-fixture is an MCP server for tests: it offers everything that a
// conformance suite asks for, and the tools that show whether a server survives
// what broke others. It is also the example of how to build a server on package
// protocol: server.go puts it together, the other files hold one kind of feature
// each.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"fabro-mcp/protocol"
	"fabro-mcp/transport"
)

func main() { os.Exit(run(os.Args[1:])) }

// settings are what the flags say.
type settings struct {
	stateDir      string
	minimal       bool
	noTasks       bool
	modernOnly    bool
	pageSize      int
	stateTTL      time.Duration
	maxMessage    int
	maxResult     int
	maxHandlers   int
	watchdog      bool
	watchBinary   bool
	verbose       bool
	listTTL       time.Duration
	drain         time.Duration
	handlersQueue int
}

func run(args []string) int {
	var s settings
	flags := flag.NewFlagSet("mcp-fixture", flag.ContinueOnError)
	flags.StringVar(&s.stateDir, "state-dir", "", "keep tasks, handles and the sealing key in this `directory`, so that another process knows them")
	flags.BoolVar(&s.minimal, "minimal", false, "offer nothing at all")
	flags.BoolVar(&s.noTasks, "no-tasks", false, "offer no tasks")
	flags.BoolVar(&s.modernOnly, "modern-only", false, "speak 2026-07-28 only")
	flags.IntVar(&s.pageSize, "page-size", 0, "entries in one page of a list (0: no paging)")
	flags.DurationVar(&s.stateTTL, "state-ttl", 0, "how long a requestState is good (0: one hour)")
	flags.DurationVar(&s.listTTL, "list-ttl", 0, "how long clients may keep lists")
	flags.DurationVar(&s.drain, "drain", 0, "how long calls may go on after the end of input (0: two seconds)")
	flags.IntVar(&s.maxMessage, "max-message-bytes", 0, "longest message that is read (0: 64 MiB)")
	flags.IntVar(&s.maxResult, "max-result-bytes", 0, "longest response that is written (0: just below 10 MiB)")
	flags.IntVar(&s.maxHandlers, "max-handlers", 0, "handlers at work at once (0: 64)")
	flags.IntVar(&s.handlersQueue, "max-queued", 0, "requests that wait for a handler (0: 1024)")
	flags.BoolVar(&s.watchdog, "parent-watchdog", false, "end when the parent process dies")
	flags.BoolVar(&s.watchBinary, "watch-executable", false, "end when this program's file is replaced")
	flags.BoolVar(&s.verbose, "verbose", false, "log to standard error what is ignored")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	logs := transport.NewLossyWriter(os.Stderr, 256)
	logger := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))

	opts := protocol.RunOptions{ParentWatchdog: s.watchdog}
	if s.watchBinary {
		if path, err := os.Executable(); err == nil {
			opts.Executable = path
		}
	}
	server, err := newServer(s, logger)
	if err == nil {
		err = protocol.Run(context.Background(), server, opts)
	}
	if err != nil {
		fmt.Fprintln(logs, "mcp-fixture:", err)
	}
	select {
	case <-logs.Close():
	case <-time.After(100 * time.Millisecond): // nobody reads standard error
	}
	if err != nil {
		return 1
	}
	return 0
}
