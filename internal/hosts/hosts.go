package hosts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is how a host starts a stdio server: one member of `mcpServers`.
type Entry struct {
	Command string   `json:"command"` // a program name or path, without arguments
	Args    []string `json:"args"`    // its arguments, each one word
}

// File is one configuration file of a host.
type File struct {
	Title    string // the program that reads it, as its users call it
	Path     string // absolute
	Comments bool   // the host tolerates comments and trailing commas in it
}

// Host is an MCP host that Fabro can configure.
type Host struct {
	Name  string // as typed: `fabro mcp init NAME`
	Title string
	Next  string // what its user does after the file has changed
	files func(System) []File
}

// System says where a user's files are. OS takes the values of runtime.GOOS.
type System struct {
	OS     string
	Home   string
	Getenv func(string) string
}

// known lists the hosts in the order in which help texts name them.
var known = []Host{
	{
		Name: "claude", Title: "Claude Desktop and Claude Code",
		Next: "Restart Claude Desktop; Claude Code reads the file when it starts.",
		files: func(s System) []File {
			return []File{
				{Title: "Claude Desktop", Path: filepath.Join(s.configDir(), "Claude", "claude_desktop_config.json")},
				{Title: "Claude Code", Path: filepath.Join(s.Home, ".claude.json")},
			}
		},
	},
	{
		Name: "cursor", Title: "Cursor",
		Next: "Switch the server on in Cursor's settings under MCP.",
		files: func(s System) []File {
			return []File{{Title: "Cursor", Path: filepath.Join(s.Home, ".cursor", "mcp.json"), Comments: true}}
		},
	},
	{
		Name: "windsurf", Title: "Windsurf",
		Next: "Press refresh in Windsurf's MCP panel.",
		files: func(s System) []File {
			return []File{{Title: "Windsurf", Path: filepath.Join(s.Home, ".codeium", "windsurf", "mcp_config.json")}}
		},
	},
}

// Names lists the hosts that Find knows.
func Names() []string {
	names := make([]string, len(known))
	for i, h := range known {
		names[i] = h.Name
	}
	return names
}

// Find returns the host of that name. The error lists the names there are.
func Find(name string) (Host, error) {
	i := slices.IndexFunc(known, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, fmt.Errorf("unknown host %q: use one of %s", name, strings.Join(Names(), ", "))
	}
	return known[i], nil
}

// Files lists the files of the host that hold its servers, in the order in
// which they are written.
func (h Host) Files(s System) ([]File, error) {
	if s.Home == "" {
		return nil, fmt.Errorf("cannot tell where the configuration of %s is: no home directory (set HOME)", h.Title)
	}
	return h.files(s), nil
}

// configDir is where desktop programs keep their settings on that system.
func (s System) configDir() string {
	switch s.OS {
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support")
	case "windows":
		if dir := s.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(s.Home, "AppData", "Roaming")
	}
	if dir := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(s.Home, ".config")
}
