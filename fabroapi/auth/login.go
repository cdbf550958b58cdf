package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// DefaultLoginTimeout is how long a person has to finish in the browser.
const DefaultLoginTimeout = 300 * time.Second

// Browser is a login in a browser: the authorization code flow with PKCE and a
// redirect to a port of this machine.
type Browser struct {
	// Server is the canonical HTTP origin.
	Server string
	// Show tells the person the address to open. It is called once.
	Show func(address string)
	// Open opens the address; nil leaves that to the person. That it failed is
	// told to Show's reader by the caller, not an end of the login.
	Open func(address string) error
	// Timeout bounds the whole login; 0 means DefaultLoginTimeout.
	Timeout time.Duration
	NoProxy bool
}

// Login waits for the person and returns the entry to store.
func (b Browser) Login(ctx context.Context) (Entry, error) {
	timeout := b.Timeout
	if timeout <= 0 {
		timeout = DefaultLoginTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("nobody finished the login in the browser within %s; run `fabro auth login` again", timeout))
	defer cancel()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Entry{}, fmt.Errorf("cannot listen for the browser's answer: %w", err)
	}
	verifier := base64.RawURLEncoding.EncodeToString(randomBytes())
	state := hex.EncodeToString(randomBytes())
	redirect := "http://" + listener.Addr().String() + "/callback"

	answers := make(chan callback, 1)
	server := &http.Server{Handler: callbackHandler(state, answers), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Shutdown below
	}()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-served
	}()

	challenge := sha256.Sum256([]byte(verifier))
	address := b.Server + "/auth/cli/start?" + url.Values{
		"redirect_uri":          {redirect},
		"state":                 {state},
		"code_challenge":        {base64.RawURLEncoding.EncodeToString(challenge[:])},
		"code_challenge_method": {"S256"},
	}.Encode()
	if b.Show != nil {
		b.Show(address)
	}
	if b.Open != nil {
		// The address has been shown: a person can open it without our help.
		_ = b.Open(address)
	}

	var answer callback
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return Entry{}, context.Cause(ctx)
	}
	if answer.err != nil {
		return Entry{}, answer.err
	}
	var tokens tokenResponse
	err = post(ctx, b.Server+"/auth/cli/token", "", map[string]string{
		"grant_type":    "authorization_code",
		"code":          answer.code,
		"code_verifier": verifier,
		"redirect_uri":  redirect,
	}, &tokens, b.NoProxy)
	if err == nil {
		err = tokens.check()
	}
	if err != nil {
		return Entry{}, fmt.Errorf("the server at %s did not finish the login: %s", b.Server, Redact(err.Error(), answer.code, verifier))
	}
	return tokens.entry(time.Now()), nil
}

func randomBytes() []byte {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	return random
}

// callback is what the browser brought back.
type callback struct {
	code string
	err  error
}

// callbackHandler takes the first request that knows the state. Others, of a
// port scanner or an older browser tab, get an error page and change nothing.
func callbackHandler(state string, answers chan<- callback) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
			page(w, http.StatusBadRequest, "This is not the login that fabro waits for. Close this page and use the newest one.")
			return
		}
		answer := callback{code: query.Get("code")}
		switch {
		case query.Get("error") != "":
			answer.err = &oauthError{Code: Redact(query.Get("error")), Description: Redact(query.Get("error_description"))}
		case answer.code == "":
			answer.err = errors.New("the browser came back without a code")
		}
		select {
		case answers <- answer:
		default: // answered already
		}
		if answer.err != nil {
			page(w, http.StatusOK, "The login failed. The terminal says why.")
			return
		}
		page(w, http.StatusOK, "You are logged in. Close this page and go back to the terminal.")
	})
	return mux
}

func page(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><title>fabro</title><p>%s</p>\n", text)
}

// Revoke tells the server that a refresh token is given up.
func Revoke(ctx context.Context, server, refreshToken string, noProxy bool) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return post(ctx, server+"/auth/cli/logout", refreshToken, nil, nil, noProxy)
}
