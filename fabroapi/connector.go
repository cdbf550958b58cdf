package fabroapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/auth"
	"fabro-mcp/fabroapi/wire"
)

// Connector finds the server to talk to and keeps the client for it. The order:
//
//  1. Server (a flag), or FABRO_SERVER,
//  2. [cli.target] of settings.toml,
//  3. a live local Fabro server, by its record in the storage directory,
//  4. the embedded server, started if need be.
//
// The first two are explicit: they are used whether they answer or not, and
// nothing else takes their place. Fields must not change after the first
// Connect.
type Connector struct {
	// Server is what a flag said, or "".
	Server string
	// StorageDir is what a flag said, or "".
	StorageDir string
	Env        Environment
	// StartEmbedded finds or starts the embedded server of a storage directory
	// and returns a socket path or URL and its token. Nil means there is none.
	StartEmbedded func(ctx context.Context, storageDir string) (endpoint, token string, err error)
	// Options are those of the clients; Target and Token are filled in.
	Options Options

	once       sync.Once
	connecting chan struct{} // holds one element while somebody connects

	mu     sync.Mutex // protects client
	client *Client
}

// Connect returns the client of the server that is to be used. Nothing is
// contacted for an explicit HTTP or socket target. A failure is not remembered,
// and neither is a server that has gone away: the next call looks again.
func (c *Connector) Connect(ctx context.Context) (*Client, error) {
	if client := c.current(); client != nil {
		return client, nil
	}
	// One connects, so that a server is started once; the others wait for that.
	c.once.Do(func() { c.connecting = make(chan struct{}, 1) })
	select {
	case c.connecting <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("gave up waiting for a Fabro server: %w", ctx.Err())
	}
	defer func() { <-c.connecting }()
	if client := c.current(); client != nil {
		return client, nil
	}
	client, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.client = client
	c.mu.Unlock()
	return client, nil
}

func (c *Connector) current() *Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// Close gives up the connections of the client, if there is one.
func (c *Connector) Close() {
	if client := c.current(); client != nil {
		client.Close()
	}
}

// Explicit returns the server that a flag, the environment or the settings name,
// and which of them did; the zero Target when none does.
func (c *Connector) Explicit() (target Target, origin string, err error) {
	if c.Server != "" {
		target, err = ParseTarget(c.Server)
		return target, "--server", wrapTarget("--server", err)
	}
	if text := c.Env.Get("FABRO_SERVER"); text != "" {
		target, err = ParseTarget(text)
		return target, "FABRO_SERVER", wrapTarget("FABRO_SERVER", err)
	}
	path := c.Env.SettingsPath()
	settings, err := readClientSettings(path)
	if err != nil {
		return Target{}, "", err
	}
	target, err = settings.target(path)
	return target, "[cli.target] of " + path, err
}

func wrapTarget(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", where, err)
}

func (c *Connector) connect(ctx context.Context) (*Client, error) {
	target, origin, err := c.Explicit()
	if err != nil {
		return nil, err
	}
	storage, err := filepath.Abs(c.Env.StorageDir(c.StorageDir))
	if err != nil {
		return nil, fmt.Errorf("cannot find the storage directory: %w", err)
	}
	if !target.IsZero() {
		client, err := c.newClient(target, c.explicitToken(target, storage))
		if err != nil {
			return nil, err
		}
		client.explicit, client.origin = true, origin
		return client, nil
	}
	if target, token, ok := c.localServer(ctx, storage); ok {
		client, err := c.newClient(target, token)
		if err != nil {
			return nil, err
		}
		client.gone = c.forget
		return client, nil
	}
	return c.connectEmbedded(ctx, storage)
}

// explicitToken is the credential for a server that the user named: the auth
// store's entry, and for a socket the local dev token where the store has none.
func (c *Connector) explicitToken(target Target, storage string) TokenSource {
	store := c.storeToken(target)
	if target.IsUnix() {
		return &fallbackToken{first: store, second: devTokenFile(storage)}
	}
	return store
}

func (c *Connector) storeToken(target Target) TokenSource {
	noProxy, _ := c.Env.ProxyDisabled() // newClient reports a bad value
	return &auth.Session{
		Store:   auth.Store{Path: c.Env.AuthFile()},
		Server:  target.String(),
		NoProxy: noProxy,
		Logger:  c.Options.Logger,
	}
}

