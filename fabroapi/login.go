package fabroapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"fabro-mcp/fabroapi/auth"
	"fabro-mcp/internal/atomicfile"
	"fabro-mcp/internal/workflow"
)

// LoginOptions are the settings of `fabro auth login`.
type LoginOptions struct {
	Env Environment
	// Server is what --server said; empty means FABRO_SERVER or [cli.target].
	Server string
	// DevToken logs in with a dev token instead of a browser.
	DevToken string
	// Open opens an address in the person's browser; nil (--no-browser) only
	// shows it.
	Open func(address string) error
	// Show tells the person the address of the login page.
	Show func(address string)
	// Timeout bounds a login in the browser; 0 means five minutes.
	Timeout time.Duration
}

// LoginResult says what a login did.
type LoginResult struct {
	Server string `json:"server"`
	Kind   string `json:"kind"`
	// Login is the name of the person, empty for a dev token.
	Login string `json:"login,omitempty"`
	// SettingsPath is the settings file that now names the server as the default,
	// empty when it named one already.
	SettingsPath string `json:"settings_path,omitempty"`
}

// ErrNoLoginTarget is returned where a login needs a server over HTTP.
var ErrNoLoginTarget = errors.New("`fabro auth` needs a Fabro server over HTTP; name it with --server https://HOST (FABRO_SERVER). The embedded server needs no login")

// httpTarget is the server that a login is about.
func httpTarget(env Environment, server string) (Target, error) {
	target, _, err := (&Connector{Server: server, Env: env}).Explicit()
	if err != nil {
		return Target{}, err
	}
	if target.IsZero() || target.IsUnix() {
		return Target{}, ErrNoLoginTarget
	}
	return target, nil
}

// Login logs in and stores the credential. Where no settings file names a server
// yet, this one becomes the default.
func Login(ctx context.Context, opts LoginOptions) (*LoginResult, error) {
	target, err := httpTarget(opts.Env, opts.Server)
	if err != nil {
		return nil, err
	}
	noProxy, err := opts.Env.ProxyDisabled()
	if err != nil {
		return nil, err
	}
	var entry auth.Entry
	if opts.DevToken != "" {
		entry, err = devTokenEntry(ctx, target, strings.TrimSpace(opts.DevToken), noProxy)
	} else {
		entry, err = browserEntry(ctx, target, opts, noProxy)
	}
	if err != nil {
		return nil, err
	}
	if err := (auth.Store{Path: opts.Env.AuthFile()}).Put(ctx, target.String(), entry); err != nil {
		return nil, err
	}
	result := &LoginResult{Server: target.String(), Kind: entry.Kind}
	if entry.Subject != nil {
		result.Login = entry.Subject.Login
	}
	if result.SettingsPath, err = rememberTarget(opts.Env.SettingsPath(), target); err != nil {
		return result, fmt.Errorf("logged in to %s, but it could not be made the default server: %w", target, err)
	}
	return result, nil
}

// settleTime is how long a server may take to show that it is there before the
// person is asked to log in there. A slow one is waited for beside the person.
const settleTime = time.Second

// browserEntry sends the person to the server's login page, unless it is certain
// that nobody can open it.
func browserEntry(ctx context.Context, target Target, opts LoginOptions, noProxy bool) (auth.Entry, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		if err := hopeless(ctx, target, noProxy); err != nil {
			cancel(err)
		}
	}()
	defer func() {
		cancel(nil)
		<-checked
	}()
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-checked:
	case <-timer.C:
	}
	if ctx.Err() != nil {
		return auth.Entry{}, context.Cause(ctx)
	}
	return auth.Browser{Server: target.String(), Show: opts.Show, Open: opts.Open, Timeout: opts.Timeout, NoProxy: noProxy}.Login(ctx)
}

// hopeless says why a server cannot be reached. Nil is an answer of any kind, and
// also silence: what takes long may yet come.
func hopeless(ctx context.Context, target Target, noProxy bool) error {
	client, err := NewClient(Options{Target: target, NoProxy: noProxy, Retries: -1})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Health(ctx)
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var transport *TransportError
	switch {
	case !errors.As(err, &transport) || ctx.Err() != nil || errors.As(err, &dns) && !dns.IsNotFound:
		return nil
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") && !op.Timeout(), errors.As(err, &certificate):
		return fmt.Errorf("cannot log in: %w", err)
	}
	return nil
}

