package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// completionsCmd prints what switches on completion in a shell. The shell then
// asks this program itself, with COMP_LINE in the environment.
type completionsCmd struct {
	Shell string `arg:"" optional:"" enum:"bash,zsh,fish,auto" default:"auto" help:"bash, zsh or fish; by default what SHELL names."`
}

// completionScripts register this program (%[1]s is its path) as the completer of
// the command fabro.
var completionScripts = map[string]string{
	"bash": "complete -o default -C %[1]q fabro\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C %[1]q fabro\n",
	"fish": "complete -c fabro -f -a '(env COMP_LINE=(commandline -cp) %[1]q)'\n",
}

func (c *completionsCmd) Run(g *globals) error {
	shell := c.Shell
	if shell == "auto" {
		path := os.Getenv("SHELL")
		if path == "" {
			return usage{errors.New("SHELL is not set: name one of bash, zsh, fish")}
		}
		shell = filepath.Base(path)
	}
	script, ok := completionScripts[shell]
	if !ok {
		return usage{fmt.Errorf("no completion for the shell %q: name one of bash, zsh, fish", shell)}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(g.stdout, script, self)
	return nil
}
