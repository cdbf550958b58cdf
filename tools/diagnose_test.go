package tools

import "testing"

func TestInlineOutput(t *testing.T) {
	text, reference := "two\nlines", "blob://sha256/12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
	for _, tt := range []struct {
		name   string
		output *string
		want   string
	}{
		{"none", nil, ""},
		{"text", &text, text},
		{"a reference", &reference, ""},
	} {
		if got := inlineOutput(tt.output); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.name, got, tt.want)
		}
	}
}