// devTokenEntry checks a dev token with the server before it is kept.
func devTokenEntry(ctx context.Context, target Target, token string, noProxy bool) (auth.Entry, error) {
	if !auth.ValidDevToken(token) {
		return auth.Entry{}, errors.New("a dev token is fabro_dev_ followed by 64 hex digits; this is not one")
	}
	client, err := NewClient(Options{Target: target, Token: StaticToken(token), NoProxy: noProxy})
	if err != nil {
		return auth.Entry{}, err
	}
	defer client.Close()
	if _, err := client.ListRuns(ctx, ListRunsOptions{Limit: 1}); errors.Is(err, ErrLoginRequired) {
		return auth.Entry{}, fmt.Errorf("the server at %s does not accept this dev token; see server.dev-token in its storage directory, then run `fabro auth login` again", target)
	} else if err != nil {
		return auth.Entry{}, err
	}
	at := time.Now().UTC().Truncate(time.Second)
	return auth.Entry{Kind: auth.KindDevToken, Token: token, LoggedInAt: &at}, nil
}

// rememberTarget appends [cli.target] to a settings file that has none and
// returns the path, or "" when nothing was changed. What is in the file stays as
// it is, byte for byte.
func rememberTarget(path string, target Target) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	perm := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		perm = info.Mode().Perm()
	}
	plain, err := workflow.Text(text)
	if err != nil {
		return "", fmt.Errorf("reading config file %s: %w", path, err)
	}
	var settings, after map[string]any
	if err := toml.Unmarshal([]byte(plain), &settings); err != nil {
		return "", settingsError(path, err)
	}
	if cli, ok := settings["cli"].(map[string]any); ok && cli["target"] != nil {
		return "", nil
	}
	added := strings.TrimRight(string(text), "\n")
	if added == "" {
		added = "_version = 1"
	}
	added += "\n\n[cli.target]\ntype = \"http\"\nurl = \"" + target.String() + "\"\n"
	if plain, err = workflow.Text([]byte(added)); err == nil {
		err = toml.Unmarshal([]byte(plain), &after)
	}
	if err != nil {
		return "", fmt.Errorf("add the table [cli.target] to %s by hand: its [cli] is written in a way that cannot be added to", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := atomicfile.Write(path, []byte(added), perm); err != nil {
		return "", err
	}
	return path, nil
}

// Logout removes the login to a server and tells the server, if it can be
// reached. removed is false when there was none. notTold is why the server does
// not know: the login is gone from this machine all the same.
func Logout(ctx context.Context, env Environment, server string) (target string, removed bool, notTold, err error) {
	where, err := httpTarget(env, server)
	if err != nil {
		return "", false, nil, err
	}
	target = where.String()
	store := auth.Store{Path: env.AuthFile()}
	entry, ok, err := store.Get(ctx, target)
	if err != nil || !ok {
		return target, false, nil, err
	}
	if entry.Kind == auth.KindOAuth && entry.RefreshToken != "" {
		noProxy, err := env.ProxyDisabled()
		if err != nil {
			return target, false, nil, err
		}
		notTold = auth.Revoke(ctx, target, entry.RefreshToken, noProxy)
	}
	removed, err = store.Delete(ctx, target, "")
	return target, removed, notTold, err
}

// States of ServerLogin.OAuthState.
const (
	LoginActive      = "active"
	LoginRefreshable = "expired_refreshable"
	LoginExpired     = "expired"
)

// ServerLogin is one line of `fabro auth status`. It holds no credential.
type ServerLogin struct {
	Kind       string     `json:"kind"` // oauth or dev-token
	Server     string     `json:"server"`
	OAuthState string     `json:"oauth_state,omitempty"`
	Login      string     `json:"login,omitempty"`
	Name       string     `json:"name,omitempty"`
	Email      string     `json:"email,omitempty"`
	LoggedInAt *time.Time `json:"logged_in_at,omitempty"`
	// AccessExpiresAt and RefreshExpiresAt are set for oauth.
	AccessExpiresAt  *time.Time `json:"access_token_expires_at,omitempty"`
	RefreshExpiresAt *time.Time `json:"refresh_token_expires_at,omitempty"`
}

// AuthStatus lists the logins of the auth store, sorted by server. Nothing is
// contacted.
func AuthStatus(ctx context.Context, env Environment) ([]ServerLogin, error) {
	logins, err := auth.Store{Path: env.AuthFile()}.List(ctx)
	if err != nil {
		return nil, err
	}
	out := []ServerLogin{}
	now := time.Now()
	for _, login := range logins {
		line := ServerLogin{Kind: login.Kind, Server: login.Server, LoggedInAt: login.LoggedInAt}
		if login.Kind == auth.KindOAuth {
			line.AccessExpiresAt, line.RefreshExpiresAt = login.AccessTokenExpiresAt, login.RefreshTokenExpiresAt
			line.OAuthState = oauthState(login.Entry, now)
			if who := login.Subject; who != nil {
				line.Login, line.Name, line.Email = who.Login, who.Name, who.Email
			}
		}
		out = append(out, line)
	}
	return out, nil
}

func oauthState(entry auth.Entry, now time.Time) string {
	switch {
	case entry.AccessTokenExpiresAt == nil || now.Before(*entry.AccessTokenExpiresAt):
		return LoginActive
	case entry.Usable(now):
		return LoginRefreshable
	}
	return LoginExpired
}
