package fabroapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// renewable is a token that can be refreshed once.
type renewable struct {
	refreshed atomic.Bool
	refreshes atomic.Int64
}

func (r *renewable) Token(context.Context) (string, error) {
	if r.refreshed.Load() {
		return "fresh-token", nil
	}
	return "stale-token", nil
}

func (r *renewable) Refresh(_ context.Context, rejected string) (string, error) {
	r.refreshes.Add(1)
	if rejected != "stale-token" {
		return "", errors.New("the wrong token was rejected")
	}
	r.refreshed.Store(true)
	return "fresh-token", nil
}

// TestExpiredThenFine: with every method, a token that expired is refreshed and
// the request made again, once, writes too.
func TestExpiredThenFine(t *testing.T) {
	api := needOpenAPI(t)
	for _, m := range methods() {
		t.Run(m.name, func(t *testing.T) {
			var stale, served atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer fresh-token" {
					stale.Add(1)
					writeJSON(w, 401, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: "401", Detail: "Authentication required.", Code: wire.CodeAccessTokenExpired}}})
					return
				}
				served.Add(1)
				operation, err := api.Operation(r.Method, r.URL.EscapedPath())
				if err != nil {
					t.Error(err)
					return
				}
				api.serveSample(w, operation, true)
			}))
			defer server.Close()
			token := &renewable{}
			client := newClient(t, server.URL, fabroapi.Options{Token: token})
			defer client.Close()
			if err := m.call(t.Context(), client); err != nil && err != fabroapi.ErrStreamEnded {
				t.Error(err)
			}
			if stale.Load() != 1 || token.refreshes.Load() != 1 || m.write && served.Load() != 1 {
				t.Errorf("%d refused, %d refreshes, %d served", stale.Load(), token.refreshes.Load(), served.Load())
			}
		})
	}
}

// TestExpiredTwice: a token that is refused again after a refresh is an error.
func TestExpiredTwice(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		writeJSON(w, 401, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: "401", Detail: "Authentication required.", Code: wire.CodeAccessTokenExpired}}})
	}))
	defer server.Close()
	client := newClient(t, server.URL, fabroapi.Options{Token: &renewable{}})
	if _, err := client.GetRun(t.Context(), runID); !errors.Is(err, fabroapi.ErrLoginRequired) || requests.Load() != 2 {
		t.Errorf("%v after %d requests", err, requests.Load())
	}
}
