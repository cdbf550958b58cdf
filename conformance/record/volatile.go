package record

import (
	"os"
	"regexp"
	"sort"
	"strings"
	"time"

	"fabro-mcp/conformance/strictjson"
)

// capturable reports whether a string of the server, when the client sends it
// back, is something the server made up: a cursor, a handle, an id. Short words
// and the names of things are given back too, but do not vary.
func capturable(key, s string) bool {
	switch key {
	case "nextCursor", "requestState", "taskId", "cursor":
		return s != ""
	}
	return volatileString(key, s) != "" || len(s) >= 20 && opaque.MatchString(s)
}

var (
	opaque    = regexp.MustCompile(`^[A-Za-z0-9_=.+-]*[0-9][A-Za-z0-9_=.+-]*$`)
	uuid      = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	ulid      = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)
	within    = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\b[0-9A-HJKMNP-TV-Z]{26}\b|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\b\d+(\.\d+)?(ns|µs|ms)\b|/tmp/|0x[0-9a-f]{6,}`)
	numberKey = regexp.MustCompile(`(?i)^(ttl|pid|port|duration|elapsed|uptime|timestamp|time)$|(_ms|Ms|_at|At|_seconds|Seconds|Duration|Timestamp)$`)
	opaqueKey = regexp.MustCompile(`^(nextCursor|requestState|taskId|io\.modelcontextprotocol/subscriptionId)$`)
)

// volatileString returns the matcher for a string that is not the same twice,
// or "".
func volatileString(key, s string) string {
	if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return "<date-time>"
	}
	switch {
	case uuid.MatchString(s):
		return "<uuid>"
	case ulid.MatchString(s):
		return "</^[0-9A-HJKMNP-TV-Z]{26}$/>"
	case opaqueKey.MatchString(key) && s != "":
		return "<string>"
	case within.MatchString(s):
		return "<string>"
	}
	return ""
}

func volatileNumber(key string) bool { return numberKey.MatchString(key) }

// redactor takes secrets out: values of members and environment variables that
// are named like secrets, and texts that look like credentials.
type redactor struct {
	texts []string // longest first
}

const hidden = "REDACTED"

var (
	secretName  = regexp.MustCompile(`(?i)(token|secret|passw|passphrase|authorization|api[-_]?key|private[-_]?key|credential|cookie|bearer)`)
	notSecret   = regexp.MustCompile(`(?i)^(progressToken|maxTokens|max_tokens|tokens|token_count|.*tokens)$`)
	secretShape = regexp.MustCompile(`(?i:bearer )[A-Za-z0-9._~+/=-]{8,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`)
)

// newRedactor also knows the values of this process's own variables whose names
// sound secret: they are what a server was likely given.
func newRedactor(further []string) *redactor {
	r := &redactor{}
	for _, t := range further {
		if t != "" {
			r.texts = append(r.texts, t)
		}
	}
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); secretName.MatchString(name) && len(value) >= 6 {
			r.texts = append(r.texts, value)
		}
	}
	sort.Slice(r.texts, func(i, j int) bool { return len(r.texts[i]) > len(r.texts[j]) })
	return r
}

// text hides known secrets and what has the shape of one.
func (r *redactor) text(s string) string {
	for _, t := range r.texts {
		s = strings.ReplaceAll(s, t, hidden)
	}
	return secretShape.ReplaceAllString(s, hidden)
}

// value hides the whole string of a member that is named like a secret.
func (r *redactor) value(key, s string) string {
	if secretName.MatchString(key) && !notSecret.MatchString(key) && s != "" {
		return hidden
	}
	return r.text(s)
}

// line redacts a line of the wire: inside its strings where it is JSON.
func (r *redactor) line(line string) string {
	v, _ := strictjson.Parse([]byte(line))
	if v == nil {
		return r.text(line)
	}
	eachString(v, "", func(key, s string) {
		if safe := r.value(key, s); safe != s {
			quoted := strictjson.Quote(s)
			line = strings.ReplaceAll(line, quoted, strictjson.Quote(safe))
			line = strings.ReplaceAll(line, quoted[1:len(quoted)-1], hidden)
		}
	})
	return r.text(line)
}
