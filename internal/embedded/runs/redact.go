package runs

import (
	"bytes"
	"regexp"
	"sync"
)

// secrets are the shapes of credentials that are replaced in events before they are stored. The list is short on purpose: a token that is
// recognised by its prefix is certainly one. Fabro also looks at the entropy of words, which this does not promise.
var secrets = []struct {
	hint    string // a text without it need not be searched
	pattern func() *regexp.Regexp
}{
	{"gh", lazily(`\bgh[pousr]_[A-Za-z0-9]{36,}\b`)},
	{"github_pat_", lazily(`\bgithub_pat_[A-Za-z0-9_]{40,}\b`)},
	{"sk-", lazily(`\bsk-[A-Za-z0-9_-]{24,}\b`)},
	{"xox", lazily(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{"AKIA", lazily(`\bAKIA[0-9A-Z]{16}\b`)},
	{"glpat-", lazily(`\bglpat-[A-Za-z0-9_-]{20,}\b`)},
	{"earer ", lazily(`(?:[Bb]earer )[A-Za-z0-9._~+/-]{24,}=*`)},
}

// lazily compiles a pattern at its first use: other commands of the same binary start without paying for it.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var redacted = []byte("[REDACTED]")

// redact replaces what looks like a credential inside the JSON text of an event. None of the patterns can match across
// the end of a JSON string.
func redact(properties []byte) []byte {
	for _, s := range secrets {
		if bytes.Contains(properties, []byte(s.hint)) {
			properties = s.pattern().ReplaceAll(properties, redacted)
		}
	}
	return properties
}
