package engine

import (
	"slices"
	"strings"
)

// secretEndings are the ends of variable names (in lower case) that a command does not get to see. Fabro's local runs
// filter the same names. An agent command is not filtered: it may need its own key.
var secretEndings = []string{"_api_key", "_secret", "_token", "_password", "_credential"}

// keptVariables pass the filter whatever their names end with.
var keptVariables = []string{"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "GOPATH", "CARGO_HOME", "NVM_DIR"}

// commandEnv is the environment of a command: the daemon's own, filtered, and over it the environment table of the
// run's settings, filtered the same way. Names are compared as they are; the later of two equal ones wins.
func commandEnv(own []string, table map[string]string) []string {
	env := make([]string, 0, len(own)+len(table))
	for _, entry := range own {
		if name, _, ok := strings.Cut(entry, "="); ok && passes(name) {
			env = append(env, entry)
		}
	}
	names := make([]string, 0, len(table))
	for name := range table {
		if passes(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		env = append(env, name+"="+table[name])
	}
	return env
}

func passes(name string) bool {
	if slices.Contains(keptVariables, name) {
		return true
	}
	if name == "BASH_ENV" {
		return false
	}
	lower := strings.ToLower(name)
	return !slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(lower, end) })
}
