package fabroapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// defaultBackoff waits 200 ms, 400 ms, 800 ms …, give or take a quarter.
func defaultBackoff(n int) time.Duration {
	base := 100 * time.Millisecond << min(n, 6)
	return base*3/4 + rand.N(base/2)
}

// maxRetryAfter bounds what a server's Retry-After can make a caller wait.
const maxRetryAfter = 5 * time.Second

// retryAfter carries the wait that an answer asked for.
type retryAfter struct {
	error
	wait time.Duration
}

func (e *retryAfter) Unwrap() error { return e.error }

// attempts makes a request, again where that is safe:
//
//	connection error, 429, 503   safe requests, after a pause, opts.Retries times
//	nothing listens any more     the embedded server is started again, once; the
//	                             request was never sent, so this holds for all
//	401 of the embedded server   likewise: another process may have started it
//	                             anew with another token
//	401 access_token_expired     with a fresh token, once
func (c *Client) attempts(ctx context.Context, r request, read func(*http.Response) error) error {
	refreshed, revived := false, false
	for retries := 0; ; {
		token, err := c.bearer(ctx)
		if err != nil {
			return err
		}
		starts := c.embeddedStarts()
		err = c.send(ctx, r, token, read)
		if err == nil || ctx.Err() != nil {
			return err
		}
		switch {
		case !refreshed && isExpired(err):
			refreshed = true
			if err := c.refresh(ctx, token); err != nil {
				return err
			}
			continue
		case !revived && (notListening(err) || c.embedded != nil && errors.Is(err, ErrLoginRequired)):
			revived = true
			again, reviveErr := c.revive(ctx, starts)
			if reviveErr != nil {
				return reviveErr
			}
			if again {
				continue
			}
		}
		if !r.safe || retries >= c.opts.Retries || !passing(err) {
			return err
		}
		retries++
		if !sleep(ctx, c.pause(err, retries)) {
			return err
		}
	}
}

// pause is how long to wait before the n-th repetition.
func (c *Client) pause(err error, n int) time.Duration {
	var asked *retryAfter
	if errors.As(err, &asked) {
		return min(asked.wait, maxRetryAfter)
	}
	return c.opts.Backoff(n)
}

// sleep waits, and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// passing reports whether trying again may help: the connection failed, or the
// server said that it is busy. A time-out of ours is not tried again; the wait
// was long enough.
func passing(err error) bool {
	var api *APIError
	if errors.As(err, &api) {
		return api.Status == http.StatusTooManyRequests || api.Status == http.StatusServiceUnavailable
	}
	var transport *TransportError
	if !errors.As(err, &transport) {
		return false
	}
	var ours *timeoutError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &ours) && !errors.As(err, &certificate) && !errors.Is(err, fs.ErrNotExist) &&
		!(errors.As(err, &dns) && dns.IsNotFound)
}

// notListening reports whether the connection was refused or the socket is not
// there: the request certainly was not sent.
func notListening(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// neverSent reports whether a request failed before there was a connection.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || notListening(err)
}

// revive starts the embedded server again, unless somebody did since the request
// was made, and reports whether to repeat the request. For another server it
// tells the connector that this one is gone.
func (c *Client) revive(ctx context.Context, starts int) (bool, error) {
	if c.embedded == nil {
		if c.gone != nil {
			c.gone(c)
		}
		return false, nil
	}
	select {
	case c.reviving <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("gave up waiting for the embedded Fabro server: %w", ctx.Err())
	}
	defer func() { <-c.reviving }()
	if c.embeddedStarts() != starts {
		return true, nil
	}
	target, token, err := c.embedded(ctx)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	c.target, c.token = target, token
	c.starts++
	c.mu.Unlock()
	c.http.CloseIdleConnections()
	return true, nil
}

func (c *Client) embeddedStarts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

func isExpired(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.Status == http.StatusUnauthorized && api.Code == wire.CodeAccessTokenExpired
}

// parseRetryAfter reads the header in its seconds form; Fabro uses no dates.
func parseRetryAfter(text string) (time.Duration, bool) {
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0, false
	}
	return time.Duration(min(seconds, 3600)) * time.Second, true
}
