package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// tokenResponse is the answer of /auth/cli/token and /auth/cli/refresh.
type tokenResponse struct {
	AccessToken           string     `json:"access_token"`
	AccessTokenExpiresAt  *time.Time `json:"access_token_expires_at"`
	RefreshToken          string     `json:"refresh_token"`
	RefreshTokenExpiresAt *time.Time `json:"refresh_token_expires_at"`
	Subject               *Subject   `json:"subject"`
}

func (t tokenResponse) entry(now time.Time) Entry {
	at := now.UTC().Truncate(time.Second)
	return Entry{
		Kind:                  KindOAuth,
		LoggedInAt:            &at,
		AccessToken:           t.AccessToken,
		AccessTokenExpiresAt:  t.AccessTokenExpiresAt,
		RefreshToken:          t.RefreshToken,
		RefreshTokenExpiresAt: t.RefreshTokenExpiresAt,
		Subject:               t.Subject,
	}
}

// oauthError is a refusal of the login endpoints.
type oauthError struct {
	Status      int
	Code        string
	Description string
}

func (e *oauthError) Error() string {
	switch {
	case e.Code == "github_auth_not_configured":
		return "this Fabro server has no GitHub login configured; use `fabro auth login --dev-token`"
	case e.Description != "" && e.Code != "":
		return e.Description + " (" + e.Code + ")"
	case e.Code != "":
		return e.Code
	case e.Description != "":
		return fmt.Sprintf("the server answered with status %d: %s", e.Status, e.Description)
	}
	return fmt.Sprintf("the server answered with status %d", e.Status)
}

// ends reports whether the refused login is over for good.
func (e *oauthError) ends() bool {
	return e.Code == "refresh_token_expired" || e.Code == "refresh_token_revoked"
}

// maxTokenBody bounds an answer of the login endpoints.
const maxTokenBody = 1 << 20

// newHTTP makes a client for one exchange. It follows no redirect: what is sent
// is meant for this server only.
func newHTTP(noProxy bool) *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true}
	if !noProxy {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// post calls a login endpoint and reads its answer into into, if not nil.
func post(ctx context.Context, url, bearer string, body any, into any, noProxy bool) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, reader)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "") // these endpoints are called without one
	client := newHTTP(noProxy)
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return errors.New(Redact(err.Error(), bearer))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBody))
	if err != nil {
		return errors.New(Redact(err.Error(), bearer))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return readRefusal(resp.StatusCode, text, bearer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("the answer is not the login endpoint's: it is no JSON of the expected form; check the server's address")
	}
	return nil
}

func readRefusal(status int, text []byte, bearer string) error {
	refused := &oauthError{Status: status}
	var body struct {
		Error       any    `json:"error"`
		Description string `json:"error_description"`
		Errors      []struct {
			Detail string `json:"detail"`
			Code   string `json:"code"`
		} `json:"errors"`
	}
	if json.Unmarshal(text, &body) == nil {
		refused.Code, _ = body.Error.(string)
		refused.Description = body.Description
		if refused.Code == "" && len(body.Errors) > 0 {
			refused.Code, refused.Description = body.Errors[0].Code, body.Errors[0].Detail
		}
	}
	refused.Code = strings.TrimSpace(Redact(refused.Code, bearer))
	refused.Description = strings.TrimSpace(Redact(refused.Description, bearer))
	return refused
}

// refresh spends a refresh token.
func refresh(ctx context.Context, server, refreshToken string, noProxy bool) (tokenResponse, error) {
	var out tokenResponse
	if err := post(ctx, server+"/auth/cli/refresh", refreshToken, nil, &out, noProxy); err != nil {
		return tokenResponse{}, err
	}
	return out, out.check()
}

func (t tokenResponse) check() error {
	if t.AccessToken == "" || t.RefreshToken == "" {
		return errors.New("the answer of the login endpoint has no tokens; check the server's address")
	}
	return nil
}
