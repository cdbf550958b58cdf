package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"text/tabwriter"

	"fabro-mcp/fabroapi"
)

// authCmd keeps the logins on Fabro servers over HTTP.
type authCmd struct {
	Login  authLoginCmd  `cmd:"" help:"Log in, in a browser or with a dev token."`
	Logout authLogoutCmd `cmd:"" help:"Forget the login on a server."`
	Status authStatusCmd `cmd:"" help:"List the logins there are."`
}

// serverFlag names the server of a login.
type serverFlag struct {
	Server string `env:"FABRO_SERVER" placeholder:"URL" help:"The server, an http(s) URL."`
}

type authLoginCmd struct {
	serverFlag
	DevToken  string `placeholder:"TOKEN" xor:"how" help:"Log in with a dev token."`
	NoBrowser bool   `xor:"how" help:"Print the address of the login page, and open nothing."`
	Timeout   wait   `default:"5m" placeholder:"D" help:"How long to wait for the login in the browser (default: 5m)."`
}

func (c *authLoginCmd) Run(ctx context.Context, g *globals) error {
	options := fabroapi.LoginOptions{
		Env: environment(), Server: c.Server, DevToken: c.DevToken, Timeout: c.Timeout.Duration,
		Open: openBrowser,
		Show: func(address string) { fmt.Fprintf(g.stderr, "Log in here:\n  %s\n", address) },
	}
	if c.NoBrowser {
		options.Open = nil
	}
	result, err := fabroapi.Login(ctx, options)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(result)
	}
	g.say("Logged in on %s.", result.Server)
	if result.SettingsPath != "" {
		g.say("It is now the default server (in %s).", result.SettingsPath)
	}
	return nil
}

// openBrowser hands an address to whatever opens addresses on this system.
func openBrowser(address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	return exec.Command(name, args...).Run()
}

type authLogoutCmd struct{ serverFlag }

func (c *authLogoutCmd) Run(ctx context.Context, g *globals) error {
	server, removed, notTold, err := fabroapi.Logout(ctx, environment(), c.Server)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"server": server, "removed": removed, "server_told": notTold == nil})
	}
	if !removed {
		g.say("There was no login on %s.", server)
		return nil
	}
	g.say("Logged out of %s.", server)
	if notTold != nil {
		fmt.Fprintf(g.stderr, "fabro: the server could not be told, so its side of the login lasts until it expires: %v\n", notTold)
	}
	return nil
}

type authStatusCmd struct{}

func (c *authStatusCmd) Run(ctx context.Context, g *globals) error {
	logins, err := fabroapi.AuthStatus(ctx, environment())
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"servers": logins})
	}
	if len(logins) == 0 {
		g.say("No logins. Add one with: fabro auth login --server https://HOST")
		return nil
	}
	w := tabwriter.NewWriter(g.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tKIND\tSTATE\tLOGIN")
	for _, l := range logins {
		state := l.OAuthState
		if state == "" {
			state = "active"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Server, l.Kind, state, l.Login)
	}
	return w.Flush()
}
