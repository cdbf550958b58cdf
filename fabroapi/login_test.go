package fabroapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fabro-mcp/fabroapi"
)

// loginServer is a Fabro server as far as a login goes.
func loginServer(t *testing.T) *httptest.Server {
	var challenge, redirect string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/cli/start", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		challenge, redirect = q.Get("code_challenge"), q.Get("redirect_uri")
		if q.Get("code_challenge_method") != "S256" || !strings.HasPrefix(redirect, "http://127.0.0.1:") {
			t.Errorf("start: %s", r.URL)
		}
		// Somebody else knocks first, with a wrong state.
		if resp, err := http.Get(redirect + "?code=evil&state=guess"); err != nil || resp.StatusCode != 400 {
			t.Errorf("a wrong state: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		answer := url.Values{"code": {"the-code"}, "state": {q.Get("state")}}
		if r.Header.Get("Deny") != "" {
			answer = url.Values{"error": {"unauthorized"}, "error_description": {"You may not."}, "state": {q.Get("state")}}
		}
		http.Redirect(w, r, redirect+"?"+answer.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /auth/cli/token", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256([]byte(body["code_verifier"]))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != challenge || body["redirect_uri"] != redirect || body["grant_type"] != "authorization_code" {
			writeJSON(w, 400, map[string]string{"error": "pkce_verification_failed"})
			return
		}
		writeJSON(w, 200, map[string]any{"access_token": "access-1", "access_token_expires_at": time.Now().Add(-time.Minute).UTC(),
			"refresh_token": "fabro_refresh_one", "refresh_token_expires_at": time.Now().Add(time.Hour).UTC(), "subject": map[string]string{"login": "ada"}})
	})
	mux.HandleFunc("POST /auth/cli/refresh", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]any{"access_token": "access-2", "access_token_expires_at": time.Now().Add(time.Hour).UTC(),
			"refresh_token": "fabro_refresh_two", "refresh_token_expires_at": time.Now().Add(time.Hour).UTC()})
	})
	mux.HandleFunc("POST /auth/cli/logout", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer fabro_refresh_two" {
			t.Errorf("logout with %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /api/v1/runs", func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer access-2", "Bearer " + secretToken:
			writeJSON(w, 200, map[string]any{"data": []any{}, "meta": map[string]any{"has_more": false}})
		case "Bearer access-1":
			writeJSON(w, 401, map[string]any{"errors": []any{map[string]string{"status": "401", "detail": "Authentication required.", "code": "access_token_expired"}}})
		default:
			writeJSON(w, 401, map[string]any{"errors": []any{map[string]string{"status": "401", "detail": "Authentication required.", "code": "unauthorized"}}})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// TestLogin goes the whole way: browser, store, default server, an expired
// access token refreshed in passing, status, logout.
func TestLogin(t *testing.T) {
	server := loginServer(t)
	home := t.TempDir()
	env := fabroapi.Environment{Getenv: func(name string) string {
		return map[string]string{"FABRO_HOME": home, "FABRO_HTTP_PROXY_POLICY": "disabled"}[name]
	}}
	settings := filepath.Join(home, "settings.toml")
	if err := os.WriteFile(settings, []byte("\uFEFF# mine\n[cli.output]\nformat = \"json\"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	var shown string
	browser := func(deny bool) func(string) error {
		return func(address string) error {
			req, _ := http.NewRequest(http.MethodGet, address, nil)
			if deny {
				req.Header.Set("Deny", "yes")
			}
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	if _, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env}); !errors.Is(err, fabroapi.ErrNoLoginTarget) {
		t.Errorf("without a server: %v", err)
	}
	if _, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, Server: server.URL, Open: browser(true)}); err == nil || !strings.Contains(err.Error(), "You may not.") {
		t.Errorf("denied: %v", err)
	}
	if _, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, Server: server.URL, Timeout: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "nobody finished") {
		t.Errorf("timed out: %v", err)
	}
	result, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, Server: server.URL + "/api/v1", Open: browser(false), Show: func(a string) { shown = a }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&fabroapi.LoginResult{Server: server.URL, Kind: "oauth", Login: "ada", SettingsPath: settings}, result); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(shown, server.URL+"/auth/cli/start?") {
		t.Errorf("shown %q", shown)
	}
	text, _ := os.ReadFile(settings)
	want := "\uFEFF# mine\n[cli.output]\nformat = \"json\"\n\n[cli.target]\ntype = \"http\"\nurl = \"" + server.URL + "\"\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	if info, _ := os.Stat(settings); info.Mode().Perm() != 0o640 {
		t.Errorf("settings have mode %v now", info.Mode())
	}

	state := func() []fabroapi.ServerLogin {
		status, err := fabroapi.AuthStatus(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	ignore := cmpopts.IgnoreFields(fabroapi.ServerLogin{}, "LoggedInAt", "AccessExpiresAt", "RefreshExpiresAt")
	if diff := cmp.Diff([]fabroapi.ServerLogin{{Kind: "oauth", Server: server.URL, OAuthState: "expired_refreshable", Login: "ada"}}, state(), ignore); diff != "" {
		t.Error(diff)
	}

	// The settings name the server now.
	connector := &fabroapi.Connector{Env: env}
	defer connector.Close()
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListRuns(t.Context(), fabroapi.ListRunsOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fabroapi.ServerLogin{{Kind: "oauth", Server: server.URL, OAuthState: "active", Login: "ada"}}, state(), ignore); diff != "" {
		t.Error(diff)
	}

	target, removed, notTold, err := fabroapi.Logout(t.Context(), env, "")
	if target != server.URL || !removed || notTold != nil || err != nil {
		t.Errorf("logout: %v, %v, %v, %v", target, removed, notTold, err)
	}
	if _, removed, _, err := fabroapi.Logout(t.Context(), env, ""); removed || err != nil {
		t.Errorf("second logout: %v, %v", removed, err)
	}
	_, err = client.ListRuns(t.Context(), fabroapi.ListRunsOptions{})
	if !errors.Is(err, fabroapi.ErrLoginRequired) || !strings.Contains(err.Error(), "fabro auth login") {
		t.Errorf("after logout: %v", err)
	}
	if diff := cmp.Diff([]fabroapi.ServerLogin{}, state()); diff != "" {
		t.Error(diff)
	}
}

// TestLoginUnreachable: where nothing listens nobody is asked to log in.
func TestLoginUnreachable(t *testing.T) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // with a certificate that nobody vouches for
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	for name, test := range map[string]struct {
		server string
		want   []string
	}{
		"nothing listens": {nobody.URL, []string{"cannot log in", nobody.URL, "connection refused", "--server"}},
		"no trust":        {secure.URL, []string{"cannot log in", secure.URL, "certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			env := fabroapi.Environment{Getenv: func(name string) string {
				return map[string]string{"FABRO_HOME": t.TempDir(), "FABRO_HTTP_PROXY_POLICY": "disabled"}[name]
			}}
			_, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, Server: test.server,
				Show: func(string) { t.Error("the login page was shown") },
				Open: func(string) error { t.Error("the login page was opened"); return nil }})
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want %q", err, part)
				}
			}
		})
	}
}

