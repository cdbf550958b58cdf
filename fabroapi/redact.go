package fabroapi

import "fabro-mcp/fabroapi/auth"

// Redact masks what looks like a credential in a text meant for people or logs:
// Fabro tokens, JSON web tokens, what follows "Bearer", and passwords in URLs.
// secrets are masked wherever they occur.
func Redact(text string, secrets ...string) string { return auth.Redact(text, secrets...) }
