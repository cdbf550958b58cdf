// Package logs sets up the log of a process that must never wait for it: an MCP
// server whose host may not read its standard error at all.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"fabro-mcp/transport"
)

const (
	queueLines = 1024                   // what may wait for a slow reader
	flushWait  = 100 * time.Millisecond // how long the end waits for one
)

// Options say where the log goes and how much of it there is.
type Options struct {
	Level  string    // debug, info, warn or error; empty: warn
	File   string    // appended to; empty: none
	Stderr io.Writer // nil: nothing goes there
}

// Levels are the values that Options.Level takes.
var Levels = []string{"debug", "info", "warn", "error"}

// New returns a logger and a function that flushes it, waiting a short time at
// most. With a file, everything goes to the file and only errors to Stderr too.
func New(o Options) (*slog.Logger, func(), error) {
	level := slog.LevelWarn
	if o.Level != "" {
		if err := level.UnmarshalText([]byte(o.Level)); err != nil {
			return nil, nil, fmt.Errorf("unknown log level %q: use one of %s", o.Level, strings.Join(Levels, ", "))
		}
	}
	var writers []*transport.LossyWriter
	var handlers fan
	add := func(w io.Writer, level slog.Level) {
		q := transport.NewLossyWriter(w, queueLines)
		writers = append(writers, q)
		handlers = append(handlers, slog.NewTextHandler(q, &slog.HandlerOptions{Level: level}))
	}
	var file *os.File
	if o.File != "" {
		var err error
		if file, err = os.OpenFile(o.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, nil, fmt.Errorf("cannot open the log file: %w", err)
		}
		add(file, level)
		if o.Stderr != nil {
			add(o.Stderr, max(level, slog.LevelError))
		}
	} else if o.Stderr != nil {
		add(o.Stderr, level)
	}
	flush := func() {
		deadline := time.NewTimer(flushWait)
		defer deadline.Stop()
		for _, q := range writers {
			select {
			case <-q.Close():
			case <-deadline.C:
			}
		}
		if file != nil {
			// What could not be written by now is lost; there is no log left to say so in.
			_ = file.Close()
		}
	}
	return slog.New(handlers), flush, nil
}
