package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"fabro-mcp/fabroapi"
	"fabro-mcp/internal/hosts"
)

// mcpCmd groups what concerns MCP hosts.
type mcpCmd struct {
	Start  mcpStartCmd  `cmd:"" help:"Serve MCP on standard input and output. Hosts start this."`
	Config mcpConfigCmd `cmd:"" help:"Print the entry for a host's configuration."`
	Init   mcpInitCmd   `cmd:"" help:"Put the entry into a host's configuration: claude, cursor or windsurf."`
	Tools  mcpToolsCmd  `cmd:"" help:"List the tools of the server."`
	Call   mcpCallCmd   `cmd:"" help:"Call one tool, as a host would."`
}

// entryFlags are the flags of `fabro mcp start` that go into a host's entry.
type entryFlags struct {
	Server     string `env:"FABRO_SERVER" placeholder:"URL|SOCKET" help:"Fabro server: an http(s) URL or the absolute path of a Unix socket."`
	StorageDir string `env:"FABRO_STORAGE_DIR" placeholder:"DIR" help:"Where the local server keeps its files."`
}

// entry is what a host runs. The command is the bare name, as hosts find it on
// their PATH wherever the binary moves.
func (f entryFlags) entry() (hosts.Entry, error) {
	args := []string{"mcp", "start"}
	if f.Server != "" {
		if _, err := fabroapi.ParseTarget(f.Server); err != nil {
			return hosts.Entry{}, usage{fmt.Errorf("--server: %w", err)} // here, not at each start of the host
		}
		args = append(args, "--server", f.Server)
	}
	if f.StorageDir != "" {
		args = append(args, "--storage-dir", f.StorageDir)
	}
	return hosts.Entry{Command: "fabro", Args: args}, nil
}

type mcpConfigCmd struct{ entryFlags }

func (c *mcpConfigCmd) Run(g *globals) error {
	entry, err := c.entry()
	if err != nil {
		return err
	}
	return g.printJSON(map[string]any{"mcpServers": map[string]any{"fabro": entry}})
}

type mcpInitCmd struct {
	entryFlags
	Agent string `arg:"" name:"host" predictor:"host" help:"The host: claude (Claude Desktop and Claude Code), cursor or windsurf."`
}

// written is one line of what `fabro mcp init --json` prints.
type written struct {
	Host     string       `json:"host"`
	Path     string       `json:"path"`
	Changed  bool         `json:"changed"`
	Replaced *hosts.Entry `json:"replaced,omitempty"` // what the host started before
}

func (c *mcpInitCmd) Run(g *globals) error {
	host, err := hosts.Find(strings.ToLower(c.Agent))
	if err != nil {
		return usage{err}
	}
	entry, err := c.entry()
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // no home: Files says so
	files, err := host.Files(hosts.System{OS: runtime.GOOS, Home: home, Getenv: os.Getenv})
	if err != nil {
		return err
	}
	report, failures := []written{}, []error(nil)
	for _, file := range files {
		change, err := hosts.Install(file, "fabro", entry)
		if err != nil {
			failures = append(failures, err) // one broken file keeps no other from being written
			continue
		}
		for _, warning := range hosts.Warnings(file) {
			complain(g.stderr, errors.New("warning: "+warning))
		}
		if change.Old != nil { // told even with --quiet: a flag that is gone may have been a restriction
			complain(g.stderr, fmt.Errorf("note: in %s the entry was %s and is now %s", file.Path, commandLine(*change.Old), commandLine(change.New)))
		}
		report = append(report, written{file.Title, file.Path, change.Written, change.Old})
		if change.Written {
			g.say("%s: wrote %s", file.Title, file.Path)
		} else {
			g.say("%s: %s is up to date", file.Title, file.Path)
		}
	}
	if g.JSON {
		failures = append(failures, g.printJSON(map[string]any{"files": report}))
	}
	if err := errors.Join(failures...); err != nil || g.JSON {
		return err
	}
	g.say("%s", host.Next)
	if _, err := lookPath("fabro"); err != nil && !g.Quiet {
		fmt.Fprintln(g.stderr, "fabro: note: no `fabro` is on your PATH; hosts start it by that name (see Install in the README)")
	}
	return nil
}

// commandLine shows an entry so that each word can be told from the next.
func commandLine(e hosts.Entry) string {
	words := []string{strconv.Quote(e.Command)}
	for _, a := range e.Args {
		words = append(words, strconv.Quote(a))
	}
	return strings.Join(words, " ")
}
