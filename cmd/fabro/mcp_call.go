package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"fabro-mcp/internal/logs"
	"fabro-mcp/internal/mcpclient"
	"fabro-mcp/internal/workflow"
	"fabro-mcp/tools/plain"
	"fabro-mcp/transport"
)

type mcpToolsCmd struct{ toolFlags }

func (c *mcpToolsCmd) Run(ctx context.Context, g *globals) error {
	return c.inProcess(ctx, g, func(client *mcpclient.Client) error {
		list, err := client.ListTools(ctx)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.printJSON(map[string]any{"tools": list})
		}
		w := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
		for _, t := range list {
			line, _, _ := strings.Cut(t.Description, "\n")
			fmt.Fprintf(w, "%s\t%s\n", t.Name, line)
		}
		return w.Flush()
	})
}

type mcpCallCmd struct {
	toolFlags
	Tool      string `arg:"" help:"Name of the tool, as fabro mcp tools lists it."`
	Arguments string `arg:"" optional:"" default:"{}" help:"Its arguments, a JSON object; - reads them from standard input."`
}

func (c *mcpCallCmd) Run(ctx context.Context, g *globals) error {
	text := []byte(c.Arguments)
	if c.Arguments == "-" {
		var err error
		if text, err = readInput(os.Stdin); err != nil {
			return err
		}
	}
	if err := checkArguments(text); err != nil {
		return usage{fmt.Errorf("the arguments of %s must be one JSON object, such as '{\"run_id\":\"…\"}': %w", c.Tool, err)}
	}
	return c.inProcess(ctx, g, func(client *mcpclient.Client) error {
		result, err := client.CallTool(ctx, c.Tool, json.RawMessage(text), func(p mcpclient.Progress) {
			if g.interactive() && p.Message != "" {
				fmt.Fprintf(g.stderr, "… %s\n", plain.Clean(p.Message))
			}
		})
		if err != nil {
			return c.explain(ctx, client, err)
		}
		if g.JSON {
			out := map[string]any{"isError": result.IsError, "text": result.Text()}
			if result.Structured != nil {
				out["structuredContent"] = result.Structured
			}
			if err := g.printJSON(out); err != nil {
				return err
			}
		} else if result.IsError {
			fmt.Fprintln(g.stderr, plain.Clean(result.Text()))
		} else {
			fmt.Fprintln(g.stdout, plain.Clean(result.Text()))
		}
		if result.IsError {
			return silent{exitError}
		}
		return nil
	})
}

// readInput reads text that a person's shell pipes in, where some shells begin
// with a byte-order mark.
func readInput(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text, err := workflow.Text(data)
	if err != nil {
		return nil, usage{fmt.Errorf("standard input: %w", err)}
	}
	return []byte(text), nil
}

// checkArguments says why text is no JSON object.
func checkArguments(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch value.(type) {
	case map[string]any, nil:
		return nil
	case []any:
		return errors.New("this is an array")
	}
	return fmt.Errorf("this is the value %.100v", value)
}

// explain turns the refusal of a tool that does not exist into the names there are.
func (c *mcpCallCmd) explain(ctx context.Context, client *mcpclient.Client, err error) error {
	list, lerr := client.ListTools(ctx)
	if lerr != nil {
		return err
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	if slices.Contains(names, c.Tool) {
		return err
	}
	return fmt.Errorf("there is no tool %q; with these flags there are: %s", plain.Line(c.Tool, 100), strings.Join(names, ", "))
}

// inProcess runs the MCP server of the flags in this process and f as its host,
// so that what is shown is what a host would get.
func (f toolFlags) inProcess(ctx context.Context, g *globals, use func(*mcpclient.Client) error) error {
	log, flush, err := logs.New(logs.Options{Level: g.level(), Stderr: g.stderr})
	if err != nil {
		return err
	}
	defer flush()
	server, err := f.server(log)
	if err != nil {
		return err
	}

	host, peer := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, peer) }()
	options := mcpclient.Options{Name: "fabro-cli", Version: version()}
	if g.interactive() {
		options.Answer = terminal{in: os.Stdin, out: g.stderr}.answer
	}
	client := mcpclient.New(ctx, host, options)
	_, err = client.Discover(ctx)
	if err == nil {
		err = use(client)
	}
	// Close ends the server's input; it stops, and its own error matters only
	// when nothing went wrong before.
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	if serr := <-served; err == nil {
		err = serr
	}
	return err
}
