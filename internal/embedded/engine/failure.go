package engine

import (
	"strings"

	"fabro-mcp/fabroapi/wire"
)

// Categories of failures: they sort them by what may help.
const (
	TransientInfra  = "transient_infra"
	Deterministic   = "deterministic"
	BudgetExhausted = "budget_exhausted"
	CompilationLoop = "compilation_loop"
	Canceled        = "canceled"
	Structural      = "structural"
)

// A Failure says why a stage or a run failed.
type Failure = wire.FailureDetail

// failureFromText makes a failure whose category follows from its words, as Fabro derives it where a failure carries no
// category of its own. The message of a failed command ends with its output, so the output has a say.
func failureFromText(message string) *Failure {
	return &Failure{Message: message, Category: categoryOf(message)}
}

// categoryWords is searched from the top; the first row with a hit wins. Cancellation comes before it, see categoryOf.
var categoryWords = []struct {
	category string
	words    []string
}{
	{TransientInfra, []string{
		"timeout", "timed out", "context deadline exceeded",
		"rate limit", "too many requests", "try again", "service unavailable", "temporarily unavailable", "temporary failure",
		"connection refused", "connection reset", "econnrefused", "econnreset", "broken pipe", "could not resolve host",
		"network is unreachable", "no route to host", "dial tcp", "transport is closing", "stream disconnected", "stream closed before",
	}},
	{TransientInfra, []string{
		"cross-device link", "os error 18", "index.crates.io", "download of config.json failed",
		"toolchain_not_installed", "toolchain not installed", "toolchain is not installed",
		"state change in progress", "sandbox stop still in progress",
	}},
	{BudgetExhausted, []string{
		"turn limit", "token limit", "context length", "context window exceeded", "budget", "quota exceeded", "max_tokens", "max tokens",
	}},
	{Structural, []string{"write_scope_violation", "write scope violation", "scope violation"}},
}

var (
	hexRun      = lazily(`\b[0-9a-f]{7,64}\b`)
	digitRun    = lazily(`\b[0-9]+\b`)
	commaBlanks = lazily(`,\s+`)
	serverError = lazily(`\b50[0234]\b`)
	testCancel  = lazily(`cancell?ing due to test failure`)
)

func categoryOf(message string) string {
	text := hexRun().ReplaceAllString(strings.ToLower(message), "<hex>")
	if strings.Contains(text, "interrupt") || strings.Contains(testCancel().ReplaceAllString(text, ""), "cancel") {
		return Canceled
	}
	if serverError().MatchString(text) {
		return TransientInfra
	}
	for _, row := range categoryWords {
		for _, word := range row.words {
			if strings.Contains(text, word) {
				return row.category
			}
		}
	}
	return Deterministic
}

// maxSignature bounds the message part of a failure signature, in bytes.
const maxSignature = 240

// signatureOf names a failure so that the same failure of the same node has the same name again: numbers and hashes,
// which change from attempt to attempt, are masked. Output in the message makes it differ, and then the circuit breaker
// does not see a repetition.
func signatureOf(node string, f *Failure) string {
	text := strings.TrimSpace(strings.ToLower(f.Message))
	text = hexRun().ReplaceAllString(text, "<hex>")
	text = digitRun().ReplaceAllString(text, "<n>")
	text = commaBlanks().ReplaceAllString(text, ",")
	text = strings.Join(strings.Fields(text), " ")
	text = cutBytes(text, maxSignature)
	if text == "" {
		text = "unknown"
	}
	return node + "|" + f.Category + "|" + text
}

// cutBytes cuts text to at most n bytes without splitting a character.
func cutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
