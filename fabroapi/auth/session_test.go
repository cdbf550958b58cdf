package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fabro-mcp/fabroapi/auth"
)

// helperVariable makes the test binary act as a second process that uses a login.
const helperVariable = "FABRO_AUTH_TEST_HELPER"

func TestMain(m *testing.M) {
	if args := os.Getenv(helperVariable); args != "" {
		store, server, _ := strings.Cut(args, "|")
		if err := useLogin(store, server); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// provider is a login server whose refresh tokens work once: presenting a used
// one revokes everything, as Fabro does. An access token is good for a few
// requests, so that refreshes are frequent.
type provider struct {
	*httptest.Server
	uses int // requests an access token is good for

	mu        sync.Mutex
	n         int // tokens issued
	left      int
	revoked   bool
	refreshes int
	worked    int
	waiting   chan struct{} // closed when all users have arrived
	missing   int
	refuse    func(w http.ResponseWriter) bool // may answer a refresh
}

func newProvider(t *testing.T, users int) *provider {
	p := &provider{uses: 3, waiting: make(chan struct{}), missing: users}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/cli/refresh", p.refresh)
	mux.HandleFunc("GET /work", p.work)
	mux.HandleFunc("GET /arrive", func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		if p.missing--; p.missing == 0 {
			close(p.waiting)
		}
		p.mu.Unlock()
		select {
		case <-p.waiting:
		case <-r.Context().Done():
		}
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) tokens() map[string]any {
	p.n++
	p.left = p.uses
	return map[string]any{
		"access_token": fmt.Sprintf("access-token-%d", p.n), "access_token_expires_at": time.Now().Add(time.Hour).UTC(),
		"refresh_token": fmt.Sprintf("fabro_refresh_%08d", p.n), "refresh_token_expires_at": time.Now().Add(24 * time.Hour).UTC(),
		"subject": map[string]string{"login": "ada"},
	}
}

func (p *provider) refresh(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshes++
	if p.refuse != nil && p.refuse(w) {
		return
	}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 || r.UserAgent() != "" {
		http.Error(w, "unexpected body or user agent", http.StatusBadRequest)
		return
	}
	if p.revoked || r.Header.Get("Authorization") != fmt.Sprintf("Bearer fabro_refresh_%08d", p.n) {
		p.revoked = true
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"refresh_token_revoked","error_description":"The login was revoked."}`)
		return
	}
	json.NewEncoder(w).Encode(p.tokens())
}

func (p *provider) work(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer access-token-%d", p.n) || p.left <= 0 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.left--
	p.worked++
}

// login writes a first login to a store and returns its path.
func (p *provider) login(t *testing.T) string {
	t.Helper()
	p.mu.Lock()
	text, _ := json.Marshal(p.tokens())
	p.mu.Unlock()
	var entry auth.Entry
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatal(err)
	}
	entry.Kind = auth.KindOAuth
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := (auth.Store{Path: path}).Put(t.Context(), p.URL, entry); err != nil {
		t.Fatal(err)
	}
	return path
}

// rounds is how many requests each user of a login makes.
const rounds = 40

// useLogin makes requests as a client does: a refusal is followed by a refresh
// and a repetition. Others use the token up meanwhile, so it may take several.
func useLogin(store, server string) error {
	ctx := context.Background()
	session := &auth.Session{Store: auth.Store{Path: store}, Server: server, NoProxy: true}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path, token string) (int, error) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if _, err := get("/arrive", ""); err != nil {
		return err
	}
	for range rounds {
		token, err := session.Token(ctx)
		if err != nil {
			return err
		}
		for tries := 0; ; tries++ {
			status, err := get("/work", token)
			if err != nil {
				return err
			}
			if status == http.StatusOK {
				break
			}
			if tries == 1000 {
				return errors.New("no token works")
			}
			if token, err = session.Refresh(ctx, token); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *provider) check(t *testing.T, users int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked || p.worked != users*rounds || p.refreshes < 2 {
		t.Errorf("revoked %v, %d requests of %d, %d refreshes", p.revoked, p.worked, users*rounds, p.refreshes)
	}
}

// TestRefreshBetweenGoroutines: several sessions of one process never spend a
// refresh token twice.
func TestRefreshBetweenGoroutines(t *testing.T) {
	const users = 4
	p := newProvider(t, users)
	store := p.login(t)
	var group sync.WaitGroup
	for range users {
		group.Go(func() {
			if err := useLogin(store, p.URL); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	p.check(t, users)
}

// TestRefreshBetweenProcesses: neither do two processes.
func TestRefreshBetweenProcesses(t *testing.T) {
	const users = 2
	p := newProvider(t, users)
	store := p.login(t)
	var group sync.WaitGroup
	for range users {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", helperVariable+"="+store+"|"+p.URL)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	p.check(t, users)
}

// TestRefreshRefused: what the server says decides whether the login is over.
func TestRefreshRefused(t *testing.T) {
	tests := []struct {
		name  string
		serve func(http.ResponseWriter)
		login bool // is a new login needed, and the entry gone
		text  string
	}{
		{"expired", answer(401, `{"error":"refresh_token_expired","error_description":"Too old."}`), true, "Too old. Run `fabro auth login` again."},
		{"revoked", answer(401, `{"error":"refresh_token_revoked"}`), true, "CLI session has expired. Run `fabro auth login` again."},
		{"server error", answer(500, `{"error":"server_error","error_description":"later"}`), false, "later (server_error)"},
		{"envelope", answer(503, `{"errors":[{"status":"503","title":"x","detail":"busy"}]}`), false, "status 503: busy"},
		{"garbage", answer(200, `<html>`), false, "not the login endpoint's"},
		{"no tokens", answer(200, `{}`), false, "has no tokens"},
		{"redirect", answer(302, ``), false, "status 302"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newProvider(t, 1)
			p.refuse = func(w http.ResponseWriter) bool { test.serve(w); return true }
			store := p.login(t)
			session := &auth.Session{Store: auth.Store{Path: store}, Server: p.URL, NoProxy: true}
			_, err := session.Refresh(t.Context(), "access-token-1")
			if errors.Is(err, auth.ErrLoginRequired) != test.login || !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("error %v", err)
			}
			if strings.Contains(fmt.Sprint(err), "fabro_refresh_0") {
				t.Errorf("the token leaks: %v", err)
			}
			_, ok, err := auth.Store{Path: store}.Get(t.Context(), p.URL)
			if err != nil || ok == test.login {
				t.Errorf("entry there: %v, %v", ok, err)
			}
		})
	}
}

func answer(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestSessionToken: which credential a session sends.
func TestSessionToken(t *testing.T) {
	now := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	past, future := now.Add(-time.Hour), now.Add(time.Hour)
	oauth := func(access, refresh time.Time) auth.Entry {
		return auth.Entry{Kind: auth.KindOAuth, AccessToken: "access", AccessTokenExpiresAt: &access, RefreshToken: "refresh", RefreshTokenExpiresAt: &refresh}
	}
	tests := []struct {
		name  string
		entry auth.Entry
		want  string
	}{
		{"dev token", auth.Entry{Kind: auth.KindDevToken, Token: "dev"}, "dev"},
		{"live", oauth(future, past), "access"},
		{"refreshable", oauth(past, future), "access"},
		{"expired", oauth(past, past), ""},
		{"unknown kind", auth.Entry{Kind: "passkey", Token: "x"}, ""},
	}
	store := auth.Store{Path: filepath.Join(t.TempDir(), "sub", "auth.json")}
	session := &auth.Session{Store: store, Server: "https://a.example", Now: func() time.Time { return now }}
	if token, err := session.Token(t.Context()); token != "" || err != nil {
		t.Errorf("without a store: %q, %v", token, err)
	}
	for _, test := range tests {
		if err := store.Put(t.Context(), "https://a.example", test.entry); err != nil {
			t.Fatal(err)
		}
		if token, err := session.Token(t.Context()); token != test.want || err != nil {
			t.Errorf("%s: %q, %v", test.name, token, err)
		}
	}
	if _, err := session.Refresh(t.Context(), "x"); !errors.Is(err, auth.ErrLoginRequired) {
		t.Errorf("refresh of an unknown kind: %v", err)
	}
}
