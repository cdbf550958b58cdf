package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// completionsCmd prints what switches on completion in a shell. The shell then
// asks this program itself, with COMP_LINE in the environment.
type completionsCmd struct {
	Shell string `arg:"" optional:"" predictor:"shell" help:"bash, zsh or fish; by default what SHELL names."`
}

// completionScripts register this program (%s is a command that starts it, quoted
// as one word of the shell) as the completer of the command fabro.
var completionScripts = map[string]string{
	"bash": "complete -o default -C %s fabro\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C %s fabro\n",
	"fish": "complete -c fabro -f -a %s\n",
}

// quote makes one word of a shell's command line out of any text. What needs no
// quotes gets none.
func quote(shell, text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+:@", r)
	}) {
		return text
	}
	if shell == "fish" {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (c *completionsCmd) Run(g *globals) error {
	shell := c.Shell
	if shell == "" {
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
	command := quote(shell, self) // the shell reads it a second time when it completes
	if shell == "fish" {
		command = "(env COMP_LINE=(commandline -cp) " + command + ")"
	}
	fmt.Fprintf(g.stdout, script, quote(shell, command))
	return nil
}
