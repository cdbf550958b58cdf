package fabroapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"fabro-mcp/fabroapi/auth"
	"fabro-mcp/fabroapi/wire"
)

// Conditions that a caller can tell apart with errors.Is.
var (
	// ErrLoginRequired: the server wants a (new) login. Commands exit with 4.
	ErrLoginRequired = auth.ErrLoginRequired
	// ErrNotFound: the server answered 404.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the server answered 409, the run is not in a state for this.
	ErrConflict = errors.New("conflict")
	// ErrUnreachable: no answer came: no server, no network, or a time-out.
	ErrUnreachable = errors.New("server unreachable")
	// ErrBadAnswer: an answer came that this client cannot read.
	ErrBadAnswer = errors.New("unreadable answer")
)

// APIError is an answer with a status of 400 or more (or an unexpected
// redirect).
type APIError struct {
	Status int
	// Code is the machine-readable condition, often empty; see wire.Code….
	Code string
	// Detail is the server's sentence, or this client's where the server sent
	// none.
	Detail    string
	RequestID string
	Method    string
	Path      string

	login string // what to run when a login is needed
}

// Error is the sentence for a person: the server's detail, a request id where
// somebody may have to look into the server's log, and the way to log in where
// that is the remedy.
func (e *APIError) Error() string {
	text := e.Detail
	if text == "" {
		text = "request failed with status " + statusText(e.Status)
	}
	if e.Status >= 500 && e.RequestID != "" {
		text += " (request id " + e.RequestID + ")"
	}
	if e.Status == http.StatusUnauthorized && !strings.Contains(text, "fabro auth login") {
		text += "\n" + e.login
	}
	return text
}

// Is makes the conditions of this package recognisable.
func (e *APIError) Is(target error) bool {
	switch target {
	case ErrLoginRequired:
		return e.Status == http.StatusUnauthorized
	case ErrNotFound:
		return e.Status == http.StatusNotFound
	case ErrConflict:
		return e.Status == http.StatusConflict
	}
	return false
}

// TransportError is a request without an answer, or with half of one.
type TransportError struct {
	Target Target
	Method string
	Path   string
	// Err is the cause. Its text has no credentials.
	Err error

	advice string
}

// Error names the server, the cause and what to do.
func (e *TransportError) Error() string {
	text := fmt.Sprintf("no answer from the Fabro server at %s (%s %s): %s", display(e.Target), e.Method, e.Path, causeText(e.Err))
	if e.advice != "" {
		text += ". " + e.advice
	}
	return text
}

func (e *TransportError) Unwrap() error { return e.Err }

// Is reports ErrUnreachable, except for a request that the caller gave up.
func (e *TransportError) Is(target error) bool {
	return target == ErrUnreachable && !errors.Is(e.Err, context.Canceled)
}

// AnswerError is an answer that is not what the API promises.
type AnswerError struct {
	Target Target
	Method string
	Path   string
	Status int
	Err    error
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the server at %s answered %s %s with something that is not the Fabro API's: %s. Check that it is a Fabro server of a fitting version",
		display(e.Target), e.Method, e.Path, causeText(e.Err))
}

func (e *AnswerError) Unwrap() error { return e.Err }

// Is reports ErrBadAnswer.
func (e *AnswerError) Is(target error) bool { return target == ErrBadAnswer }

// timeoutError says which wait was too long.
type timeoutError struct {
	what  string
	after time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("%s timed out after %s", e.what, e.after) }
func (e *timeoutError) Timeout() bool { return true }

// errTooLarge ends the reading of an answer.
var errTooLarge = errors.New("the answer is larger than this client accepts")

// display is how a target is written in sentences.
func display(t Target) string {
	if t.IsUnix() {
		return t.Socket()
	}
	return t.String()
}

func statusText(status int) string {
	if name := http.StatusText(status); name != "" {
		return fmt.Sprintf("%d %s", status, name)
	}
	return fmt.Sprint(status)
}

