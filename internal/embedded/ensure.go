package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/api"
)

// pollEvery is how often a starting server is looked for.
const pollEvery = 10 * time.Millisecond

// StartError says that a server that was started did not come up.
type StartError struct {
	StorageDir string
	Cause      error
	Log        string // the last lines of its log
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("the embedded server of %s did not start: %v", e.StorageDir, e.Cause)
	if e.Log != "" {
		text += "\nThe end of its log:\n" + e.Log
	}
	return text
}

func (e *StartError) Unwrap() error { return e.Cause }

// Ensure returns where the embedded server of a storage directory can be reached (an absolute socket path or an http
// URL) and its token. When none lives it starts one, detached, by running executable, an argv that ends up in Serve,
// and waits until it answers. A living server of an older version is replaced when it has nothing to do.
func Ensure(ctx context.Context, cfg Config, executable []string) (where, token string, err error) {
	if where, token, ok := Find(ctx, cfg); ok {
		return where, token, nil
	}
	if len(executable) == 0 {
		return "", "", errors.New("no program to start the embedded server with")
	}
	if err := cfg.makeDir(); err != nil {
		return "", "", fmt.Errorf("the embedded server needs a directory of its own: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.startTimeout())
	defer cancel()
	// One starter at a time; the others find what it started.
	starting := flock.New(cfg.file("start.lock"), flock.SetPermissions(0o600))
	if _, err := starting.TryLockContext(ctx, pollEvery); err != nil && ctx.Err() == nil {
		return "", "", &StartError{cfg.StorageDir, err, ""}
	} else if err != nil {
		return "", "", &StartError{cfg.StorageDir, errors.New("somebody else is starting it and takes too long"), tail(cfg.logPath(), 0, 10)}
	}
	defer starting.Unlock()
	if rec := cfg.readRecord(); rec != nil && cfg.healthy(ctx, rec) {
		if !cfg.outdated(ctx, rec) {
			return endpoint(rec), cfg.readToken(), nil
		}
		if err := Stop(ctx, cfg); err != nil {
			return "", "", fmt.Errorf("the embedded server is of version %s and could not be stopped to be replaced: %w", rec.Version, err)
		}
	}
	rec, err := cfg.start(ctx, executable)
	if err != nil {
		return "", "", err
	}
	return endpoint(rec), cfg.readToken(), nil
}

// Find returns the socket path or URL and the token of the server that runs, answers and need not be replaced. What
// Locate says is enough for it.
func Find(ctx context.Context, cfg Config) (where, token string, ok bool) {
	rec := cfg.readRecord()
	if rec == nil || !cfg.healthy(ctx, rec) || cfg.outdated(ctx, rec) {
		return "", "", false
	}
	return endpoint(rec), cfg.readToken(), true
}

// startTries is how often a server is started that ends in an orderly way before it was seen: somebody stopped it.
const startTries = 3

// start runs a server and waits for it. When another one holds the lock, that one is waited for: it starts, stops, or
// listens anew because its socket was removed (keepSocket).
func (c *Config) start(ctx context.Context, executable []string) (*wire.ServerRecord, error) {
	var logged int64
	if info, err := os.Stat(c.logPath()); err == nil {
		logged = info.Size()
	}
	fail := func(cause error) error {
		said := tail(c.logPath(), logged, 10)
		if said == "" {
			// A server that could not even log: perhaps nothing can be written here.
			cause = errors.Join(cause, c.tryWriting())
		}
		return &StartError{c.StorageDir, cause, said}
	}
	var exited <-chan error
	if c.free() {
		var err error
		if exited, err = c.run(executable); err != nil {
			return nil, fail(err)
		}
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for try := 1; ; {
		if rec := c.readRecord(); rec != nil && c.healthy(ctx, rec) {
			return rec, nil
		}
		select {
		case err := <-exited:
			switch {
			case !c.free():
				exited = nil // another server lives or comes up
			case err != nil || try == startTries:
				return nil, fail(errors.Join(errors.New("it ended at once"), err))
			default:
				if exited, err = c.run(executable); err != nil {
					return nil, fail(err)
				}
				try++
			}
		case <-ctx.Done():
			if exited == nil {
				return nil, fail(c.deaf())
			}
			return nil, fail(fmt.Errorf("it did not answer within %s", c.startTimeout()))
		case <-tick.C:
			if exited == nil && c.free() {
				// The one that was waited for is gone without having answered.
				var err error
				if exited, err = c.run(executable); err != nil {
					return nil, fail(err)
				}
			}
		}
	}
}

// deaf says that a living server does not answer, and how to be rid of it.
func (c *Config) deaf() error {
	who, where := "another one", ""
	if rec := c.readRecord(); rec != nil {
		who, where = fmt.Sprintf("another one (pid %d)", rec.PID), " on "+endpoint(rec)
	}
	return fmt.Errorf("%s holds %s and did not answer%s within %s; end it with `fabro server stop` and try again", who, c.lockPath(), where, c.startTimeout())
}

// tryWriting says why nothing can be written into the server's directory.
func (c *Config) tryWriting() error {
	f, err := os.CreateTemp(c.dir(), ".try-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	_, err = f.Write(make([]byte, 64<<10))
	return err
}

// run starts a server and tells when it ends. Somebody has to wait for it for as long as this process lives, or it
// would stay a zombie then.
func (c *Config) run(executable []string) (<-chan error, error) {
	cmd, err := c.spawn(executable)
	if err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return exited, nil
}

// free reports whether no server holds the lock.
func (c *Config) free() bool {
	lock, err := c.tryLock()
	if lock != nil {
		lock.Unlock()
	}
	return lock != nil && err == nil
}

// spawn runs executable with nothing of ours: no terminal, no directory, no descriptors.
func (c *Config) spawn(executable []string) (*exec.Cmd, error) {
	closeOnExec()
	log, err := os.OpenFile(c.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(executable[0], executable[1:]...)
	cmd.Dir = rootDir
	cmd.Stderr = log // what the runtime says before the server has its log; nil elsewhere is the null device
	cmd.SysProcAttr = detached()
	// What belongs to one run or one client does not belong to a server of all.
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "FABRO_AGENT_COMMAND", "FABRO_RUN_ID", "FABRO_STAGE_ID", "FABRO_NODE_ID":
		default:
			cmd.Env = append(cmd.Env, entry)
		}
	}
	return cmd, cmd.Start()
}

// outdated reports whether a living server is of an older version and may be replaced. A busy one is used as it is, with a warning.
func (c *Config) outdated(ctx context.Context, rec *wire.ServerRecord) bool {
	if !older(rec.Version, c.Version) {
		return false
	}
	busy, err := c.busy(ctx, rec)
	if err == nil && !busy {
		return true
	}
	if c.Logger != nil {
		c.Logger.Warn("the embedded server is of another version and has runs to finish; it is used as it is", "server", rec.Version, "client", c.Version)
	}
	return false
}

// busy reports whether a server has runs that are queued or executing.
func (c *Config) busy(ctx context.Context, rec *wire.ServerRecord) (bool, error) {
	var page struct {
		Data []struct{} `json:"data"`
	}
	err := c.client(rec).do(ctx, "GET", wire.APIPrefix+"/runs?page%5Blimit%5D=1&include_archived=true&"+api.BusyQuery, nil, &page)
	return len(page.Data) > 0, err
}
