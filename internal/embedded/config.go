package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"fabro-mcp/internal/embedded/runs"
	"fabro-mcp/internal/workflow"
)

// ConfigName is the settings file of the embedded server in the Fabro home. settings.toml belongs to Fabro, which
// refuses tables it does not know.
const ConfigName = "embedded.toml"

// settingsFile is embedded.toml.
type settingsFile struct {
	Agent struct {
		Command []string `toml:"command"`
	} `toml:"agent"`
	Server struct {
		IdleStop  string `toml:"idle_stop"`  // a duration, or "never"
		LoginPath *bool  `toml:"login_path"` // default true
	} `toml:"server"`
	Runs struct {
		MaxConcurrent int    `toml:"max_concurrent"`
		MaxRunBytes   int64  `toml:"max_run_bytes"`
		Retention     string `toml:"retention"` // a duration, or "forever"
	} `toml:"runs"`
	Store struct {
		Synchronous string `toml:"synchronous"`
	} `toml:"store"`
}

// Locate is the configuration without embedded.toml: enough to find, ask and stop a server, whatever is in that file.
func Locate(fabroHome, storageDir, version string) Config {
	cfg := Config{StorageDir: storageDir, FabroHome: fabroHome, Version: version}
	if abs, err := filepath.Abs(storageDir); err == nil {
		cfg.StorageDir = abs
	}
	return cfg
}

// LoadConfig reads <fabroHome>/embedded.toml; a missing file means defaults. Unknown keys are refused with their line.
func LoadConfig(fabroHome, storageDir, version string) (Config, error) {
	cfg := Locate(fabroHome, storageDir, version)
	path := filepath.Join(fabroHome, ConfigName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return cfg, err
	}
	text, err := workflow.Text(data)
	if err != nil {
		return cfg, fmt.Errorf("%s: %w", path, err)
	}
	var f settingsFile
	dec := toml.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		var strict *toml.StrictMissingError
		var bad *toml.DecodeError
		switch {
		case errors.As(err, &strict) && len(strict.Errors) > 0:
			row, _ := strict.Errors[0].Position()
			return cfg, fmt.Errorf("%s:%d: unknown key %s", path, row, strings.Join(strict.Errors[0].Key(), "."))
		case errors.As(err, &bad):
			fault := workflow.TOMLFaultOf(err)
			if fault.Key != "" {
				fault.Key += ": "
			}
			return cfg, fmt.Errorf("%s:%d:%d: %s%s", path, fault.Line, fault.Column, fault.Key, fault.Message)
		}
		return cfg, fmt.Errorf("%s: %w", path, err)
	}
	cfg.AgentCommand = f.Agent.Command
	if len(cfg.AgentCommand) > 0 && cfg.AgentCommand[0] == "" {
		return cfg, fmt.Errorf("%s: agent.command must begin with a program", path)
	}
	cfg.KeepPath = f.Server.LoginPath != nil && !*f.Server.LoginPath
	if cfg.IdleStop, err = setting(f.Server.IdleStop, `"45m" or "2h"`, "never", -1); err != nil {
		return cfg, fmt.Errorf("%s: server.idle_stop: %w", path, err)
	}
	if cfg.Retention, err = setting(f.Runs.Retention, `"36h" or "30d"`, "forever", 0); err != nil {
		return cfg, fmt.Errorf("%s: runs.retention: %w", path, err)
	}
	if f.Runs.MaxConcurrent < 0 || f.Runs.MaxRunBytes < 0 {
		return cfg, fmt.Errorf("%s: runs.max_concurrent and runs.max_run_bytes must be above 0", path)
	}
	cfg.MaxConcurrentRuns, cfg.MaxRunBytes = f.Runs.MaxConcurrent, f.Runs.MaxRunBytes
	switch f.Store.Synchronous {
	case "", "normal", "full":
		cfg.Synchronous = f.Store.Synchronous
	default:
		return cfg, fmt.Errorf("%s: store.synchronous must be \"normal\" or \"full\", not %q", path, f.Store.Synchronous)
	}
	return cfg, nil
}

// setting reads a duration, such as one of the examples; the word stands for value, and nothing for 0.
func setting(text, examples, word string, value time.Duration) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case word:
		return value, nil
	}
	d, err := ParseAge(text)
	if err != nil {
		return 0, fmt.Errorf("%w; write for example %s, or %q", err, examples, word)
	}
	return d, nil
}

// ParseAge reads a duration of Go's form or a whole number of days or weeks: "90m", "36h", "30d", "2w". It is above 0.
// The error leaves it to the caller to give examples.
func ParseAge(text string) (time.Duration, error) { return runs.ParseAge(text) }