// TestLoginSlowServer: a server that takes its time is one that can be logged in to.
func TestLoginSlowServer(t *testing.T) {
	inner := loginServer(t)
	opened := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			<-opened
		}
		inner.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	env := fabroapi.Environment{Getenv: func(name string) string {
		return map[string]string{"FABRO_HOME": t.TempDir(), "FABRO_HTTP_PROXY_POLICY": "disabled"}[name]
	}}
	result, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, Server: slow.URL, Open: func(address string) error {
		close(opened)
		resp, err := http.Get(address)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}})
	if err != nil || result.Login != "ada" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestLoginWithDevToken(t *testing.T) {
	server := loginServer(t)
	home := filepath.Join(t.TempDir(), "new")
	env := fabroapi.Environment{Getenv: func(name string) string {
		return map[string]string{"FABRO_HOME": home, "FABRO_SERVER": server.URL, "FABRO_HTTP_PROXY_POLICY": "disabled"}[name]
	}}
	tests := []struct{ token, fails string }{
		{"hunter2", "64 hex digits"},
		{"fabro_dev_" + strings.Repeat("0", 64), "does not accept this dev token"},
		{" " + secretToken + "\n", ""},
	}
	for _, test := range tests {
		result, err := fabroapi.Login(t.Context(), fabroapi.LoginOptions{Env: env, DevToken: test.token})
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), strings.TrimSpace(test.token)) {
				t.Errorf("%q: %v", test.token, err)
			}
			continue
		}
		if err != nil || result.Kind != "dev-token" || result.SettingsPath == "" {
			t.Errorf("%v, %v", result, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(home, "settings.toml"))
	if want := "_version = 1\n\n[cli.target]\ntype = \"http\"\nurl = \"" + server.URL + "\"\n"; err != nil || string(text) != want {
		t.Errorf("settings %q, %v", text, err)
	}
}
