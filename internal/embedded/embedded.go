// Package embedded is the Fabro server inside this binary: a daemon of one storage directory that runs workflows and
// answers the Fabro API on a socket only its owner can reach.
//
//	Ensure   finds a living server or starts one, detached (ensure.go, spawn_*.go)
//	Serve    is the server itself (serve.go): lock, log, token, store, runs, listener, record, idle stop, orderly end
//	Status, Stop, Prune   look at and act on a server from outside (control.go)
//
// Everything is below <storage>/embedded, never among the files of a real Fabro server:
//
//	server.lock    held while a server lives; the lock, not a pid, says whether it does
//	server.json    where it listens, its pid and version
//	token          the bearer token of every request but health
//	embedded.sock  the socket; where the path is too long for one, in a private directory that server.json names
//	fabro.db       the runs
//	server.log     its log, rotated
//	runs/          one directory a run, for live output
//
// The rooms below: store (SQLite), projection (events to state), engine (executes one workflow), runs (queues, lifecycle), api (HTTP).
// The package may import fabroapi/wire, internal/workflow, internal/atomicfile and internal/plural.
package embedded

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Defaults of Config.
const (
	DefaultIdleStop     = 30 * time.Minute
	DefaultStartTimeout = 15 * time.Second
	DefaultLookEvery    = 5 * time.Second
)

// Config says which server is meant and how it behaves. StorageDir is required; LoadConfig fills in the rest.
type Config struct {
	// StorageDir is Fabro's storage directory; the embedded server keeps to <StorageDir>/embedded.
	StorageDir string
	FabroHome  string
	Version    string
	// Logger takes the server's log, nil: server.log; and the warnings of Ensure, nil: nobody.
	Logger *slog.Logger
	// IdleStop is after how long without requests and without work the server ends; 0: DefaultIdleStop, negative: never.
	IdleStop time.Duration
	// LookEvery is how often the server looks whether its storage directory, record and socket are still there; 0: DefaultLookEvery.
	LookEvery time.Duration
	// StartTimeout is how long Ensure waits for a server it has started; 0: DefaultStartTimeout.
	StartTimeout time.Duration
	// MaxConcurrentRuns and MaxRunBytes: see runs.Config.
	MaxConcurrentRuns int
	MaxRunBytes       int64
	// Retention is after how long ended runs are removed; 0: never.
	Retention time.Duration
	// Synchronous is SQLite's setting, see store.Options.
	Synchronous string
	// AgentCommand does agent and prompt stages of runs that bring no command of their own.
	AgentCommand []string
	// KeepPath switches off that a poor PATH is replaced by that of the login shell.
	KeepPath bool
}

func (c *Config) dir() string          { return filepath.Join(c.StorageDir, "embedded") }
func (c *Config) file(n string) string { return filepath.Join(c.dir(), n) }
func (c *Config) lockPath() string     { return c.file("server.lock") }
func (c *Config) recordPath() string   { return c.file("server.json") }
func (c *Config) tokenPath() string    { return c.file("token") }
func (c *Config) logPath() string      { return c.file("server.log") }
func (c *Config) dbPath() string       { return c.file("fabro.db") }
func (c *Config) runsDir() string      { return c.file("runs") }

func (c *Config) idleStop() time.Duration {
	if c.IdleStop == 0 {
		return DefaultIdleStop
	}
	return c.IdleStop
}

func (c *Config) startTimeout() time.Duration {
	if c.StartTimeout == 0 {
		return DefaultStartTimeout
	}
	return c.StartTimeout
}

func (c *Config) lookEvery() time.Duration {
	if c.LookEvery == 0 {
		return DefaultLookEvery
	}
	return c.LookEvery
}

// makeDir makes the server's directory, readable by its owner alone, also when it was there with another mode.
func (c *Config) makeDir() error {
	if err := os.MkdirAll(c.dir(), 0o700); err != nil {
		return err
	}
	return os.Chmod(c.dir(), 0o700)
}
