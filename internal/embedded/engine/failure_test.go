package engine

import (
	"strings"
	"testing"
)

func TestCategories(t *testing.T) {
	cases := []struct{ message, want string }{
		{"", Deterministic},
		{"Script failed with exit code: 3", Deterministic},
		{"the user interrupted it", Canceled},
		{"Operation Cancelled", Canceled},
		{"canceling due to test failure", Deterministic},
		{"cancelling due to test failure, then cancelled", Canceled},
		{"read: i/o timeout", TransientInfra},
		{"Script timed out after 5ms", TransientInfra},
		{"429 Too Many Requests", TransientInfra},
		{"dial tcp 1.2.3.4: connection refused", TransientInfra},
		{"HTTP 503", TransientInfra},
		{"line 1503", Deterministic},
		{"commit 50050050050", Deterministic},
		{"commit abc502de and 502", TransientInfra},
		{"Invalid cross-device link (os error 18)", TransientInfra},
		{"token limit reached", BudgetExhausted},
		{"quota exceeded, timeout", TransientInfra},
		{"write_scope_violation: /etc", Structural},
		{"assertion failed", Deterministic},
	}
	for _, c := range cases {
		if got := categoryOf(c.message); got != c.want {
			t.Errorf("%q is %s, want %s", c.message, got, c.want)
		}
	}
}

func TestSignatures(t *testing.T) {
	cases := []struct{ message, want string }{
		{"  Exit code: 17,  at 0A1B2C3D4E  ", "n|deterministic|exit code: <n>,at <hex>"},
		{"v2 of file7", "n|deterministic|v2 of file7"},
		{"\n\t ", "n|deterministic|unknown"},
		{strings.Repeat("ä", 200), "n|deterministic|" + strings.Repeat("ä", 120)},
	}
	for _, c := range cases {
		if got := signatureOf("n", &Failure{Message: c.message, Category: Deterministic}); got != c.want {
			t.Errorf("%q is %s, want %s", c.message, got, c.want)
		}
	}
}
