package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"fabro-mcp/fabroapi"
	"fabro-mcp/internal/embedded"
	"fabro-mcp/internal/logs"
	"fabro-mcp/protocol"
	"fabro-mcp/tools"
)

var lookPath = exec.LookPath

// targetFlags say which Fabro server a command talks to.
type targetFlags struct {
	Server     string `env:"FABRO_SERVER" placeholder:"URL|SOCKET" help:"Fabro server: an http(s) URL or the absolute path of a Unix socket. Default: what settings.toml names, a local Fabro server, or the embedded one, which starts by itself."`
	StorageDir string `env:"FABRO_STORAGE_DIR" placeholder:"DIR" help:"Where the local server keeps its files (default: <fabro home>/storage)."`
}

// connector finds the server when it is first needed.
func (t targetFlags) connector(log *slog.Logger) *fabroapi.Connector {
	env := environment()
	return &fabroapi.Connector{
		Server:     t.Server,
		StorageDir: t.StorageDir,
		Env:        env,
		Options:    fabroapi.Options{UserAgent: "fabro-mcp/" + version(), Logger: log},
		StartEmbedded: func(ctx context.Context, storageDir string) (string, string, error) {
			config, err := embeddedConfig(storageDir)
			if err != nil {
				located := locateEmbedded(storageDir)
				located.Logger = log
				if endpoint, token, ok := embedded.Find(ctx, located); ok {
					return endpoint, token, nil
				}
				return "", "", err
			}
			config.Logger = log
			command, err := serveCommand(config)
			if err != nil {
				return "", "", err
			}
			return embedded.Ensure(ctx, config, command)
		},
	}
}

// connect is for commands that are nothing without a server.
func (t targetFlags) connect(ctx context.Context, g *globals) (*fabroapi.Client, error) {
	log, _, err := logs.New(logs.Options{Level: g.level(), Stderr: g.stderr})
	if err != nil {
		return nil, err
	}
	return t.connector(log).Connect(ctx)
}

// environment is the process's own: directories, variables.
func environment() fabroapi.Environment { return fabroapi.Environment{} }

// embeddedConfig reads embedded.toml, for the given storage directory or, when
// that is empty, the one that the environment names.
func embeddedConfig(storageDir string) (embedded.Config, error) {
	env := environment()
	return embedded.LoadConfig(env.Home(), env.StorageDir(storageDir), version())
}

// locateEmbedded is for what needs no settings: a mistake in embedded.toml must not
// keep anybody from a server that runs.
func locateEmbedded(storageDir string) embedded.Config {
	env := environment()
	return embedded.Locate(env.Home(), env.StorageDir(storageDir), version())
}

// serveCommand is how the daemon is started: this binary, by its own path.
func serveCommand(config embedded.Config) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, "server", "__serve", "--storage-dir", config.StorageDir}, nil
}

// toolFlags are those of `fabro mcp start` that decide what the server offers.
type toolFlags struct {
	targetFlags
	ReadOnly     bool         `help:"Offer only what looks: no tool that can create, change or answer a run."`
	Tools        toolNames    `placeholder:"NAME,..." help:"Offer only these tools."`
	ExcludeTools toolNames    `placeholder:"NAME,..." help:"Offer all tools but these."`
	Toolsets     toolsetNames `placeholder:"NAME,..." help:"Sets of tools to offer: runs (default), insight."`
	Root         directories  `placeholder:"DIR,..." help:"Refuse working directories, workflows and goal files outside DIR. May be repeated."`
	MaxWait      wait         `placeholder:"D" help:"Let one call wait no longer than this (such as 50s), for hosts that give up after a minute."`
}

// config is the configuration of the tools, without anything contacted yet.
func (f toolFlags) config(log *slog.Logger) (tools.Config, error) {
	env := environment()
	agent, err := env.AgentCommand()
	if err != nil {
		return tools.Config{}, usage{err}
	}
	for _, root := range f.Root {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return tools.Config{}, usage{fmt.Errorf("--root %s: there is no such directory, so everything would be refused", root)}
		}
	}
	return tools.Config{
		Connect:      f.connector(log).Connect,
		Env:          env,
		Cwd:          workingDir(),
		ReadOnly:     f.ReadOnly,
		Tools:        f.Tools,
		Exclude:      f.ExcludeTools,
		Toolsets:     f.Toolsets,
		Roots:        f.Root,
		MaxWait:      f.MaxWait.Duration,
		StateDir:     filepath.Join(env.StorageDir(f.StorageDir), "mcp"),
		Version:      version(),
		AgentCommand: agent,
		Logger:       log,
	}, nil
}

// server is the MCP server that the flags ask for.
func (f toolFlags) server(log *slog.Logger) (*protocol.Server, error) {
	config, err := f.config(log)
	if err != nil {
		return nil, err
	}
	server, err := tools.NewServer(config)
	if err != nil {
		return nil, usage{err}
	}
	server.Options.Logger = log
	return server, nil
}
