package fabroapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// writeFile makes a file in a directory of its own.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConnectorOrder holds the order in which a server is chosen, without any
// server: what is explicit wins even when it cannot answer, and the embedded
// server comes last.
func TestConnectorOrder(t *testing.T) {
	httpTarget := "[cli.target]\ntype = \"http\"\nurl = \"https://settings.example\"\n"
	tests := []struct {
		name     string
		flag     string
		server   string // FABRO_SERVER
		settings string
		record   string // server.json
		embedded error
		none     bool // no way to start the embedded server
		want     string
		fails    string
	}{
		{name: "flag first", flag: "https://flag.example", server: "https://env.example", settings: httpTarget, want: "https://flag.example"},
		{name: "then the variable", server: "https://env.example", settings: httpTarget, want: "https://env.example"},
		{name: "then the settings", settings: httpTarget, want: "https://settings.example"},
		{name: "settings with a socket", settings: "[cli.target]\ntype = \"unix\"\npath = \"/no/such.sock\"\n", want: "unix:///no/such.sock"},
		{name: "then the embedded server", want: "unix:///embedded.sock"},
		{name: "a record of a dead server is passed over", record: `{"pid":1,"bind":{"unix":"/no/such.sock"}}`, want: "unix:///embedded.sock"},
		{name: "a broken record is passed over", record: `{"pid":`, want: "unix:///embedded.sock"},
		{name: "an empty record is passed over", record: `{}`, want: "unix:///embedded.sock"},
		{name: "unknown settings do not matter", settings: "[future]\nx = 1\n[server]\nlisten = 3\n", want: "unix:///embedded.sock"},
		{name: "bad flag", flag: "nonsense", fails: "--server: server target must be"},
		{name: "bad variable", server: "nonsense", fails: "FABRO_SERVER: server target must be"},
		{name: "broken settings", settings: "[cli\n", fails: "is not valid TOML"},
		{name: "settings without url", settings: "[cli.target]\ntype = \"http\"\n", fails: "cli.target.url: field is required"},
		{name: "settings without path", settings: "[cli.target]\ntype = \"unix\"\n", fails: "cli.target.path: field is required"},
		{name: "settings of another type", settings: "[cli.target]\ntype = \"smoke\"\n", fails: "cli.target.type: invalid value"},
		{name: "the embedded server does not start", embedded: errors.New("disk full"), fails: "cannot start the embedded Fabro server for"},
		{name: "there is no embedded server", none: true, fails: "no Fabro server is running"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			storage := t.TempDir()
			if test.record != "" {
				if err := os.WriteFile(filepath.Join(storage, "server.json"), []byte(test.record), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			settings := filepath.Join(storage, "settings.toml")
			if test.settings != "" {
				settings = writeFile(t, "settings.toml", test.settings)
			}
			connector := &fabroapi.Connector{Server: test.flag, StorageDir: storage, Env: fabroapi.Environment{Getenv: func(name string) string {
				return map[string]string{"FABRO_SERVER": test.server, "FABRO_CONFIG": settings, "FABRO_HOME": storage}[name]
			}}}
			if !test.none {
				connector.StartEmbedded = func(_ context.Context, dir string) (string, string, error) {
					if dir != storage {
						t.Errorf("started for %s", dir)
					}
					return "/embedded.sock", "token", test.embedded
				}
			}
			client, err := connector.Connect(t.Context())
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := client.Target().String(); got != test.want {
				t.Errorf("target %s, want %s", got, test.want)
			}
			if client.Embedded() != (test.want == "unix:///embedded.sock") {
				t.Errorf("embedded: %v", client.Embedded())
			}
		})
	}
}

// TestExplicitServerDown: a server that was asked for and does not answer is an
// error that says who asked; nothing takes its place.
func TestExplicitServerDown(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "gone.sock")
	connector := &fabroapi.Connector{Server: socket, StorageDir: dir,
		Env: fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": dir}[name] }},
		StartEmbedded: func(context.Context, string) (string, string, error) {
			t.Error("the embedded server was started")
			return "", "", nil
		}}
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ListRuns(t.Context(), fabroapi.ListRunsOptions{})
	if !errors.Is(err, fabroapi.ErrUnreachable) || !strings.Contains(err.Error(), socket) || !strings.Contains(err.Error(), "--server") {
		t.Fatal(err)
	}
}

// serveUnix answers on a socket and returns its path and a way to stop.
func serveUnix(t *testing.T, path string, handler http.Handler) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server.Close
}

