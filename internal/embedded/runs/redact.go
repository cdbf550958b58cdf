package runs

import (
	"bytes"
	"regexp"
)

// secrets are the shapes of credentials that are replaced in events before they are stored. The list is short on purpose: a token that is
// recognised by its prefix is certainly one. Fabro also looks at the entropy of words, which this does not promise.
var secrets = []struct {
	hint    []byte // a text without it need not be searched
	pattern *regexp.Regexp
}{
	{[]byte("gh"), regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36,}\b`)},
	{[]byte("github_pat_"), regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{40,}\b`)},
	{[]byte("sk-"), regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{24,}\b`)},
	{[]byte("xox"), regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}\b`)},
	{[]byte("AKIA"), regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{[]byte("glpat-"), regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}\b`)},
	{[]byte("earer "), regexp.MustCompile(`(?:[Bb]earer )[A-Za-z0-9._~+/-]{24,}=*`)},
}

var redacted = []byte("[REDACTED]")

// redact replaces what looks like a credential inside the JSON text of an event. None of the patterns can match across the end of a JSON string.
func redact(properties []byte) []byte {
	for _, s := range secrets {
		if bytes.Contains(properties, s.hint) {
			properties = s.pattern.ReplaceAll(properties, redacted)
		}
	}
	return properties
}
