package auth

import "strings"

// mask is what a credential is replaced by.
const mask = "[redacted]"

// tokenPrefixes begin the credentials that Fabro hands out; "eyJ" begins every
// JSON web token.
var tokenPrefixes = [...]string{"fabro_dev_", "fabro_refresh_", "fabro_worker_", "eyJ"}

// minTokenTail is how many characters must follow a prefix before the word is
// taken for a credential: a mention of the name alone stays readable.
const minTokenTail = 8

// Redact masks what looks like a credential: Fabro tokens, JSON web tokens, what
// follows "Bearer", passwords in URLs, and each of secrets wherever it occurs.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) >= minTokenTail {
			text = strings.ReplaceAll(text, secret, mask)
		}
	}
	for _, prefix := range tokenPrefixes {
		text = redactAfter(text, prefix, isTokenByte, long)
	}
	for _, prefix := range []string{"Bearer ", "bearer "} {
		text = redactAfter(text, prefix, isBearerByte, opaque)
	}
	return redactURLs(text)
}

// opaque tells a token from a word of a sentence ("Bearer token required").
func opaque(word string) bool { return len(word) >= 20 || strings.ContainsAny(word, "0123456789") }

func long(word string) bool { return len(word) >= minTokenTail }

// redactAfter masks what follows each prefix, as far as bytes belong to it, where
// that is a secret.
func redactAfter(text, prefix string, belongs func(byte) bool, secret func(string) bool) string {
	if !strings.Contains(text, prefix) {
		return text
	}
	var out strings.Builder
	for {
		at := strings.Index(text, prefix)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := at + len(prefix)
		for end < len(text) && belongs(text[end]) {
			end++
		}
		if secret(text[at+len(prefix) : end]) {
			out.WriteString(text[:at])
			out.WriteString(prefix)
			out.WriteString(mask)
		} else {
			out.WriteString(text[:end])
		}
		text = text[end:]
	}
}

func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// isBearerByte accepts the b64token of RFC 6750 section 2.1. The mask's bracket
// is no such byte, so a text is not redacted twice.
func isBearerByte(c byte) bool {
	return isTokenByte(c) || c == '~' || c == '+' || c == '/' || c == '='
}

// redactURLs masks the user information of every URL in text.
func redactURLs(text string) string {
	from := 0
	for {
		at := strings.Index(text[from:], "://")
		if at < 0 {
			return text
		}
		start := from + at + len("://")
		end := start
		for end < len(text) && strings.IndexByte("/?#\"'<> \t\r\n", text[end]) < 0 {
			end++
		}
		if user := strings.LastIndexByte(text[start:end], '@'); user > 0 && text[start:start+user] != mask {
			text = text[:start] + mask + text[start+user:]
			from = start + len(mask)
		} else {
			from = start
		}
	}
}
