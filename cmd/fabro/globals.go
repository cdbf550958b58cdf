package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/term"
)

// release is set by the linker in a release build.
var release = ""

// version names this build: the release, or the commit that Go recorded.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "0.1.0-dev+" + s.Value[:12]
			}
		}
	}
	return "0.1.0-dev"
}

// globals are the flags that every command takes.
type globals struct {
	JSON           bool `name:"json" env:"FABRO_JSON" help:"Print JSON for scripts."`
	Debug          bool `env:"FABRO_DEBUG" help:"Log everything to standard error."`
	Quiet          bool `env:"FABRO_QUIET" xor:"volume" help:"Print errors only."`
	Verbose        bool `env:"FABRO_VERBOSE" xor:"volume" help:"Print more."`
	NoUpgradeCheck bool `env:"FABRO_NO_UPGRADE_CHECK" help:"Accepted for scripts written for Fabro; this build never checks."`

	stdout, stderr io.Writer
}

// level is the log level that the flags ask for.
func (g *globals) level() string {
	switch {
	case g.Debug:
		return "debug"
	case g.Verbose:
		return "info"
	case g.Quiet:
		return "error"
	}
	return ""
}

// say prints what a person wants to know and a script does not.
func (g *globals) say(format string, args ...any) {
	if !g.Quiet && !g.JSON {
		fmt.Fprintf(g.stdout, format+"\n", args...)
	}
}

// printJSON prints a value, indented and with a final newline.
func (g *globals) printJSON(v any) error {
	enc := json.NewEncoder(g.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// interactive tells whether a person sits at both ends.
func (g *globals) interactive() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && isTerminal(g.stdout)
}