// causeText strips the layers that repeat address and verb, and secrets.
func causeText(err error) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "the time given for the request ran out"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket"
	case errors.Is(err, os.ErrPermission):
		return "permission denied"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection ended in the middle of the answer"
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "cannot resolve host " + dns.Name
	}
	return Redact(err.Error())
}

// maxErrorBody bounds what is read of an error answer, maxErrorText what is
// shown of one that is no envelope.
const (
	maxErrorBody = 1 << 20
	maxErrorText = 300
)

// apiError reads an error answer.
func (c *Client) apiError(method, path string, resp *http.Response, secret string) error {
	e := c.readAPIError(method, path, resp, secret)
	if wait, ok := parseRetryAfter(resp.Header.Get("Retry-After")); ok {
		return &retryAfter{error: e, wait: wait}
	}
	return e
}

func (c *Client) readAPIError(method, path string, resp *http.Response, secret string) *APIError {
	e := &APIError{Status: resp.StatusCode, Method: method, Path: path, RequestID: cleanText(resp.Header.Get("x-request-id"), 100), login: c.loginAdvice()}
	if resp.StatusCode < 400 {
		e.Detail = fmt.Sprintf("the server answered %s %s with status %s and wants to send the request to %q; set --server (FABRO_SERVER) to the address it redirects to",
			method, path, statusText(resp.StatusCode), cleanText(Redact(resp.Header.Get("Location")), maxErrorText))
		return e
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var envelope wire.ErrorEnvelope
	if err := json.Unmarshal(body, &envelope); err == nil && len(envelope.Errors) > 0 {
		first := envelope.Errors[0]
		e.Code = first.Code
		e.Detail = cleanText(Redact(first.Detail, secret), maxErrorBody)
		for _, id := range []string{first.RequestID, envelope.RequestID} {
			if id != "" {
				e.RequestID = cleanText(id, 100)
			}
		}
		return e
	}
	text := cleanText(Redact(string(body), secret), maxErrorText)
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	switch {
	case strings.HasPrefix(kind, "text/html") || strings.HasPrefix(strings.ToLower(text), "<!doctype") || strings.HasPrefix(strings.ToLower(text), "<html"):
		e.Detail = fmt.Sprintf("request failed with status %s: the answer is a web page, not the Fabro API's; check --server (FABRO_SERVER)", statusText(e.Status))
	case text != "":
		e.Detail = fmt.Sprintf("request failed with status %s: %s", statusText(e.Status), text)
	}
	return e
}

// cleanText makes text of a server fit for one message: valid UTF-8, no control
// characters except line feeds and tabs, at most max bytes.
func cleanText(text string, max int) string {
	text = dropEscapes(strings.ToValidUTF8(text, "�"))
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	text = strings.TrimSpace(text)
	if len(text) > max {
		cut := max
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// dropEscapes removes the escape sequences that colour text on a terminal.
func dropEscapes(text string) string {
	for {
		at := strings.Index(text, "\x1b[")
		if at < 0 {
			return text
		}
		end := at + 2
		for end < len(text) && (text[end] < '@' || text[end] > '~') {
			end++
		}
		text = text[:at] + text[min(end+1, len(text)):]
	}
}

// loginAdvice is the sentence that ends an error about a missing login.
func (c *Client) loginAdvice() string {
	target := c.Target()
	switch {
	case c.embedded != nil:
		return "The embedded server does not accept this process's token; restart it with `fabro server stop` and try again."
	case target.IsUnix():
		return "Its token file is missing or out of date: restart the local Fabro server, or run `fabro auth login` against its HTTP address."
	}
	return "Run `fabro auth login --server " + target.String() + "` to authenticate."
}

// reachAdvice is the sentence that ends an error about a server that does not
// answer.
func (c *Client) reachAdvice() string {
	switch {
	case c.embedded != nil:
		return "Look at `fabro server status`, and start it by hand with `fabro server start --foreground` to see why"
	case c.explicit:
		return "This server was asked for by " + c.origin + "; check that it runs, or leave the setting out to use a local server"
	case c.Target().IsUnix():
		return "Check that the local Fabro server is running"
	}
	return "Check the address and the network, or choose another server with --server (FABRO_SERVER)"
}
