package fabroapi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// Target is the address of a Fabro server: an HTTP origin or a Unix socket. The
// zero Target is no server.
type Target struct {
	origin string // "https://host[:port]", canonical; empty for a socket
	socket string // absolute clean path; empty for HTTP
}

// ErrTarget is the text for a server target that is neither of the two forms.
var ErrTarget = errors.New("server target must be an http(s) URL or absolute Unix socket path")

// ParseTarget reads what a person typed. An HTTP target loses its path (so a
// server below a path prefix cannot be addressed), a default port, and letter
// case in scheme and host; a socket path is cleaned lexically. Canonical forms
// ("https://host", "unix:///path") are accepted too.
func ParseTarget(text string) (Target, error) {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		origin, err := canonicalOrigin(text)
		if err != nil {
			return Target{}, err
		}
		return Target{origin: origin}, nil
	case strings.HasPrefix(lower, "unix://"):
		text = text[len("unix://"):]
	}
	if !filepath.IsAbs(text) {
		return Target{}, fmt.Errorf("%w, not %q", ErrTarget, Redact(text))
	}
	return Target{socket: filepath.Clean(text)}, nil
}

func canonicalOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		// url.Parse repeats the text, which may hold a password.
		return "", fmt.Errorf("%w, not %q", ErrTarget, Redact(text))
	}
	host := strings.ToLower(u.Hostname())
	if host == "" {
		return "", fmt.Errorf("%w; %q has no host", ErrTarget, Redact(text))
	}
	if u.User != nil {
		return "", fmt.Errorf("server target %q must not contain a user or password; log in with `fabro auth login`", Redact(text))
	}
	if err := checkHost(host); err != nil {
		return "", err
	}
	scheme := strings.ToLower(u.Scheme)
	port := u.Port()
	if (scheme == "http" && port == "80") || (scheme == "https" && port == "443") {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return scheme + "://" + host, nil
}

// checkHost refuses hosts that only a legacy reading takes for an IPv4 address
// ("0x7f.1", "2130706433", "010.0.0.1"): resolvers disagree about where they
// lead. As in URLs generally, a host is meant as a number when its last label
// is one.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	digits := strings.TrimPrefix(last, "0x")
	const decimal, hex = "0123456789", "0123456789abcdef"
	if last != "" && (strings.Trim(last, decimal) == "" || digits != last && strings.Trim(digits, hex) == "") {
		return fmt.Errorf("server target host %q is not a plain IPv4 address; write it as four decimal numbers", host)
	}
	return nil
}

// IsZero reports whether t is no server at all.
func (t Target) IsZero() bool { return t == Target{} }

// IsUnix reports whether t is a Unix socket.
func (t Target) IsUnix() bool { return t.socket != "" }

// Socket returns the path of a Unix socket target, or "".
func (t Target) Socket() string { return t.socket }

// String is the canonical form: "https://host[:port]" or "unix:///path". It is
// shown to people and is the key of the auth store.
func (t Target) String() string {
	if t.socket != "" {
		return "unix://" + filepath.ToSlash(t.socket)
	}
	return t.origin
}

// base is what request paths are appended to.
func (t Target) base() string {
	if t.socket != "" {
		return "http://fabro"
	}
	return t.origin
}
