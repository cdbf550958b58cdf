package fabroapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// Options say how to talk to a server. Only Target is required.
type Options struct {
	Target Target
	// Token supplies the bearer token; nil sends none.
	Token TokenSource
	// UserAgent is "name/version"; the server keeps it with the runs it creates.
	UserAgent string
	// Timeout bounds the wait for response headers, connecting included, and
	// the silence between two reads of a body. Default 30 s. Bodies may take
	// longer as a whole.
	Timeout time.Duration
	// StreamTimeout bounds the silence on an event stream, which a server breaks
	// every 15 s with a comment. Default 60 s.
	StreamTimeout time.Duration
	// Retries is how often a request without effect is repeated after a
	// connection error, 429 or 503. Default 2; negative means never.
	Retries int
	// Backoff is the wait before the n-th repetition, counted from 1. Nil means
	// 200 ms doubling, with jitter.
	Backoff func(n int) time.Duration
	// MaxBody bounds an answer in bytes. Default 64 MiB.
	MaxBody int64
	// NoProxy ignores the proxy variables.
	NoProxy bool
	// Logger gets one debug line a request. Nil logs nothing.
	Logger *slog.Logger
}

// defaultUserAgent is sent by programs that do not name themselves.
const defaultUserAgent = "fabro-mcp"

// Client talks to one Fabro server. It is safe for concurrent use and reuses
// its connections; Close gives them up.
type Client struct {
	opts     Options
	http     *http.Client
	explicit bool   // the user asked for this very server
	origin   string // by which setting, for sentences

	// embedded starts the embedded server again when it is gone; nil for any
	// other server.
	embedded func(ctx context.Context) (Target, TokenSource, error)
	runID    string // of the run this process is a part of, for the embedded server
	// gone is told that nothing listens at the target any more; may be nil.
	gone func(*Client)

	// reviving holds one element while the embedded server is started again.
	reviving chan struct{}

	mu     sync.Mutex // protects the fields below
	target Target
	token  TokenSource
	starts int // how often the embedded server has been started again
}

// NewClient makes a client. Nothing is contacted.
func NewClient(opts Options) (*Client, error) {
	if opts.Target.IsZero() {
		return nil, errors.New("no Fabro server given")
	}
	if opts.UserAgent == "" {
		opts.UserAgent = defaultUserAgent
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.StreamTimeout <= 0 {
		opts.StreamTimeout = 60 * time.Second
	}
	if opts.Retries == 0 {
		opts.Retries = 2
	}
	if opts.Backoff == nil {
		opts.Backoff = defaultBackoff
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = 64 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{opts: opts, target: opts.Target, token: opts.Token, reviving: make(chan struct{}, 1)}
	transport := &http.Transport{
		DialContext:         c.dial,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  opts.Target.IsUnix(),
		ForceAttemptHTTP2:   true,
		// Without pings a dead connection would be used again and again.
		HTTP2: &http.HTTP2Config{SendPingTimeout: opts.Timeout, PingTimeout: opts.Timeout / 2},
	}
	if !opts.NoProxy && !opts.Target.IsUnix() {
		transport.Proxy = http.ProxyFromEnvironment
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	return c, nil
}

// dial connects to the socket of the target whatever the address says, so that
// every request may use the host name "fabro".
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	if target := c.Target(); target.IsUnix() {
		return dialer.DialContext(ctx, "unix", target.Socket())
	}
	return dialer.DialContext(ctx, network, address)
}

// maxRedirects is what browsers and Fabro's own client allow.
const maxRedirects = 10

// checkRedirect follows a redirect only where it changes nothing that matters: a
// read, to the same host, not from https to http. Anything else comes back as
// an answer that says where the server wants to be called.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects ||
		req.URL.Hostname() != first.URL.Hostname() || first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// Target is the server this client talks to.
func (c *Client) Target() Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target
}

// Embedded reports whether the server is the embedded one.
func (c *Client) Embedded() bool { return c.embedded != nil }

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) tokenSource() TokenSource {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// request is one call of the API.
type request struct {
	method string
	path   string // with query, starting with "/"
	body   any    // marshalled as JSON; nil sends none
	header http.Header
	accept string
	// safe requests may be repeated: they have no effect, or the same effect
	// twice.
	safe bool
	// stream requests live as long as their context; silence is bounded.
	stream bool
}

// label is the path without its query, for messages.
func (r request) label() string {
	path, _, _ := strings.Cut(r.path, "?")
	return path
}

// get reads JSON from a path below /api/v1.
func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.call(ctx, request{method: http.MethodGet, path: wire.APIPrefix + path, safe: true}, into)
}

// call makes a request and decodes the answer into into, which may be nil. An
// empty answer leaves into alone.
func (c *Client) call(ctx context.Context, r request, into any) error {
	return c.attempts(ctx, r, func(resp *http.Response) error {
		if into == nil {
			// Read to the end, within reason, so that the connection can be used again.
			_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(body)) == 0 {
			if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusAccepted {
				return nil
			}
			return &AnswerError{Target: c.Target(), Method: r.method, Path: r.label(), Status: resp.StatusCode, Err: errors.New("the answer is empty")}
		}
		if raw, ok := into.(*json.RawMessage); ok {
			if !json.Valid(body) {
				return c.notJSON(r, resp, errors.New("it is not JSON"))
			}
			*raw = body
			return nil
		}
		if err := json.Unmarshal(body, into); err != nil {
			return c.notJSON(r, resp, err)
		}
		return nil
	})
}

