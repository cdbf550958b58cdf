package fabroapi_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi"
)

func TestParseTarget(t *testing.T) {
	tests := []struct{ text, want, fails string }{
		{text: "https://Fabro.Example.com/", want: "https://fabro.example.com"},
		{text: " HTTP://fabro.example.com:80/api/v1/?q#f ", want: "http://fabro.example.com"},
		{text: "https://fabro.example.com:443", want: "https://fabro.example.com"},
		{text: "https://fabro.example.com:80", want: "https://fabro.example.com:80"},
		{text: "http://[::1]:32276", want: "http://[::1]:32276"},
		{text: "http://[::1]", want: "http://[::1]"},
		{text: "http://127.0.0.1:32276", want: "http://127.0.0.1:32276"},
		{text: "http://1.example", want: "http://1.example"},
		{text: "/run/../run/./fabro.sock", want: "unix:///run/fabro.sock"},
		{text: "unix:///run/fabro.sock", want: "unix:///run/fabro.sock"},
		{text: "", fails: "server target must be an http(s) URL or absolute Unix socket path"},
		{text: "fabro.sock", fails: "absolute Unix socket path"},
		{text: "ftp://x", fails: "absolute Unix socket path"},
		{text: "https://", fails: "no host"},
		{text: "http://0x7f.1", fails: "four decimal numbers"},
		{text: "http://2130706433", fails: "four decimal numbers"},
		{text: "http://010.0.0.1", fails: "four decimal numbers"},
		{text: "https://me:hunter2secret@fabro.example.com", fails: "must not contain a user"},
		{text: "https://me:hunter2secret@fabro example", fails: "http(s) URL"},
	}
	for _, test := range tests {
		target, err := fabroapi.ParseTarget(test.text)
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: error %v, want %q", test.text, err, test.fails)
			}
			continue
		}
		if err != nil || target.String() != test.want {
			t.Errorf("%q: %q, %v; want %q", test.text, target, err, test.want)
		}
		if again, err := fabroapi.ParseTarget(target.String()); err != nil || again != target {
			t.Errorf("%q: canonical form does not parse back: %v, %v", test.text, again, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	env := func(vars map[string]string) fabroapi.Environment {
		return fabroapi.Environment{Getenv: func(name string) string { return vars[name] }}
	}
	type paths struct{ Home, Settings, Storage, Auth string }
	tests := []struct {
		name string
		vars map[string]string
		flag string
		want paths
	}{
		{"nothing", nil, "", paths{".fabro", ".fabro/settings.toml", ".fabro/storage", ".fabro/auth.json"}},
		{"home", map[string]string{"HOME": home}, "", paths{home + "/.fabro", home + "/.fabro/settings.toml", home + "/.fabro/storage", home + "/.fabro/auth.json"}},
		{"everything", map[string]string{"HOME": home, "FABRO_HOME": "/h", "FABRO_CONFIG": "/c.toml", "FABRO_STORAGE_DIR": "/s", "FABRO_AUTH_FILE": "/a.json"}, "",
			paths{"/h", "/c.toml", "/s", "/a.json"}},
		{"flag", map[string]string{"FABRO_STORAGE_DIR": "/s"}, "/flag", paths{".fabro", ".fabro/settings.toml", "/flag", ".fabro/auth.json"}},
		{"settings", map[string]string{"FABRO_CONFIG": writeFile(t, "s.toml", "[server.storage]\nroot = \"/from/settings\"\n")}, "",
			paths{".fabro", "", "/from/settings", ".fabro/auth.json"}},
	}
	for _, test := range tests {
		e := env(test.vars)
		got := paths{filepath.ToSlash(e.Home()), filepath.ToSlash(e.SettingsPath()), filepath.ToSlash(e.StorageDir(test.flag)), filepath.ToSlash(e.AuthFile())}
		if test.want.Settings == "" {
			got.Settings = ""
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestAgentCommand(t *testing.T) {
	tests := []struct {
		text  string
		want  []string
		fails string
	}{
		{text: ""},
		{text: `["claude", "-p"]`, want: []string{"claude", "-p"}},
		{text: ` claude  -p 'two words' "a \"b\"" c\ d '' `, want: []string{"claude", "-p", "two words", `a "b"`, "c d", ""}},
		{text: `[1]`, fails: "JSON array of strings"},
		{text: `[]`, fails: "no program"},
		{text: `a 'b`, fails: "single quote"},
		{text: `a "b`, fails: "double quote"},
		{text: `a \`, fails: "backslash"},
	}
	for _, test := range tests {
		env := fabroapi.Environment{Getenv: func(string) string { return test.text }}
		got, err := env.AgentCommand()
		if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%q: %v, want %q", test.text, err, test.fails)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: %s", test.text, diff)
		}
	}
}

func TestRedact(t *testing.T) {
	tests := []struct{ text, want string }{
		{"plain text", "plain text"},
		{"Authorization: Bearer abc.def-123==", "Authorization: Bearer [redacted]"},
		{"Bearer token required", "Bearer token required"},
		{"token " + secretToken + ", and", "token fabro_dev_[redacted], and"},
		{"fabro_refresh_abcdefgh1234!", "fabro_refresh_[redacted]!"},
		{"the fabro_dev_ prefix", "the fabro_dev_ prefix"},
		{"jwt eyJhbGciOi.eyJzdWIi.c2ln", "jwt eyJ[redacted]"},
		{"https://user:pass@host/x https://host/a@b", "https://[redacted]@host/x https://host/a@b"},
		{"my topsecret1 value", "my [redacted] value"},
	}
	for _, test := range tests {
		got := fabroapi.Redact(test.text, "topsecret1", "")
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
		if again := fabroapi.Redact(got, "topsecret1"); again != got {
			t.Errorf("%q: redacted twice: %q", test.text, again)
		}
	}
}
