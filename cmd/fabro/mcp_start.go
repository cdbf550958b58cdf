package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"fabro-mcp/internal/logs"
	"fabro-mcp/protocol"
)

// mcpStartCmd serves one host. Standard output carries protocol only.
type mcpStartCmd struct {
	toolFlags
	LogFile         string `type:"path" placeholder:"FILE" help:"Append the log to FILE (hosts hide standard error)."`
	LogLevel        string `placeholder:"LEVEL" help:"debug, info, warn or error (default: warn)."`
	MaxMessageBytes size   `placeholder:"N" help:"Largest message taken (default 64MiB)."`
	MaxResultBytes  size   `placeholder:"N" help:"Largest result sent (default 10MiB)."`
	ParentWatchdog  bool   `help:"End when the process that started this one is gone, even if something holds its pipe open."`
}

func (c *mcpStartCmd) Run(ctx context.Context, g *globals) error {
	level := c.LogLevel
	if level == "" {
		level = g.level()
	}
	log, flush, err := logs.New(logs.Options{Level: level, File: c.LogFile, Stderr: g.stderr})
	if err != nil {
		return usage{err}
	}
	defer flush()

	server, err := c.server(log)
	if err != nil {
		return err
	}
	server.Options.MaxMessageBytes = int(c.MaxMessageBytes)
	server.Options.MaxResultBytes = int(c.MaxResultBytes)

	if term.IsTerminal(int(os.Stdin.Fd())) && !g.Quiet {
		fmt.Fprintln(g.stderr, "fabro: this waits for the messages of an MCP host, which starts it by itself once `fabro mcp init` has told it how. Ctrl-D ends it.")
	}
	self, err := os.Executable()
	if err != nil {
		log.Warn("the program's own file is unknown; an upgrade will go unnoticed", "error", err)
	}
	err = protocol.Run(ctx, server, protocol.RunOptions{Executable: self, ParentWatchdog: c.ParentWatchdog})
	if errors.Is(err, protocol.ErrPeerGone) {
		return nil // the host closed our standard output: there is nobody left to tell
	}
	return err
}

// size reads a number of bytes: 1048576, 512KiB, 64MiB.
type size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *size) UnmarshalText(text []byte) error {
	number, shift := string(text), 0
	for suffix, bits := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, shift = n, bits
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
	if err != nil || n == 0 || n<<shift > 1<<40 {
		return &sizeError{string(text)}
	}
	*s = size(n << shift)
	return nil
}

type sizeError struct{ text string }

func (e *sizeError) Error() string {
	return strconv.Quote(e.text) + " is no size: write a number of bytes, or for example 512KiB or 64MiB"
}
