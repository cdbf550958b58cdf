package auth

import (
	"errors"
	"strings"
)

// ErrLoginRequired is what errors.Is finds in every error that only a new login
// can help against.
var ErrLoginRequired = errors.New("login required")

// ExpiredError says that a login has ended. Detail is the server's sentence,
// often empty.
type ExpiredError struct {
	Detail string
}

// Expired makes an ExpiredError.
func Expired(detail string) error { return &ExpiredError{Detail: detail} }

// Error always says how to log in.
func (e *ExpiredError) Error() string {
	const advice = "Run `fabro auth login` again."
	switch {
	case e.Detail == "":
		return "CLI session has expired. " + advice
	case strings.Contains(e.Detail, "fabro auth login"):
		return e.Detail
	}
	return strings.TrimSuffix(e.Detail, ".") + ". " + advice
}

// Is reports ErrLoginRequired.
func (e *ExpiredError) Is(target error) bool { return target == ErrLoginRequired }

// ValidDevToken reports whether a text has the form of a dev token: fabro_dev_
// and 64 hex digits.
func ValidDevToken(token string) bool {
	digits, ok := strings.CutPrefix(token, "fabro_dev_")
	if !ok || len(digits) != 64 {
		return false
	}
	for _, c := range []byte(digits) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}
