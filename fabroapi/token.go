package fabroapi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"fabro-mcp/fabroapi/auth"
)

// TokenSource supplies bearer tokens.
type TokenSource interface {
	// Token returns the token to send, or "" to send none.
	Token(ctx context.Context) (string, error)
	// Refresh is called when a server says that rejected has expired. It returns
	// a token to try once more, or an error, which is ErrLoginRequired when only
	// a person can help.
	Refresh(ctx context.Context, rejected string) (string, error)
}

// StaticToken is a token that never changes.
type StaticToken string

func (t StaticToken) Token(context.Context) (string, error) { return string(t), nil }

// Refresh fails: there is nothing to refresh.
func (t StaticToken) Refresh(context.Context, string) (string, error) {
	return "", auth.Expired("")
}

// DevTokenFile is the path of a local server's dev token. It is read for each
// request, since a server that starts again may write another token. A missing
// or malformed file counts as no token.
type DevTokenFile string

func (f DevTokenFile) Token(context.Context) (string, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", nil
	}
	token := strings.TrimSpace(string(text))
	if !auth.ValidDevToken(token) {
		return "", nil
	}
	return token, nil
}

// Refresh reads the file again and fails when nothing has changed.
func (f DevTokenFile) Refresh(ctx context.Context, rejected string) (string, error) {
	token, err := f.Token(ctx)
	if err != nil {
		return "", err
	}
	if token == "" || token == rejected {
		return "", auth.Expired("")
	}
	return token, nil
}

// fallbackToken uses second where first has no token.
type fallbackToken struct {
	first, second TokenSource

	mu   sync.Mutex
	used TokenSource // the source of the last token, which refreshes it
}

func (f *fallbackToken) Token(ctx context.Context) (string, error) {
	for _, source := range []TokenSource{f.first, f.second} {
		token, err := source.Token(ctx)
		if err != nil {
			return "", err
		}
		if token != "" {
			f.mu.Lock()
			f.used = source
			f.mu.Unlock()
			return token, nil
		}
	}
	return "", nil
}

func (f *fallbackToken) Refresh(ctx context.Context, rejected string) (string, error) {
	f.mu.Lock()
	source := f.used
	f.mu.Unlock()
	if source == nil {
		source = f.first
	}
	return source.Refresh(ctx, rejected)
}

// bearer returns the token for the next request.
func (c *Client) bearer(ctx context.Context) (string, error) {
	source := c.tokenSource()
	if source == nil {
		return "", nil
	}
	token, err := source.Token(ctx)
	if err != nil {
		return "", fmt.Errorf("no credential for the Fabro server at %s: %w", display(c.Target()), err)
	}
	return token, nil
}

// refresh gets a fresh token after the server rejected one as expired.
func (c *Client) refresh(ctx context.Context, rejected string) error {
	source := c.tokenSource()
	if source == nil {
		return auth.Expired("")
	}
	_, err := source.Refresh(ctx, rejected)
	return err
}
