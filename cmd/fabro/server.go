package main

import (
	"context"
	"errors"

	"fabro-mcp/internal/embedded"
	"fabro-mcp/internal/logs"
	"fabro-mcp/internal/plural"
)

// serverCmd is about the embedded server of this machine, never a real one.
type serverCmd struct {
	Start  serverStartCmd  `cmd:"" help:"Start the embedded server, unless it runs already."`
	Status serverStatusCmd `cmd:"" help:"Say whether the embedded server runs, where and since when."`
	Stop   serverStopCmd   `cmd:"" help:"Stop the embedded server in order; runs that are under way are closed as terminated."`
	Prune  serverPruneCmd  `cmd:"" help:"Delete the embedded server's ended runs that are older than a time."`
	Serve  serverServeCmd  `cmd:"" name:"__serve" hidden:""`
}

// storageFlags name the storage directory of a server.
type storageFlags struct {
	StorageDir string `env:"FABRO_STORAGE_DIR" placeholder:"DIR" help:"Where it keeps its files (default: <fabro home>/storage)."`
}

type serverStartCmd struct {
	storageFlags
	Foreground bool `help:"Stay in the foreground until interrupted, and log to standard error."`
}

func (c *serverStartCmd) Run(ctx context.Context, g *globals) error {
	if c.Foreground {
		return c.serve(ctx, g, "info")
	}
	config, err := embeddedConfig(c.StorageDir)
	if err != nil {
		return err
	}
	command, err := serveCommand(config)
	if err != nil {
		return err
	}
	endpoint, _, err := embedded.Ensure(ctx, config, command)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"endpoint": endpoint})
	}
	g.say("The embedded Fabro server runs on %s", endpoint)
	return nil
}

// serverServeCmd is the daemon that Ensure starts: standard streams lead nowhere.
type serverServeCmd struct{ storageFlags }

func (c *serverServeCmd) Run(ctx context.Context, g *globals) error { return c.serve(ctx, g, "") }

func (f storageFlags) serve(ctx context.Context, g *globals, level string) error {
	config, err := embeddedConfig(f.StorageDir)
	if err != nil {
		return err
	}
	if level != "" {
		if l := g.level(); l != "" {
			level = l
		}
		log, flush, err := logs.New(logs.Options{Level: level, Stderr: g.stderr})
		if err != nil {
			return err
		}
		defer flush()
		config.Logger = log
	}
	return embedded.Serve(ctx, config)
}

type serverStopCmd struct{ storageFlags }

func (c *serverStopCmd) Run(ctx context.Context, g *globals) error {
	err := embedded.Stop(ctx, locateEmbedded(c.StorageDir))
	if err != nil && !errors.Is(err, embedded.ErrNotRunning) {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"state": embedded.Stopped.String(), "was_running": err == nil})
	}
	if err != nil {
		g.say("The embedded Fabro server was not running.")
	} else {
		g.say("The embedded Fabro server is stopped.")
	}
	return nil
}

type serverPruneCmd struct {
	storageFlags
	OlderThan age `required:"" placeholder:"D" help:"Age since the run ended, such as 12h or 30d."`
}

func (c *serverPruneCmd) Run(ctx context.Context, g *globals) error {
	config, err := embeddedConfig(c.StorageDir)
	if err != nil {
		return err
	}
	report, err := embedded.Prune(ctx, config, c.OlderThan.Duration)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(report)
	}
	g.say("Deleted %s.", plural.Count(report.Runs, "run"))
	return nil
}

type serverStatusCmd struct{ storageFlags }

func (c *serverStatusCmd) Run(ctx context.Context, g *globals) error {
	record, state, err := embedded.Status(ctx, locateEmbedded(c.StorageDir))
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"state": state.String(), "record": record})
	}
	if record == nil {
		g.say("The embedded Fabro server is %s.", state)
		return nil
	}
	where := record.Bind.Unix
	if where == "" {
		where = "http://" + record.Bind.TCP
	}
	if state == embedded.Unresponsive {
		defer g.say("It lives and does not answer: it starts, stops, or is making its socket again, which takes seconds; or it is stuck, and `fabro server stop` ends it.")
	}
	g.say("The embedded Fabro server is %s.\n  pid      %d\n  address  %s\n  version  %s\n  since    %s\n  log      %s",
		state, record.PID, where, record.Version, record.StartedAt.Local().Format("2006-01-02 15:04:05"), record.LogPath)
	return nil
}
