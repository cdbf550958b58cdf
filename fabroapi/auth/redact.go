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
		text = redactAfter(text, prefix, prefix, isTokenByte, minTokenTail)
	}
	text = redactAfter(text, "Bearer ", "Bearer ", isBearerByte, 1)
	text = redactAfter(text, "bearer ", "bearer ", isBearerByte, 1)
	return redactURLs(text)
}

// redactAfter replaces each word that starts with prefix and goes on for at
// least min bytes that belong to it.
func redactAfter(text, prefix, keep string, belongs func(byte) bool, min int) string {
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
		if end-at-len(prefix) < min {
			out.WriteString(text[:end])
		} else {
			out.WriteString(text[:at])
			out.WriteString(keep)
			out.WriteString(mask)
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