// socketPath is short enough for a socket whatever the test is called.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fabro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// TestLocalServer: a live local server is found by its record and addressed with
// its dev token; when it goes away, the next Connect finds the embedded one.
func TestLocalServer(t *testing.T) {
	storage, socket := t.TempDir(), socketPath(t)
	stop := serveUnix(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			writeJSON(w, 200, wire.Health{Status: "ok"})
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+secretToken || r.Host != "fabro" {
			w.WriteHeader(401)
			return
		}
		writeJSON(w, 200, sampleRun())
	}))
	for name, text := range map[string]string{
		"server.json":      fmt.Sprintf(`{"pid":1,"bind":{"unix":%q},"log_path":"x","started_at":"2026-08-01T10:00:00Z"}`, socket),
		"server.dev-token": secretToken + "\n",
	} {
		if err := os.WriteFile(filepath.Join(storage, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var starts atomic.Int64
	connector := &fabroapi.Connector{StorageDir: storage,
		Env:     fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": storage}[name] }},
		Options: fabroapi.Options{Retries: -1},
		StartEmbedded: func(context.Context, string) (string, string, error) {
			starts.Add(1)
			return "/embedded.sock", "token", nil
		}}
	defer connector.Close()
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if run, err := client.GetRun(t.Context(), runID); err != nil || run.ID != runID || client.Embedded() {
		t.Fatal(run, err)
	}
	stop()
	if _, err := client.GetRun(t.Context(), runID); !errors.Is(err, fabroapi.ErrUnreachable) {
		t.Fatal(err)
	}
	again, err := connector.Connect(t.Context())
	if err != nil || !again.Embedded() || starts.Load() != 1 {
		t.Fatal(again, err, starts.Load())
	}
}

// TestEmbeddedRevived: when the embedded server has stopped, the request starts
// it again, a write too, because nothing was sent.
func TestEmbeddedRevived(t *testing.T) {
	var starts atomic.Int64
	var command atomic.Value
	var stops []func()
	sockets := []string{socketPath(t), socketPath(t)}
	connector := &fabroapi.Connector{StorageDir: t.TempDir(),
		Env: fabroapi.Environment{Getenv: func(name string) string {
			return map[string]string{"FABRO_HOME": "/none", "FABRO_RUN_ID": runID}[name]
		}},
		StartEmbedded: func(context.Context, string) (string, string, error) {
			n := starts.Add(1)
			token := fmt.Sprintf("token-%d", n)
			stops = append(stops, serveUnix(t, sockets[n-1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					w.WriteHeader(401)
					return
				}
				command.Store(r.Header.Get(fabroapi.AgentCommandHeader))
				if r.Header.Get(fabroapi.RunHeader) != runID {
					t.Errorf("run %q", r.Header.Get(fabroapi.RunHeader))
				}
				writeJSON(w, 201, sampleRun())
			})))
			return sockets[n-1], token, nil
		}}
	defer connector.Close()
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	manifest := &wire.RunManifest{Version: 1, AgentCommand: []string{"agent", "é\n"}}
	for range 2 {
		if _, err := client.CreateRun(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
		if got := command.Load(); got != `["agent","\u00e9\n"]` {
			t.Errorf("agent command %q", got)
		}
		stops[len(stops)-1]()
	}
	if starts.Load() != 2 {
		t.Errorf("started %d times", starts.Load())
	}
}

// TestLocalServerOnTCP: a server that listens on every address is called on this
// machine; its token file is read anew when the token is refused as expired.
func TestLocalServerOnTCP(t *testing.T) {
	storage := t.TempDir()
	tokens := filepath.Join(storage, "server.dev-token")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := strings.Replace(secretToken, "0123", "4567", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health":
			writeJSON(w, 200, wire.Health{Status: "ok"})
		case r.Header.Get("Authorization") == "Bearer "+fresh:
			writeJSON(w, 200, sampleRun())
		default:
			write(tokens, fresh+"\n")
			writeJSON(w, 401, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: "401", Detail: "Authentication required.", Code: wire.CodeAccessTokenExpired}}})
		}
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(storage, "server.json"), `{"pid":1,"bind":{"tcp":"0.0.0.0:`+port+`"}}`)
	write(tokens, secretToken)
	connector := &fabroapi.Connector{StorageDir: storage, Env: fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": storage}[name] }}}
	defer connector.Close()
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Target().String(); got != "http://127.0.0.1:"+port {
		t.Errorf("target %s", got)
	}
	if _, err := client.StartRun(t.Context(), runID, false); err != nil {
		t.Errorf("a write after a fresh token: %v", err)
	}
}

// TestTokensThatCannotBeRefreshed: a second refusal reaches the caller.
func TestTokensThatCannotBeRefreshed(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		writeJSON(w, 401, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: "401", Detail: "Authentication required.", Code: wire.CodeAccessTokenExpired}}})
	}))
	defer server.Close()
	file := writeFile(t, "token", secretToken)
	for name, source := range map[string]fabroapi.TokenSource{
		"fixed": fabroapi.StaticToken(secretToken), "file": fabroapi.DevTokenFile(file), "no file": fabroapi.DevTokenFile(file + ".none"),
	} {
		requests.Store(0)
		client := newClient(t, server.URL, fabroapi.Options{Token: source})
		_, err := client.GetRun(t.Context(), runID)
		if !errors.Is(err, fabroapi.ErrLoginRequired) || !strings.Contains(err.Error(), "fabro auth login") || requests.Load() != 1 {
			t.Errorf("%s: %v after %d requests", name, err, requests.Load())
		}
	}
}

