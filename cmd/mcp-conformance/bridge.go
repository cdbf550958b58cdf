package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"fabro-mcp/conformance/bridge"
)

type bridgeCmd struct {
	Listen string `default:"127.0.0.1:0" placeholder:"ADDRESS" help:"Loopback address; port 0 takes a free one (${default})."`
}

// Help is shown by bridge --help.
func (c *bridgeCmd) Help() string {
	return `Prints the URL on standard output and serves until interrupted. For the official suite:

  mcp-conformance bridge --listen 127.0.0.1:3900 -- ./server &
  npx -y @modelcontextprotocol/conformance@0.2.0-alpha.11 server --url http://127.0.0.1:3900/mcp --requirements 2026-07-28`
}

// Run serves until the context ends.
func (c *bridgeCmd) Run(w *world) error {
	if len(w.command) == 0 {
		return usageError{errors.New(`no server to bridge: write its command after "--"`)}
	}
	l, err := bridge.Listen(c.Listen)
	if err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	b := bridge.New(bridge.Config{Command: w.command, Stderr: w.stderr})
	defer b.Close()
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	fmt.Fprintf(w.stdout, "http://%s/mcp\n", l.Addr())
	select {
	case err := <-failed:
		return err
	case <-w.ctx.Done():
	}
	b.Close() // ends the streams, so that Shutdown has nothing to wait for
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
