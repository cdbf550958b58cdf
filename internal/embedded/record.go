package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/atomicfile"
)

// readRecord returns the record of the last server that lived, or nil. It may be stale.
func (c *Config) readRecord() *wire.ServerRecord {
	text, err := os.ReadFile(c.recordPath())
	if err != nil {
		return nil
	}
	rec := &wire.ServerRecord{}
	if json.Unmarshal(text, rec) != nil || rec.Bind.Unix == "" && rec.Bind.TCP == "" {
		return nil
	}
	return rec
}

func (c *Config) writeRecord(rec *wire.ServerRecord) error {
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(c.recordPath(), append(text, '\n'), 0o600)
}

// readToken returns the token of the storage directory, or "".
func (c *Config) readToken() string {
	text, err := os.ReadFile(c.tokenPath())
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// token returns the token of the storage directory, made when there is none. It is only called with the lock held, so
// that nobody else makes one.
func (c *Config) token() (string, error) {
	if t := c.readToken(); goodToken(t) {
		return t, os.Chmod(c.tokenPath(), 0o600)
	}
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", err
	}
	t := hex.EncodeToString(raw)
	return t, atomicfile.Write(c.tokenPath(), []byte(t+"\n"), 0o600)
}

// goodToken tells a token from what a crash or another program may have left in its place.
func goodToken(t string) bool {
	return 32 <= len(t) && len(t) <= 512 && !strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' })
}

// keepToken puts the token of a living server back where its clients look for it, when it is there no more.
func (c *Config) keepToken(token string) error {
	if c.readToken() == token {
		return nil
	}
	return atomicfile.Write(c.tokenPath(), []byte(token+"\n"), 0o600)
}

// endpoint is how a record says where to connect: an absolute path or an http URL.
func endpoint(rec *wire.ServerRecord) string {
	if rec.Bind.Unix != "" {
		return rec.Bind.Unix
	}
	return "http://" + rec.Bind.TCP
}

// errUnauthorized means that a server does not take our token.
var errUnauthorized = errors.New("the embedded server does not take the token of its storage directory")

// client talks to the server of a record.
type client struct {
	http  *http.Client
	base  string
	token string
}

func (c *Config) client(rec *wire.ServerRecord) *client {
	cl := &client{base: "http://fabro", token: c.readToken()}
	transport := &http.Transport{DisableKeepAlives: true}
	if rec.Bind.Unix != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", rec.Bind.Unix)
		}
	} else {
		cl.base = "http://" + rec.Bind.TCP
	}
	cl.http = &http.Client{Transport: transport}
	return cl
}

func (cl *client) do(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, cl.base+path, content)
	if err != nil {
		return err
	}
	if goodToken(cl.token) { // anything else could not be sent
		req.Header.Set("Authorization", "Bearer "+cl.token)
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return errUnauthorized
	}
	if resp.StatusCode >= 400 {
		var env wire.ErrorEnvelope
		if json.Unmarshal(text, &env) == nil && len(env.Errors) > 0 {
			return errors.New(env.Errors[0].Detail)
		}
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	if answer != nil {
		return json.Unmarshal(text, answer)
	}
	return nil
}

// healthTimeout is how long a living server may take to say that it is well. It is generous: a machine may be busy.
const healthTimeout = 2 * time.Second

// healthy reports whether the server of a record answers and takes our token. One that does not take it has just put
// its own where we look for it.
func (c *Config) healthy(ctx context.Context, rec *wire.ServerRecord) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	ask := func() error { return c.client(rec).do(ctx, http.MethodGet, wire.APIPrefix+"/auth/me", nil, nil) }
	err := ask()
	if errors.Is(err, errUnauthorized) {
		err = ask()
	}
	return err == nil
}

// maxSocketPath is how long the path of a socket may be on all systems we know: 104 bytes with the final NUL on macOS and the BSDs.
const maxSocketPath = 103

// socketPath is where the server of a storage directory listens: in its directory, or where that path is too long in a
// private directory of the user's whose name is derived from it.
func (c *Config) socketPath() (string, error) {
	path := c.file("embedded.sock")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" || len(base) > 60 {
		base = os.TempDir()
	}
	if len(base) > 60 {
		base = "/tmp"
	}
	dir := filepath.Join(base, fmt.Sprintf("fabro-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := checkPrivate(dir); err != nil {
		return "", fmt.Errorf("%s cannot be used for the server's socket: %w", dir, err)
	}
	path = filepath.Join(dir, hash(c.dir())+".sock")
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path %s is too long for a socket (%d bytes, at most %d)", path, len(path), maxSocketPath)
	}
	return path, nil
}