// TestConnectOnce: callers that come together start one server, and one that
// gives up does not wait for it.
func TestConnectOnce(t *testing.T) {
	var starts atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	connector := &fabroapi.Connector{StorageDir: t.TempDir(),
		Env: fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": "/none"}[name] }},
		StartEmbedded: func(context.Context, string) (string, string, error) {
			starts.Add(1)
			close(entered)
			<-release
			return "/embedded.sock", "token", nil
		}}
	results := make(chan error, 3)
	connect := func() { _, err := connector.Connect(t.Context()); results <- err }
	go connect()
	<-entered
	go connect()
	go connect()
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := connector.Connect(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("impatient: %v", err)
	}
	close(release)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if starts.Load() != 1 {
		t.Errorf("started %d times", starts.Load())
	}
}

// TestEmbeddedWithAnotherToken: the embedded server was started anew, with another
// token, by somebody else.
func TestEmbeddedWithAnotherToken(t *testing.T) {
	var current atomic.Value
	current.Store("token-one")
	socket := socketPath(t)
	defer serveUnix(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+current.Load().(string) {
			writeJSON(w, 401, wire.ErrorEnvelope{Errors: []wire.ErrorEntry{{Status: "401", Detail: "Authentication required.", Code: wire.CodeUnauthorized}}})
			return
		}
		writeJSON(w, 200, sampleRun())
	}))()
	handedOut := "token-one"
	connector := &fabroapi.Connector{StorageDir: t.TempDir(),
		Env:           fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": "/none"}[name] }},
		StartEmbedded: func(context.Context, string) (string, string, error) { return socket, handedOut, nil }}
	defer connector.Close()
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	current.Store("token-two")
	handedOut = "token-two"
	if _, err := client.StartRun(t.Context(), runID, false); err != nil {
		t.Error(err)
	}
	current.Store("token-three")
	if _, err := client.StartRun(t.Context(), runID, false); !errors.Is(err, fabroapi.ErrLoginRequired) {
		t.Errorf("a token that nobody knows: %v", err)
	}
}

// TestBusyLocalServer: a local server that does not answer in time is not taken
// for dead while its process lives.
func TestBusyLocalServer(t *testing.T) {
	for pid, embedded := range map[int]bool{os.Getpid(): false, 0: true, 1 << 30: true} {
		storage, socket := t.TempDir(), socketPath(t)
		stop := serveUnix(t, socket, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		if err := os.WriteFile(filepath.Join(storage, "server.json"), fmt.Appendf(nil, `{"pid":%d,"bind":{"unix":%q}}`, pid, socket), 0o600); err != nil {
			t.Fatal(err)
		}
		connector := &fabroapi.Connector{StorageDir: storage, Options: fabroapi.Options{Timeout: 50 * time.Millisecond},
			Env:           fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": storage}[name] }},
			StartEmbedded: func(context.Context, string) (string, string, error) { return "/embedded.sock", "token", nil }}
		client, err := connector.Connect(t.Context())
		if err != nil || client.Embedded() != embedded {
			t.Errorf("pid %d: %v, %v", pid, client.Embedded(), err)
		}
		connector.Close()
		stop()
	}
}

// TestConnectionsAreReused: one connection is enough for calls one after
// another, whatever they answer.
func TestConnectionsAreReused(t *testing.T) {
	var connections atomic.Int64
	status := 200
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, status, sampleRun()) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := newClient(t, server.URL, fabroapi.Options{})
	for _, status = range []int{200, 202, 404, 409, 500, 200} {
		client.GetRun(t.Context(), runID)
		client.SteerRun(t.Context(), runID, "x", false)
		client.DeleteRun(t.Context(), runID, false)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A start that failed is tried again by the next call, which finds what has been
// mended meanwhile.
func TestFailedStartIsTriedAgain(t *testing.T) {
	socket := socketPath(t)
	stop := serveUnix(t, socket, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, sampleRun()) }))
	defer stop()
	starts := 0
	connector := &fabroapi.Connector{StorageDir: t.TempDir(),
		Env: fabroapi.Environment{Getenv: func(name string) string { return map[string]string{"FABRO_HOME": "/none"}[name] }},
		StartEmbedded: func(context.Context, string) (string, string, error) {
			if starts++; starts == 1 {
				return "", "", errors.New("no room on the disk")
			}
			return socket, "token", nil
		}}
	defer connector.Close()
	if _, err := connector.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "no room on the disk") {
		t.Fatalf("the first start: %v", err)
	}
	client, err := connector.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetRun(t.Context(), runID); err != nil || starts != 2 {
		t.Errorf("%d starts, %v", starts, err)
	}
}
