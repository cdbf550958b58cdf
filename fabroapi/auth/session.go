package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// refreshTimeout bounds the network call of a refresh.
const refreshTimeout = 30 * time.Second

// Session is the credential for one server, taken from the store. It notices
// what other processes write there: a login takes effect at once.
type Session struct {
	Store Store
	// Server is the canonical form of the server's address.
	Server  string
	NoProxy bool
	// Logger may be nil.
	Logger *slog.Logger
	// Now may be nil: time.Now.
	Now func() time.Time

	mu    sync.Mutex // protects the fields below
	file  os.FileInfo
	entry *Entry
}

func (s *Session) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Token returns the dev token or the access token of the entry, the latter even
// when it has expired by the local clock as long as it can be refreshed: only
// the server decides. Without a usable entry it returns "".
func (s *Session) Token(ctx context.Context) (string, error) {
	entry, err := s.current(ctx)
	if err != nil || entry == nil || !entry.Usable(s.now()) {
		return "", err
	}
	return entry.bearer(), nil
}

// current returns the entry, reading the store only when its file has changed.
func (s *Session) current(ctx context.Context) (*Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.Store.Path)
	if err != nil {
		s.file, s.entry = nil, nil
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("failed to read auth store at %s: %w", s.Store.Path, err)
	}
	if s.file != nil && os.SameFile(s.file, info) && s.file.ModTime().Equal(info.ModTime()) && s.file.Size() == info.Size() {
		return s.entry, nil
	}
	entry, ok, err := s.Store.Get(ctx, s.Server)
	if err != nil {
		return nil, err
	}
	s.file, s.entry = info, nil
	if ok {
		s.entry = &entry
	}
	return s.entry, nil
}

// Refresh replaces an access token that the server called expired. Whoever comes
// second, in this process or another, adopts what the first one got: the lock is
// a file's, and goroutines of one process exclude each other by it as well.
func (s *Session) Refresh(ctx context.Context, rejected string) (string, error) {
	if _, err := os.Stat(filepath.Dir(s.Store.Path)); errors.Is(err, os.ErrNotExist) {
		return "", Expired("")
	}
	unlock, err := s.Store.lock(ctx, "auth.refresh.lock", true)
	if err != nil {
		return "", err
	}
	defer unlock()

	entry, ok, err := s.Store.Get(ctx, s.Server)
	switch {
	case err != nil:
		return "", err
	case !ok, entry.Kind != KindOAuth && entry.Kind != KindDevToken:
		return "", Expired("")
	case entry.Kind == KindDevToken:
		if entry.Token == rejected {
			return "", Expired("")
		}
		return entry.Token, nil
	case entry.AccessToken != rejected && live(entry.AccessTokenExpiresAt, s.now()):
		return entry.AccessToken, nil
	case !entry.refreshable(s.now()):
		if _, err := s.Store.Delete(ctx, s.Server, entry.RefreshToken); err != nil {
			return "", err
		}
		return "", Expired("")
	}
	return s.renew(ctx, entry)
}

// renew spends the refresh token. From here on the caller's cancellation is not
// obeyed: the server may have taken the token already, and the answer is the only
// thing that keeps the login alive.
func (s *Session) renew(ctx context.Context, entry Entry) (string, error) {
	if !strings.HasPrefix(s.Server, "http") {
		return "", Expired("")
	}
	if err := writable(filepath.Dir(s.Store.Path)); err != nil {
		return "", fmt.Errorf("the login to %s has to be refreshed, but %s cannot be written: %w", s.Server, s.Store.Path, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	fresh, err := refresh(ctx, s.Server, entry.RefreshToken, s.NoProxy)
	var refused *oauthError
	switch {
	case errors.As(err, &refused) && refused.ends():
		if _, err := s.Store.Delete(ctx, s.Server, entry.RefreshToken); err != nil {
			return "", err
		}
		return "", Expired(refused.Description)
	case err != nil:
		return "", fmt.Errorf("refreshing the login to %s failed: %w", s.Server, err)
	}
	next := fresh.entry(s.now())
	next.LoggedInAt = entry.LoggedInAt
	if next.Subject == nil {
		next.Subject = entry.Subject
	}
	if err := s.Store.Put(ctx, s.Server, next); err != nil {
		return "", err
	}
	if s.Logger != nil {
		s.Logger.Debug("refreshed a login", "server", s.Server)
	}
	return next.AccessToken, nil
}

// writable tries out whether files can be made in a directory.
func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".auth.json.tmp-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
