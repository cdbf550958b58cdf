package runs

import (
	"strings"
	"testing"
)

func TestScreen(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"text", []string{"a\tb\n", "c\n"}, "a\tb\nc\n"},
		{"a sequence in two writes", []string{"x\x1b[3", "1mred\x1b[0m\n"}, "xred\n"},
		{"a character in two writes", []string{"\xc3", "\xa4\n"}, "ä\n"},
		{"title and bell", []string{"\x1b]0;owned\x07ok\n"}, "ok\n"},
		{"progress drawn over itself", []string{"10%\r", "100%\n"}, "100%\n"},
		{"invalid UTF-8 and NUL", []string{"\xff\x00a\n"}, "\ufffda\n"},
		{"written backwards", []string{"\u202eabc\n"}, "abc\n"},
		{"no end of line", []string{"a\nlast"}, "a\nlast\n"},
		{"a line without end is not kept for ever", []string{strings.Repeat("y", maxLine+1)}, strings.Repeat("y", maxLine+1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			s := &screen{w: &out}
			for _, w := range tt.writes {
				if n, err := s.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got %q, want %q", out.String(), tt.want)
			}
		})
	}
}
