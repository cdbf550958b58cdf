package fabroapi

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"fabro-mcp/internal/workflow"
)

// FuzzParseTarget: what is accepted has a canonical form that is a fixed point.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"https://a.example:443/x", "/run/x.sock", "unix:///a/../b", "http://[::1]:1", "http://0x1", "https://u:p@h", "http://%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			if !target.IsZero() {
				t.Errorf("%q: a target beside an error", text)
			}
			return
		}
		again, err := ParseTarget(target.String())
		if err != nil || again != target {
			t.Errorf("%q: %q: %v, %v", text, target, again, err)
		}
	})
}

// FuzzTOMLString: every string survives as a TOML value, and as an input reads
// back the way a server reads it.
func FuzzTOMLString(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\"b\\c", "line\nbreak\r\t", "\x00\x1f\x7f\u0085\u2028", "🎉", "true", "3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := strings.ToValidUTF8(text, "�")
		literal := tomlString(text)
		var doc map[string]any
		if err := toml.Unmarshal([]byte("v = "+literal), &doc); err != nil || doc["v"] != want {
			t.Fatalf("%q: %s: %v, %v", text, literal, doc["v"], err)
		}
		if got, err := workflow.ParseInput(literal); err != nil || got != want {
			t.Fatalf("%q: %s: as an input: %v, %v", text, literal, got, err)
		}
	})
}

// FuzzTOMLFloat: a number stays what it is.
func FuzzTOMLFloat(f *testing.F) {
	for _, seed := range []float64{0, 1, -2.5, 1e21, 1e-9, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, number float64) {
		literal, err := tomlFloat(number)
		if err != nil {
			return // not a number, or infinite
		}
		if got, err := workflow.ParseInput(literal); err != nil || got != number {
			t.Fatalf("%v: %s: %v, %v", number, literal, got, err)
		}
	})
}

// FuzzReadEvents: no stream makes the reader fail in another way than its
// callback or its limit do, and it hands on whole lines only.
func FuzzReadEvents(f *testing.F) {
	for _, seed := range []string{"", "data: 1\n\n", "data:2\r\n: x\nevent: y\ndata:\n", "data: cut", strings.Repeat("x", 70000) + "\ndata: 3\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		err := readEvents(strings.NewReader(stream), 1<<16, func(data []byte) error {
			if len(data) == 0 || strings.ContainsAny(string(data), "\n") || !strings.Contains(stream, string(data)) {
				t.Errorf("handed on %q", data)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errTooLarge) {
			t.Error(err)
		}
	})
}

// FuzzRedact: redacting twice changes nothing, and no secret is left.
func FuzzRedact(f *testing.F) {
	const secret = "s3cr3t-value"
	for _, seed := range []string{"", "Bearer x", "https://a:b@c", "fabro_dev_12345678", "eyJabcdefghij", "Bearer [redacted]", "://@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Redact(text+" "+secret, secret)
		if strings.Contains(once, secret) {
			t.Errorf("%q: %q", text, once)
		}
		if again := Redact(once, secret); again != once {
			t.Errorf("%q: %q, then %q", text, once, again)
		}
	})
}