func devTokenFile(storage string) DevTokenFile {
	return DevTokenFile(filepath.Join(storage, "server.dev-token"))
}

// localServer looks for a live Fabro server of the storage directory. Its record
// may be left over from one that crashed, so the server has to answer.
func (c *Connector) localServer(ctx context.Context, storage string) (Target, TokenSource, bool) {
	text, err := os.ReadFile(filepath.Join(storage, "server.json"))
	if err != nil {
		return Target{}, nil, false
	}
	var record wire.ServerRecord
	if err := json.Unmarshal(text, &record); err != nil {
		c.logger().Warn("ignoring a server record that is not JSON", "path", filepath.Join(storage, "server.json"))
		return Target{}, nil, false
	}
	address := record.Bind.Unix
	if address == "" && record.Bind.TCP != "" {
		address = "http://" + dialable(record.Bind.TCP)
	}
	target, err := ParseTarget(address)
	if err != nil {
		return Target{}, nil, false
	}
	var token TokenSource = devTokenFile(storage)
	if !target.IsUnix() {
		token = &fallbackToken{first: c.storeToken(target), second: devTokenFile(storage)}
	}
	return target, token, c.lives(ctx, target, record.PID)
}

// dialable turns the address a server listens on into one to call it by.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// probeTimeout is the time a local server has to say that it lives.
const probeTimeout = time.Second

// lives asks for the health of a server, without a credential. One that is too
// busy to answer in time is alive as long as its process is: starting another
// beside it would split the runs between two servers.
func (c *Connector) lives(ctx context.Context, target Target, pid int) bool {
	opts := c.Options
	opts.Target, opts.Token, opts.Retries, opts.NoProxy = target, nil, -1, true
	if opts.Timeout <= 0 || opts.Timeout > probeTimeout {
		opts.Timeout = probeTimeout
	}
	client, err := NewClient(opts)
	if err != nil {
		return false
	}
	defer client.Close()
	_, err = client.Health(ctx)
	var late *timeoutError
	return err == nil || errors.As(err, &late) && processExists(pid)
}

func processExists(pid int) bool {
	if pid <= 0 {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return false // on Windows: there is none
	}
	defer process.Release()
	if runtime.GOOS == "windows" {
		return true
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

func (c *Connector) connectEmbedded(ctx context.Context, storage string) (*Client, error) {
	if c.StartEmbedded == nil {
		return nil, errors.New("no Fabro server is running. Name one with --server (FABRO_SERVER), or start one with `fabro server start`")
	}
	start := func(ctx context.Context) (Target, TokenSource, error) {
		endpoint, token, err := c.StartEmbedded(ctx, storage)
		if err != nil {
			return Target{}, nil, fmt.Errorf("cannot start the embedded Fabro server for %s: %w", storage, err)
		}
		target, err := ParseTarget(endpoint)
		if err != nil {
			return Target{}, nil, fmt.Errorf("the embedded Fabro server for %s: %w", storage, err)
		}
		return target, StaticToken(token), nil
	}
	target, token, err := start(ctx)
	if err != nil {
		return nil, err
	}
	client, err := c.newClient(target, token)
	if err != nil {
		return nil, err
	}
	client.embedded = start
	if _, err := ulid.ParseStrict(c.Env.Get("FABRO_RUN_ID")); err == nil {
		client.runID = c.Env.Get("FABRO_RUN_ID")
	}
	return client, nil
}

func (c *Connector) newClient(target Target, token TokenSource) (*Client, error) {
	opts := c.Options
	opts.Target, opts.Token = target, token
	disabled, err := c.Env.ProxyDisabled()
	if err != nil {
		return nil, err
	}
	opts.NoProxy = opts.NoProxy || disabled
	return NewClient(opts)
}

// forget drops a client whose server is gone, so that the next Connect looks
// for another.
func (c *Connector) forget(gone *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == gone {
		c.client = nil
		gone.Close()
	}
}

func (c *Connector) logger() *slog.Logger {
	if c.Options.Logger != nil {
		return c.Options.Logger
	}
	return slog.New(slog.DiscardHandler)
}
