package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/conformance/fakeserver"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/transcript"
)

// fakeMode makes the test binary be the server under test.
const fakeMode = "MCP_FAKE_SERVER"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "be-the-end" {
		theEnd(os.Args[2:])
		return
	}
	if mode, ok := os.LookupEnv(fakeMode); ok {
		if mode == fakeserver.Child {
			cmd := exec.Command("/bin/sleep", "1000")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			mode = ""
		}
		fakeserver.Main(mode, os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

func parse(t *testing.T, name, text string) *transcript.Transcript {
	t.Helper()
	tr, err := transcript.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// against runs transcripts against the fake server in a mode.
func against(t *testing.T, mode string, cfg Config, ts ...*transcript.Transcript) *report.Report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Command = []string{self}
	cfg.Env = append(os.Environ(), fakeMode+"="+mode)
	cfg.Transcripts = ts
	rep, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func explain(rep *report.Report) string {
	var b strings.Builder
	for _, c := range rep.Cases {
		b.WriteString(c.ID() + ": " + string(c.Outcome) + " " + c.Reason + "\n")
		for _, f := range c.Findings {
			b.WriteString("  " + string(f.Severity) + " " + f.Rule + ": " + f.Message + "\n")
			for _, d := range f.Differences {
				b.WriteString("    " + d.String() + "\n")
			}
			for _, e := range f.Wire {
				b.WriteString("    " + e.Dir + " " + e.Text + "\n")
			}
		}
	}
	return b.String() + rep.Aborted
}

func TestExamplesPass(t *testing.T) {
	files, err := filepath.Glob("../transcript/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	ts, err := Load(files...)
	if err != nil {
		t.Fatal(err)
	}
	rep := against(t, "", Config{}, ts...)
	for _, c := range rep.Cases {
		if c.Outcome != report.Pass {
			t.Errorf("%s:\n%s", c.ID(), explain(rep))
			break
		}
	}
	if diff := cmp.Diff(transcript.Revisions, rep.Spoken); diff != "" {
		t.Error(diff)
	}
}

const everything = `title: a bit of everything
revisions: all
requirement: tools.call.result
needs: tool echo

open
call 1 tools/list
expect result 1 {"tools": <each {"name": <string>}>, "nextCursor": <string as cursor>}
call 2 tools/list {"cursor": "${cursor}"}
call 3 tools/call {"name": "slow", "arguments": {"ms": 1}, "_meta": {"progressToken": "t"}}
call "x" tools/call {"name": "echo", "arguments": {"text": "${revision} ${file:a.txt}"}}
ordered
  expect notification notifications/progress {"progressToken": "t", "progress": <0..>}
  expect result 3 {"content": [{"type": "text", "text": "slow"}]}
end
expect result "x" {"content": [{"text": </^20.*hello\n$/>}]}
expect result 2 {"nextCursor": <absent>}
never notification notifications/message
raw every=7 "{\"jsonrpc\":\"2.0\",\"method\":\"nope\"," | "\"id\":9}" "\n"
expect error 9 -32601
call 10 tools/call {"name": "nope"}
expect error 10 -32602 {"message": </unknown tool/>}
when ..2025-11-25
  call 11 ping
otherwise
  call 11 server/discover
end
@b call 1 tools/call {"name": "echo"}
@b maybe result 1
ignore 11
close stdin
expect exit 0 within 10s
expect stderr empty
-- a.txt --
hello
`

func TestEverything(t *testing.T) {
	// @b has no session before 2026-07-28, so its call is refused: still a reply.
	rep := against(t, "", Config{Verbose: true}, parse(t, "everything.txt", everything))
	for _, c := range rep.Cases {
		if c.Outcome != report.Pass || len(c.Wire) == 0 {
			t.Fatal(explain(rep))
		}
	}
}

const callEcho = `title: echo answers
revisions: 2025-11-25
requirement: tools.call.result
open
call 1 tools/call {"name": "echo", "arguments": {"text": "x"}}
expect result 1 {"content": [{"type": "text", "text": "x"}]}
`

const cancelled = `title: cancel
revisions: 2025-11-25, 2026-07-28
requirement: cancel.server.no-response cancel.server.nothing-further
open
call 1 tools/call {"name": "slow", "arguments": {"ms": 200}}
notify notifications/cancelled {"requestId": 1}
expect witness
call 2 tools/call {"name": "slow", "arguments": {"ms": 400}}
never reply 1 until result 2
`

const listTools = `title: tools are listed
revisions: 2026-07-28
requirement: tools.list.result
open
call 1 tools/list
expect result 1 {"tools": <array>}
`

// TestFaults checks that each misbehaviour is found, by its rule.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		mode, script string
		outcome      report.Outcome
		rule         string
		message      string
	}{
		{"", callEcho, report.Pass, "", ""},
		{fakeserver.Banner, callEcho, report.Fail, "framing.stdout-only-mcp", "Welcome"},
		{fakeserver.Twice, callEcho, report.Fail, "jsonrpc.response.exactly-one", "second reply"},
		{fakeserver.StringIDs, callEcho, report.Fail, "jsonrpc.id.type-preserved", `came back as "1"`},
		{fakeserver.AnswerAfter, cancelled, report.Warn, "cancel.server.no-response", ""},
		{fakeserver.AnswerAfter, strings.Replace(cancelled, "2025-11-25, ", "", 1), report.Fail, "cancel.server.nothing-further", ""},
		{fakeserver.BadSchema, listTools, report.Fail, "framing.stdout-schema-valid", "inputSchema"},
		{fakeserver.Crash, callEcho, report.Fail, "", "exit code 7"},
		{fakeserver.HangCall, callEcho, report.Fail, "", "unanswered: tools/call (id 1)"},
		{fakeserver.IgnoreTerm, callEcho, report.Pass, "", ""},
		{fakeserver.Child, callEcho, report.Pass, "", ""},
		{fakeserver.Pretty, callEcho, report.Fail, "framing.stdout-only-mcp", ""},
		{fakeserver.LegacyOnly, listTools, report.NotCovered, "", ""},
		{"", strings.Replace(callEcho, "open", "needs: tool nope\n\nopen", 1), report.Untestable, "", ""},
		{"", strings.Replace(callEcho, "open", "needs: capability prompts\n\nopen", 1), report.NotCovered, "", ""},
		{"", strings.Replace(callEcho, `"text": "x"}]`, `"text": "y"}]`, 1), report.Fail, "", "does not fit"},
		{"", callEcho + "call 7 tools/call {\"name\": \"slow\", \"arguments\": {\"ms\": 9000}}\nsignal KILL\nexpect exit signal:KILL\n", report.Pass, "", ""},
	} {
		t.Run(c.mode+" "+string(c.outcome)+" "+c.rule, func(t *testing.T) {
			rep := against(t, c.mode, Config{Timeout: 3 * time.Second, ExitGrace: 300 * time.Millisecond}, parse(t, "t.txt", c.script))
			last := rep.Cases[0]
			if last.Outcome != c.outcome {
				t.Fatal(explain(rep))
			}
			if c.rule == "" && c.message == "" {
				return
			}
			for _, f := range last.Findings {
				if (c.rule == "" || f.Rule == c.rule) && strings.Contains(f.Message, c.message) {
					return
				}
			}
			t.Fatal(explain(rep))
		})
	}
}

// TestDifferencesAreToldAsJSON holds what a report says where a reply is not what was
// expected: the places in the message, with both sides.
func TestDifferencesAreToldAsJSON(t *testing.T) {
	for _, c := range []struct {
		name, expect string
		want         []report.Difference
	}{
		{"another value", `result 1 {"content": [{"type": "text", "text": "y"}], "isError": <absent>}`, []report.Difference{{Path: "result.content[0].text", Expected: `"y"`, Got: `"x"`}}},
		{"an error was expected", `error 1 -32602|-32600`, []report.Difference{
			{Path: "error", Expected: "an error with the code -32602 or -32600", Got: "nothing"},
			{Path: "result", Expected: "nothing", Got: `{"content":[{"text":"x","type":"text"}]}`},
		}},
		{"a result was expected", `result 2 {"tools": <array>}`, []report.Difference{
			{Path: "result", Expected: `{"tools": an array}`, Got: "nothing"},
			{Path: "error", Expected: "nothing", Got: `{"code":-32601,"message":"unknown method nope"}`},
		}},
		{"another code", `error 2 -32602 {"data": {"x": 1}}`, []report.Difference{
			{Path: "error.code", Expected: "-32602", Got: "-32601"},
			{Path: "error.data", Expected: `{"x": 1}`, Got: "nothing"},
		}},
		{"the whole reply", `reply 1 {"id": 2}`, []report.Difference{{Path: "id", Expected: "2", Got: "1"}}},
		{"the nearest notification", `notification notifications/progress {"progress": 5}`, []report.Difference{{Path: "params.progress", Expected: "5", Got: "1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := strings.Replace(callEcho[:strings.Index(callEcho, "expect")], "open", "timeout: 1s\n\nopen", 1) + `call 2 nope
call 3 tools/call {"name": "slow", "arguments": {"ms": 1}, "_meta": {"progressToken": "t"}}
expect result 3
expect ` + c.expect + "\n"
			rep := against(t, "", Config{}, parse(t, "t.txt", script))
			if len(rep.Cases[0].Findings) != 1 {
				t.Fatal(explain(rep))
			}
			if diff := cmp.Diff(c.want, rep.Cases[0].Findings[0].Differences); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHungServerCostsItsTimeoutOnce compares counts, not times: the run ends
// after one wait although many transcripts would each have waited.
func TestHungServerCostsItsTimeoutOnce(t *testing.T) {
	var ts []*transcript.Transcript
	for range 40 {
		ts = append(ts, parse(t, "t.txt", callEcho), parse(t, "t2.txt", listTools))
	}
	start := time.Now()
	rep := against(t, fakeserver.Hang, Config{Timeout: 2 * time.Second, ExitGrace: 100 * time.Millisecond}, ts...)
	if took := time.Since(start); took > 40*time.Second {
		t.Errorf("80 transcripts against a hung server took %v: more than one timeout each", took)
	}
	if !strings.Contains(rep.Aborted, "did not answer initialize or server/discover within 2s") || rep.ExitCode(false) != report.ExitFailed {
		t.Errorf("aborted: %q", rep.Aborted)
	}
}

// TestLoadTakesTranscriptsOfADirectoryAndAnyNamedFile: a directory holds more than
// transcripts; a file that is named is one, whatever it is called.
func TestLoadTakesTranscriptsOfADirectoryAndAnyNamedFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txtar": callEcho, "sub/b.txtar": callEcho, "frozen.txt": "# digests\n0123\n", "c.txt": callEcho, "notes.md": "# Notes\n"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := func(ts []*transcript.Transcript, err error) (out []string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range ts {
			rel := strings.TrimPrefix(filepath.ToSlash(tr.Path), filepath.ToSlash(dir)+"/")
			out = append(out, rel)
		}
		return out
	}
	if diff := cmp.Diff([]string{"a.txtar", "sub/b.txtar"}, names(Load(dir))); diff != "" {
		t.Errorf("the directory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.txtar", "sub/b.txtar"}, names(LoadFS(os.DirFS(dir), "."))); diff != "" {
		t.Errorf("the file system (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.txtar", "c.txt", "sub/b.txtar"}, names(Load(dir, filepath.Join(dir, "c.txt")))); diff != "" {
		t.Errorf("the directory and a file (-want +got):\n%s", diff)
	}
	if _, err := Load(filepath.Join(dir, "frozen.txt")); err == nil {
		t.Error("a named file that is no transcript was passed over")
	}
}

func TestUpdateRewritesWhatDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.txt")
	text := strings.Replace(callEcho, `"text": "x"}]`, `"text": "y"}]`, 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ts, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	u := &Updates{}
	against(t, "", Config{Update: u}, ts...)
	if _, err := u.Write(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, `"text": "y"`, `"text": "x"`, 1)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
