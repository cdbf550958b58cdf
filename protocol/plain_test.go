package protocol

import (
	"strings"
	"testing"
)

// TestSkipPlain tries every byte at every place of a word, alone and behind others
// that may carry into it.
func TestSkipPlain(t *testing.T) {
	for _, before := range []byte{'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff} {
		for at := range 20 {
			for c := range 256 {
				text := []byte(strings.Repeat(string([]byte{before}), at) + string([]byte{byte(c)}) + "aaaaaaaaaaa")
				want, ascii := len(text), len(text)
				for i := len(text) - 1; i >= 0; i-- {
					if !plainByte[text[i]] {
						want, ascii = i, i
					}
					if text[i] >= 0x80 {
						ascii = i
					}
				}
				if got := skipPlain(text, 0); got != want {
					t.Fatalf("skipPlain(%q) is %d, not %d", text, got, want)
				}
				if got := skipPlainASCII(string(text), 0); got != ascii {
					t.Fatalf("skipPlainASCII(%q) is %d, not %d", text, got, ascii)
				}
			}
		}
	}
}
