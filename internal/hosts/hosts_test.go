package hosts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"fabro-mcp/internal/hosts"

	"github.com/google/go-cmp/cmp"
)

var entry = hosts.Entry{Command: "fabro", Args: []string{"mcp", "start"}}

func TestEdit(t *testing.T) {
	const fresh = `{
  "mcpServers": {
    "fabro": {
      "command": "fabro",
      "args": [
        "mcp",
        "start"
      ]
    }
  }
}
`
	tests := []struct {
		name     string
		in, want string
		comments bool
	}{
		{"empty object", "{}\n", fresh, false},
		{"already there", fresh, fresh, false},
		{"same entry, laid out differently", `{"mcpServers":{"fabro":{"command":"fabro","args":["mcp","start"]}}}`,
			`{"mcpServers":{"fabro":{"command":"fabro","args":["mcp","start"]}}}`, false},
		{"one line stays one line", `{"a":1}`, `{"a":1,"mcpServers":{"fabro":{"command":"fabro","args":["mcp","start"]}}}`, false},
		{"other keys keep order and spelling",
			"{\n\t\"z\": 1.0e2,\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t},\n\t\"a\": [1,2,   3]\n}\n",
			"{\n\t\"z\": 1.0e2,\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"},\n\t\t\"fabro\": {\n\t\t\t\"command\": \"fabro\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\",\n\t\t\t\t\"start\"\n\t\t\t]\n\t\t}\n\t},\n\t\"a\": [1,2,   3]\n}\n", false},
		{"an old entry is replaced in place and keeps its env",
			`{"mcpServers": {"fabro": {"command": "npx", "env": {"A": "b"}, "args": ["mcp", "start"]}, "z": {}}}`,
			`{"mcpServers": {"fabro": {"command": "fabro", "env": {"A": "b"}, "args": ["mcp", "start"]}, "z": {}}}`, false},
		{"CRLF and a byte-order mark stay",
			"\xef\xbb\xbf{\r\n    \"a\": 1\r\n}\r\n",
			"\xef\xbb\xbf{\r\n    \"a\": 1,\r\n    \"mcpServers\": {\r\n        \"fabro\": {\r\n            \"command\": \"fabro\",\r\n            \"args\": [\r\n                \"mcp\",\r\n                \"start\"\r\n            ]\r\n        }\r\n    }\r\n}\r\n", false},
		{"comments stay where the host reads them",
			"{\n  // mine\n  \"a\": 1, // one\n}\n",
			"{\n  // mine\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"fabro\": {\n      \"command\": \"fabro\",\n      \"args\": [\n        \"mcp\",\n        \"start\"\n      ]\n    }\n  }\n}\n", true},
		{"an entry of a server over HTTP becomes one with a command",
			`{"mcpServers":{"fabro":{"url":"https://x","type":"http","headers":{"a":"b"},"disabled":false}}}`,
			`{"mcpServers":{"fabro":{"disabled":false,"command":"fabro","args":["mcp","start"]}}}`, false},
		{"the kind of transport stays where it says so",
			`{"mcpServers":{"fabro":{"type":"stdio","command":"x","args":[],"url":"https://x"}}}`,
			`{"mcpServers":{"fabro":{"type":"stdio","command":"fabro","args":["mcp","start"]}}}`, false},
		{"a large number keeps its digits", `{"id":9007199254740993,"mcpServers":{}}`,
			`{"id":9007199254740993,"mcpServers":{"fabro":{"command":"fabro","args":["mcp","start"]}}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := hosts.Edit([]byte(tt.in), "fabro", entry, tt.comments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("edited file (-want +got):\n%s", diff)
			}
			again, err := hosts.Edit(got, "fabro", entry, tt.comments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(got), string(again)); diff != "" {
				t.Errorf("a second edit changed the file:\n%s", diff)
			}
		})
	}
}

// What a user added to the entry stays, and a second time changes nothing.
func TestEditKeepsArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bin", "fabro") // absolute on every system
	type e = hosts.Entry
	start := func(more ...string) []string { return append([]string{"mcp", "start"}, more...) }
	tests := []struct {
		name           string
		old, set, want e
	}{
		{"a flag", e{"fabro", start("--read-only")}, e{"fabro", start()}, e{"fabro", start("--read-only")}},
		{"the path of the program", e{path, start()}, e{"fabro", start()}, e{path, start()}},
		{"the path with .exe", e{path + ".exe", start()}, e{"fabro", start()}, e{path + ".exe", start()}},
		{"another program", e{path + "-dev", start("--read-only")}, e{"fabro", start()}, e{"fabro", start("--read-only")}},
		{"a flag beside a new one", e{"fabro", start("--read-only")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--server", "/b", "--read-only")}},
		{"a flag set anew", e{"fabro", start("--server", "/a", "--read-only")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--server", "/b", "--read-only")}},
		{"one word set anew", e{"fabro", start("--read-only", "--server=/a")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--server", "/b", "--read-only")}},
		{"a flag that is not set anew", e{"fabro", start("--server", "/a")}, e{"fabro", start("--storage-dir", "/s")}, e{"fabro", start("--storage-dir", "/s", "--server", "/a")}},
		{"the same in another order", e{"fabro", start("--read-only", "--server=/b")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--read-only", "--server=/b")}},
		{"a flag without its value", e{"fabro", start("--server")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--server", "/b")}},
		{"a flag where a value is missing", e{"fabro", start("--server", "--read-only")}, e{"fabro", start("--server", "/b")}, e{"fabro", start("--server", "/b", "--read-only")}},
		{"another subcommand", e{path, []string{"mcp", "tools", "--read-only"}}, e{"fabro", start()}, e{"fabro", start()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"fabro": tt.old}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if src, err = hosts.Edit(src, "fabro", tt.set, false); err != nil {
					t.Fatal(err)
				}
				var got struct {
					Servers map[string]e `json:"mcpServers"`
				}
				if err := json.Unmarshal(src, &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got.Servers["fabro"]); diff != "" {
					t.Errorf("entry (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty file", "", "not valid JSON"},
		{"cut off", `{"mcpServers": {`, "line 1"},
		{"error in a later line", "{\n \"a\": 1\n \"b\": 2\n}", "line 3"},
		{"no object", `[1]`, "must contain a JSON object"},
		{"servers of the wrong type", `{"mcpServers": []}`, "member mcpServers must contain a JSON object"},
		{"entry of the wrong type", `{"mcpServers": {"fabro": "x"}}`, "member fabro must contain a JSON object"},
		{"comments where the host reads none", "{ // x\n}", "comments"},
		{"a member twice", `{"mcpServers": {"fabro": {}, "fabro": {}}}`, "mcpServers.fabro occurs twice"},
		{"text behind the document", `{} x`, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := hosts.Edit([]byte(tt.in), "fabro", entry, false)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Edit = %q, %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	file := hosts.File{Path: filepath.Join(dir, "sub", "mcp.json")}
	install := func(want bool) {
		t.Helper()
		if change, err := hosts.Install(file, "fabro", entry); err != nil || change.Written != want {
			t.Fatalf("Install = %+v, %v; want %v", change, err, want)
		}
	}
	install(true)
	before, err := os.Stat(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	install(false)
	if after, _ := os.Stat(file.Path); !os.SameFile(before, after) {
		t.Error("an entry that was there already caused a write")
	}

	const broken = `{"mcpServers": `
	if err := os.WriteFile(file.Path, []byte(broken), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Install(file, "fabro", entry); err == nil || !strings.Contains(err.Error(), file.Path) {
		t.Fatalf("a broken file: %v; want an error that names it", err)
	}
	if got, _ := os.ReadFile(file.Path); string(got) != broken {
		t.Fatalf("a broken file was changed to %q", got)
	}
	if names, _ := os.ReadDir(filepath.Dir(file.Path)); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// Twenty writers at once: all entries survive, the file is whole at every moment.
func TestInstallTogether(t *testing.T) {
	file := hosts.File{Path: filepath.Join(t.TempDir(), "mcp.json")}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := hosts.Install(file, fmt.Sprintf("server-%d", i), entry); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(file.Path)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]hosts.Entry `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &config); err != nil || len(config.Servers) != 20 {
		t.Errorf("%d entries, %v", len(config.Servers), err)
	}
	if names, _ := os.ReadDir(filepath.Dir(file.Path)); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

func TestInstallKeepsModeAndLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits, and links need a privilege there")
	}
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles.json")
	if err := os.WriteFile(real, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "mcp.json")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Install(hosts.File{Path: link}, "fabro", entry); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link became a file")
	}
	if info, _ := os.Stat(real); info.Mode().Perm() != 0o644 {
		t.Errorf("mode became %v", info.Mode().Perm())
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Install(hosts.File{Path: link}, "fabro", entry); err == nil {
		t.Error("a dangling link was written through")
	}
}

// Where the temporary directory is missing or read-only, and nothing may be left
// behind in it.
func TestInstallNeedsNoTemporaryDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows locks a file in the temporary directory")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	if _, err := hosts.Install(hosts.File{Path: filepath.Join(dir, "mcp.json")}, "fabro", entry); err != nil {
		t.Fatal(err)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"backslashes written twice", `{"mcpServers":{"a":{"command":"C:\\new\\x.exe","args":["c:\\temp"]}}}`, ""},
		{"an argument", `{"mcpServers":{"a":{},"bad":{"args":["-x","c:\temp\new"]}}}`, `"bad"`},
		{"the command", `{"mcpServers":{"bad":{"command":"C:\bin\fabro"}}}`, `"bad"`},
		{"behind a flag", `{"mcpServers":{"bad":{"args":["--dir=d:x\new"]}}}`, `"bad"`},
		{"no path", `{"mcpServers":{"a":{"args":["http://x\ty","echo:\tc"],"command":7},"c":5}}`, ""},
		{"no JSON", `{`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(path, []byte(tt.in), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(hosts.Warnings(hosts.File{Path: path}), "\n")
			if (got != "") != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("warnings %q; want %q in them", got, tt.want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	env := map[string]string{"APPDATA": `C:\Users\u\Roaming`, "XDG_CONFIG_HOME": "/home/u/xdg"}
	tests := []struct {
		host, os string
		env      map[string]string
		want     []string
	}{
		{"claude", "linux", nil, []string{"/home/u/.config/Claude/claude_desktop_config.json", "/home/u/.claude.json"}},
		{"claude", "linux", env, []string{"/home/u/xdg/Claude/claude_desktop_config.json", "/home/u/.claude.json"}},
		{"claude", "darwin", env, []string{"/home/u/Library/Application Support/Claude/claude_desktop_config.json", "/home/u/.claude.json"}},
		{"claude", "windows", nil, []string{"/home/u/AppData/Roaming/Claude/claude_desktop_config.json", "/home/u/.claude.json"}},
		{"cursor", "linux", nil, []string{"/home/u/.cursor/mcp.json"}},
		{"windsurf", "linux", nil, []string{"/home/u/.codeium/windsurf/mcp_config.json"}},
	}
	for _, tt := range tests {
		host, err := hosts.Find(tt.host)
		if err != nil {
			t.Fatal(err)
		}
		files, err := host.Files(hosts.System{OS: tt.os, Home: "/home/u", Getenv: func(k string) string { return tt.env[k] }})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, filepath.ToSlash(f.Path))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s on %s:\n%s", tt.host, tt.os, diff)
		}
	}
	if _, err := hosts.Find("claud"); err == nil || !strings.Contains(err.Error(), "cursor") {
		t.Errorf("an unknown host: %v; want the names there are", err)
	}
}

func FuzzEdit(f *testing.F) {
	for _, seed := range []string{"{}", `{"mcpServers":{"fabro":{}}}`, "{\n\t\"a\": [1, {\"b\": null}]\n}\n", "{ // c\n}", "\xef\xbb\xbf{}", `{"mcpServers":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, comments := range []bool{false, true} {
			out, err := hosts.Edit(src, "fabro", entry, comments)
			if err != nil {
				if strings.Contains(err.Error(), "editing") {
					t.Fatalf("%q: %v", src, err)
				}
				continue
			}
			again, err := hosts.Edit(out, "fabro", entry, comments)
			if err != nil || string(again) != string(out) {
				t.Fatalf("%q: a second edit of %q gave %q, %v", src, out, again, err)
			}
		}
	})
}
