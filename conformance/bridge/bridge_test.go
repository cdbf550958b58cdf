package bridge

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"fabro-mcp/conformance/fakeserver"
)

func TestMain(m *testing.M) {
	if os.Getenv("MCP_FAKE_SERVER") == "1" {
		fakeserver.Main("", os.Stdin, os.Stdout)
		return
	}
	os.Setenv("MCP_FAKE_SERVER", "1")
	os.Exit(m.Run())
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	claim      = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
)

func start(t *testing.T) *httptest.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := New(Config{Command: []string{self}})
	s := httptest.NewServer(b)
	t.Cleanup(func() { b.Close(); s.Close() })
	return s
}

// do sends one request; headers are "Name: value".
func do(t *testing.T, s *httptest.Server, method, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(resp.Body))
	if err != nil {
		t.Fatal(err)
	}
	return resp, strings.TrimSpace(string(text))
}

func TestSession(t *testing.T) {
	s := start(t)
	resp, body := do(t, s, "POST", initialize)
	id := resp.Header.Get(sessionHeader)
	if resp.StatusCode != 200 || id == "" || !strings.Contains(body, `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("%d %q %s", resp.StatusCode, id, body)
	}
	session := sessionHeader + ": " + id
	if resp, _ := do(t, s, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session); resp.StatusCode != 202 {
		t.Errorf("a notification gave %d", resp.StatusCode)
	}
	if _, body := do(t, s, "POST", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`, session); !strings.Contains(body, `"id":"x"`) || !strings.Contains(body, `"hi"`) {
		t.Error(body)
	}
	resp, body = do(t, s, "POST", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"slow","arguments":{"ms":1},"_meta":{"progressToken":"mine"}}}`, session)
	if resp.Header.Get("Content-Type") != "text/event-stream" || strings.Count(body, "data: ") != 2 || !strings.Contains(body, `"progressToken":"mine"`) {
		t.Errorf("%s\n%s", resp.Header, body)
	}
	if resp, _ := do(t, s, "POST", `{"jsonrpc":"2.0","id":2,"method":"nope"}`, session); resp.StatusCode != 200 {
		t.Errorf("an error in a session gave %d", resp.StatusCode)
	}
	if resp, _ := do(t, s, "DELETE", "", session); resp.StatusCode != 204 {
		t.Errorf("DELETE gave %d", resp.StatusCode)
	}
	if resp, _ := do(t, s, "POST", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, session); resp.StatusCode != 404 {
		t.Errorf("a dead session gave %d", resp.StatusCode)
	}
}

func TestModern(t *testing.T) {
	s := start(t)
	list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{` + claim + `}}}`
	resp, body := do(t, s, "POST", list, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	if resp.StatusCode != 200 || !strings.Contains(body, `"id":7`) || !strings.Contains(body, `"echo"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		text       string
	}{
		{"header missing", list, nil, 400, "-32020"},
		{"another method", list, []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call"}, 400, "-32020"},
		{"unknown method", strings.Replace(list, "tools/list", "nope", 1), []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: nope"}, 404, "-32601"},
		{"no _meta", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, nil, 400, "-32602"},
		{"not JSON", `{`, nil, 400, "-32700"},
		{"another host", list, []string{"Host: example.com"}, 403, ""},
		{"another origin", list, []string{"Origin: https://example.com"}, 403, ""},
	} {
		if resp, body := do(t, s, "POST", c.body, c.headers...); resp.StatusCode != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
	}
}

func TestListenOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:80"} {
		if l, err := Listen(address); err == nil {
			l.Close()
			t.Errorf("%s was accepted", address)
		}
	}
}
