// Package auth keeps logins to Fabro servers: the auth store, the refreshing of
// OAuth sessions, and the login flow in a browser.
//
// Several processes share one store: every MCP host starts its own server. The
// store is therefore locked for each access, replaced as a whole, and refreshed
// under a second lock that is held across the network call, because a refresh
// token works only once and presenting it twice ends the login.
package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/internal/atomicfile"
)

// Kinds of Entry.Kind.
const (
	KindOAuth    = "oauth"
	KindDevToken = "dev-token"
)

// Entry is the login to one server. Token belongs to the kind dev-token, the
// members from AccessToken on to oauth.
type Entry struct {
	Kind       string     `json:"kind"`
	Token      string     `json:"token,omitempty"`
	LoggedInAt *time.Time `json:"logged_in_at,omitempty"`

	AccessToken           string     `json:"access_token,omitempty"`
	AccessTokenExpiresAt  *time.Time `json:"access_token_expires_at,omitempty"`
	RefreshToken          string     `json:"refresh_token,omitempty"`
	RefreshTokenExpiresAt *time.Time `json:"refresh_token_expires_at,omitempty"`
	Subject               *Subject   `json:"subject,omitempty"`
}

// Subject is who is logged in.
type Subject struct {
	IDPIssuer  string `json:"idp_issuer"`
	IDPSubject string `json:"idp_subject"`
	Login      string `json:"login"`
	Name       string `json:"name"`
	Email      string `json:"email"`
}

// Usable reports whether the access token or the refresh token can still do
// something. A time that is missing counts as not reached.
func (e Entry) Usable(now time.Time) bool {
	switch e.Kind {
	case KindDevToken:
		return e.Token != ""
	case KindOAuth:
		return e.AccessToken != "" && (live(e.AccessTokenExpiresAt, now) || e.refreshable(now))
	}
	return false
}

func (e Entry) refreshable(now time.Time) bool {
	return e.RefreshToken != "" && live(e.RefreshTokenExpiresAt, now)
}

func live(until *time.Time, now time.Time) bool { return until == nil || now.Before(*until) }

// bearer is the token to send.
func (e Entry) bearer() string {
	if e.Kind == KindDevToken {
		return e.Token
	}
	return e.AccessToken
}

// Store is the file with all logins. Entries are kept under the canonical form
// of a server's address; members and entries that this package does not know
// are kept as they are.
type Store struct {
	// Path is the file; its directory is made by the first write.
	Path string
}

// lockPoll is how often a lock that is taken is tried again.
const lockPoll = 20 * time.Millisecond

// Get returns the entry of a server; ok is false when there is none.
func (s Store) Get(ctx context.Context, server string) (entry Entry, ok bool, err error) {
	servers, err := s.readLocked(ctx)
	if err != nil {
		return Entry{}, false, err
	}
	raw, ok := servers[server]
	if !ok {
		return Entry{}, false, nil
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return Entry{}, false, s.parseError(err)
	}
	return entry, true, nil
}

// Login is an entry with the server it belongs to.
type Login struct {
	Server string
	Entry
}

// List returns all entries sorted by server. Entries of an unknown form are left
// out.
func (s Store) List(ctx context.Context) ([]Login, error) {
	servers, err := s.readLocked(ctx)
	if err != nil {
		return nil, err
	}
	var out []Login
	for server, raw := range servers {
		var entry Entry
		if json.Unmarshal(raw, &entry) == nil && (entry.Kind == KindOAuth || entry.Kind == KindDevToken) {
			out = append(out, Login{Server: server, Entry: entry})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Server < out[j].Server })
	return out, nil
}

// Put writes the entry of a server.
func (s Store) Put(ctx context.Context, server string, entry Entry) error {
	return s.change(ctx, func(servers map[string]json.RawMessage) (bool, error) {
		raw, err := mergeEntry(servers[server], entry)
		if err != nil {
			return false, err
		}
		servers[server] = raw
		return true, nil
	})
}

