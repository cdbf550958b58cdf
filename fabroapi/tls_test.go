package fabroapi_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fabro-mcp/fabroapi"
)

// tlsHelper makes the test binary ask a server for its health and print what
// came of it: which certificates are trusted is decided once a process.
const tlsHelper = "FABRO_TEST_TLS_SERVER"

func askHealth(address string) {
	target, err := fabroapi.ParseTarget(address)
	if err == nil {
		var client *fabroapi.Client
		if client, err = fabroapi.NewClient(fabroapi.Options{Target: target}); err == nil {
			_, err = client.Health(context.Background())
		}
	}
	fmt.Println("health:", err)
}

func TestTLS(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		writeJSON(w, 200, map[string]string{"status": "ok"})
	}))
	server.Config.ErrorLog = nil
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ trust, want string }{
		{certificate, "health: <nil>"},
		{filepath.Join(t.TempDir(), "none.pem"), "certificate"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", tlsHelper+"="+server.URL, "SSL_CERT_FILE="+test.trust, "SSL_CERT_DIR="+filepath.Dir(test.trust)+"/none")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("trusting %s: %s, %v", filepath.Base(test.trust), out, err)
		}
	}
	if requests.Load() != 1 {
		t.Errorf("%d requests", requests.Load())
	}
}

// TestProxyPolicy: a wrong value is an error that names it; the right ones are
// obeyed. That loopback hosts bypass a proxy shows in every other test here.
func TestProxyPolicy(t *testing.T) {
	for policy, fails := range map[string]string{"": "", "system": "", "disabled": "", "never": "invalid FABRO_HTTP_PROXY_POLICY value `never`; expected `system` or `disabled`"} {
		connector := &fabroapi.Connector{Server: "https://fabro.example.com", Env: fabroapi.Environment{Getenv: func(name string) string {
			return map[string]string{"FABRO_HTTP_PROXY_POLICY": policy}[name]
		}}}
		if _, err := connector.Connect(t.Context()); (err != nil) != (fails != "") || err != nil && err.Error() != fails {
			t.Errorf("%q: %v", policy, err)
		}
	}
}

// TestProxy: a request to a host that is not local goes through the proxy, with
// its credential, unless the policy forbids it.
func TestProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 200, map[string]string{"status": "via proxy to " + r.URL.Host})
	}))
	defer proxy.Close()
	for policy, want := range map[string]string{"system": "health: <nil>", "disabled": "cannot resolve host"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", proxyHelper+"=http://fabro.invalid", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=", "FABRO_HTTP_PROXY_POLICY="+policy)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %s, %v", policy, out, err)
		}
	}
}

// proxyHelper is as tlsHelper, through a Connector.
const proxyHelper = "FABRO_TEST_PROXIED_SERVER"

func askThroughConnector(address string) {
	connector := &fabroapi.Connector{Server: address, Options: fabroapi.Options{Retries: -1}, Env: fabroapi.Environment{}}
	client, err := connector.Connect(context.Background())
	if err == nil {
		_, err = client.Health(context.Background())
	}
	fmt.Println("health:", err)
}