func (c *Client) notJSON(r request, resp *http.Response, err error) error {
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(kind), "text/html") {
		err = errors.New("it is a web page")
	}
	return &AnswerError{Target: c.Target(), Method: r.method, Path: r.label(), Status: resp.StatusCode, Err: err}
}

// text reads an answer that is not JSON.
func (c *Client) text(ctx context.Context, path, accept string) ([]byte, error) {
	var out []byte
	err := c.attempts(ctx, request{method: http.MethodGet, path: wire.APIPrefix + path, accept: accept, safe: true}, func(resp *http.Response) error {
		var err error
		out, err = io.ReadAll(resp.Body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// wholeAnswer is how many times Options.Timeout a complete answer may take, so
// that a server which sends a byte now and then cannot hold a call for ever.
const wholeAnswer = 10

// send makes one attempt and hands a successful answer to read. Its body is
// bounded in size and in silence, and closed afterwards.
func (c *Client) send(ctx context.Context, r request, token string, read func(*http.Response) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(caller)
	defer cancel(nil)

	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return fmt.Errorf("cannot encode the request %s %s: %w", r.method, r.label(), err)
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.Target().base()+r.path, body)
	if err != nil {
		return fmt.Errorf("cannot form the request %s %s: %w", r.method, r.label(), err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	accept := r.accept
	if accept == "" {
		accept = "application/json"
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if c.runID != "" {
		req.Header.Set(RunHeader, c.runID)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}

	headers := time.AfterFunc(c.opts.Timeout, func() {
		cancel(&timeoutError{what: "server request", after: c.opts.Timeout})
	})
	began := time.Now()
	resp, err := c.http.Do(req)
	headers.Stop()
	if err != nil {
		return c.transportError(caller, ctx, r, token, err)
	}
	defer resp.Body.Close()
	c.opts.Logger.DebugContext(ctx, "fabro request", "method", r.method, "path", r.label(), "status", resp.StatusCode,
		"took", time.Since(began), "request_id", cleanText(resp.Header.Get("x-request-id"), 100))

	silence := c.opts.Timeout
	what := "reading the answer"
	limit := c.opts.MaxBody
	if r.stream {
		silence, what, limit = c.opts.StreamTimeout, "waiting for the event stream", 0
	}
	bounded := &boundedBody{body: resp.Body, left: limit, unbounded: limit == 0, silence: silence}
	bounded.timer = time.AfterFunc(silence, func() { cancel(&timeoutError{what: what, after: silence}) })
	bounded.timer.Stop()
	defer bounded.timer.Stop()
	if !r.stream {
		whole := wholeAnswer * c.opts.Timeout
		timer := time.AfterFunc(whole, func() { cancel(&timeoutError{what: what, after: whole}) })
		defer timer.Stop()
	}
	resp.Body = bounded
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.apiError(r.method, r.label(), resp, token)
	}
	if err := read(resp); err != nil {
		var answer *AnswerError
		var stop *stopError
		switch {
		case errors.As(err, &answer), errors.As(err, &stop):
			return err
		case errors.Is(err, errTooLarge):
			return &AnswerError{Target: c.Target(), Method: r.method, Path: r.label(), Status: resp.StatusCode,
				Err: fmt.Errorf("%w (%d bytes)", errTooLarge, limit)}
		}
		return c.transportError(caller, ctx, r, token, err)
	}
	return nil
}

// transportError names what ended a request: the caller, a time-out of ours, or
// the network.
func (c *Client) transportError(caller, ctx context.Context, r request, token string, err error) error {
	if caller.Err() != nil {
		err = caller.Err()
	} else if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if text := err.Error(); len(token) > minSecret && strings.Contains(text, token) {
		err = errors.New(Redact(text, token))
	}
	e := &TransportError{Target: c.Target(), Method: r.method, Path: r.label(), Err: err}
	if caller.Err() == nil {
		e.advice = c.reachAdvice()
	}
	if !r.safe && r.method != http.MethodGet && !neverSent(err) {
		e.advice = strings.TrimPrefix(e.advice+". The request may have been carried out all the same: look before you repeat it", ". ")
	}
	return e
}

// minSecret is the length up to which a token is too short to be a secret, and
// too likely to be a part of any sentence.
const minSecret = 7

// boundedBody reads an answer with a limit on size and on silence. Only the time
// spent waiting for the server counts, not what the reader does in between.
type boundedBody struct {
	body      io.ReadCloser
	left      int64
	unbounded bool
	silence   time.Duration
	timer     *time.Timer
}

func (b *boundedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.body.Read(p)
	b.timer.Stop()
	if b.unbounded {
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