// Delete removes the entry of a server and reports whether there was one. With a
// non-empty refreshToken only the entry that holds it is removed: another
// process may have logged in meanwhile.
func (s Store) Delete(ctx context.Context, server, refreshToken string) (bool, error) {
	removed := false
	err := s.change(ctx, func(servers map[string]json.RawMessage) (bool, error) {
		raw, ok := servers[server]
		if !ok {
			return false, nil
		}
		if refreshToken != "" {
			var entry Entry
			if err := json.Unmarshal(raw, &entry); err == nil && entry.RefreshToken != refreshToken {
				return false, nil
			}
		}
		delete(servers, server)
		removed = true
		return true, nil
	})
	return removed, err
}

// mergeEntry writes entry over what was there, keeping unknown members of the
// same kind of entry.
func mergeEntry(old json.RawMessage, entry Entry) (json.RawMessage, error) {
	fresh, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	var kept, members map[string]json.RawMessage
	if json.Unmarshal(old, &kept) != nil || kept == nil || string(kept["kind"]) != quoted(entry.Kind) {
		return fresh, nil
	}
	if err := json.Unmarshal(fresh, &members); err != nil {
		return nil, err
	}
	for _, known := range knownMembers {
		delete(kept, known)
	}
	for name, value := range members {
		kept[name] = value
	}
	return json.Marshal(kept)
}

var knownMembers = [...]string{"kind", "token", "logged_in_at", "access_token", "access_token_expires_at",
	"refresh_token", "refresh_token_expires_at", "subject"}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always has a JSON form
	return string(text)
}

// readLocked reads all entries under the shared lock. A store whose directory is
// missing is empty.
func (s Store) readLocked(ctx context.Context) (map[string]json.RawMessage, error) {
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // replaced as a whole, so absent means never written
	}
	unlock, err := s.lock(ctx, "auth.lock", false)
	switch {
	case err == nil:
		defer unlock()
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		// Nobody can write here, and a store is replaced as a whole.
	default:
		return nil, err
	}
	_, servers, err := s.read()
	return servers, err
}

// read returns the whole document and its entries.
func (s Store) read() (document, servers map[string]json.RawMessage, err error) {
	document, servers = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return document, servers, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read auth store at %s: %w", s.Path, err)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, nil, s.parseError(err)
	}
	if raw, ok := document["servers"]; ok {
		if err := json.Unmarshal(raw, &servers); err != nil {
			return nil, nil, s.parseError(err)
		}
	}
	if document == nil {
		document = map[string]json.RawMessage{}
	}
	if servers == nil {
		servers = map[string]json.RawMessage{}
	}
	return document, servers, nil
}

func (s Store) parseError(err error) error {
	return fmt.Errorf("failed to parse auth store at %s: %s. Move the file away and log in again with `fabro auth login`", s.Path, Redact(err.Error()))
}

// change rewrites the store under the exclusive lock when edit reports a change.
func (s Store) change(ctx context.Context, edit func(map[string]json.RawMessage) (bool, error)) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("failed to create the directory of the auth store: %w", err)
	}
	unlock, err := s.lock(ctx, "auth.lock", true)
	if err != nil {
		return err
	}
	defer unlock()
	document, servers, err := s.read()
	if err != nil {
		return err
	}
	changed, err := edit(servers)
	if err != nil || !changed {
		return err
	}
	raw, err := json.Marshal(servers) // maps are written with sorted keys
	if err != nil {
		return err
	}
	document["servers"] = raw
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.Path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("failed to write auth store at %s: %w", s.Path, err)
	}
	return nil
}

// lock takes one of the two advisory locks beside the store.
func (s Store) lock(ctx context.Context, name string, exclusive bool) (unlock func(), err error) {
	lock := flock.New(filepath.Join(filepath.Dir(s.Path), name), flock.SetPermissions(0o600))
	if exclusive {
		_, err = lock.TryLockContext(ctx, lockPoll)
	} else {
		_, err = lock.TryRLockContext(ctx, lockPoll)
	}
	switch {
	case err == nil:
		return func() { _ = lock.Close() }, nil
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK):
		return nil, fmt.Errorf("the filesystem backing %s does not support file locking; move the auth store to a local filesystem or set FABRO_AUTH_FILE to a local path", s.Path)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("another process holds %s: %w", filepath.Join(filepath.Dir(s.Path), name), ctx.Err())
	}
	return nil, fmt.Errorf("failed to lock auth store at %s: %w", s.Path, err)
}
