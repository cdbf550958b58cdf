package transcript

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/conformance/strictjson"
)

const head = "title: t\nrevisions: all\n\n"

// whole uses every construct once.
const whole = `# What it is about.
title: everything once
requirement: jsonrpc.id.echoed framing.utf8
requirement: jsonrpc.batch.receive
revisions: 2024-11-05..2025-03-26, 2026-07-28
needs: tool echo
needs: setting workflow
timeout: 3s
tags: ids slow

env clear
env HOME "${tmp}"
env unset LANG
cwd "${tmp}"
finally "server" "stop"
start "--flag" "${workflow}"
open {"sampling": {}}
call 1 tools/call {
  "name": "echo",
  "arguments": {"text": "a ${revision} $${x}"}
}
notify notifications/cancelled {"requestId": 1}
send [{"jsonrpc":"2.0","id":1,"method":"ping"}]
raw every=3 "{\"a\":" | hex:efbb repeat 3 "x" file:big.txt "\n"
line ` + "`{\"jsonrpc\"`" + `
@b start
@b call 2 ping
[jsonrpc.id.echoed] should expect result 1 {"n": <int & 0..9 as n>, "list": <contains [1, <string>]>, "gone": <absent>}
expect error "x" -32600|-32601 {"message": <string | null>}
expect error unreadable -32700
maybe reply ${n} <any>
expect notification notifications/progress {"progress": <!0>}
expect request sampling/createMessage <only {"messages": <each {"role": "user"} & len 1..>}> as ask
answer ask {"model": "m"}
answer ask error {"code": -1, "message": "no"}
never notification notifications/message until witness
never reply 9
ignore 1
stop reading
resume reading
repeat i 1..3
  call ${i} ping
  when 2026-07-28
    expect frame {"id": ${i}}
  otherwise
    expect result exactly ${i} {}
  end
end
ordered
  expect result 5
end
unordered
  expect result 6 "${n}"
end
pause 10ms
timeout 1s
close stdin
signal TERM
expect stderr not /panic/
expect exit 0|143|signal:TERM within 2s
-- big.txt --
hello
`

func TestParse(t *testing.T) {
	tr, err := Parse("whole.txtar", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	type summary struct {
		Title        string
		Requirements []string
		Revisions    []string
		Needs        []Need
		Timeout      time.Duration
		Tags         []string
		Steps        int
		Files        []File
	}
	want := summary{
		"everything once", []string{"jsonrpc.id.echoed", "framing.utf8", "jsonrpc.batch.receive"},
		[]string{"2024-11-05", "2025-03-26", "2026-07-28"},
		[]Need{{NeedTool, "echo"}, {NeedSetting, "workflow"}}, 3 * time.Second, []string{"ids", "slow"}, 36,
		[]File{{"big.txt", []byte("hello\n")}},
	}
	got := summary{tr.Title, tr.Requirements, tr.Revisions, tr.Needs, tr.Timeout, tr.Tags, len(tr.Steps), tr.Files}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

type vars map[string]string

func (v vars) Var(name string) *strictjson.Value {
	if text, ok := v[name]; ok {
		value, _ := strictjson.Parse([]byte(text))
		return value
	}
	return nil
}

func TestExpand(t *testing.T) {
	src := head + "send {\n  \"a b\": [1,\n    2], \"s\": \"${text} $${n} \\\" ${n}\",\n  \"n\": ${n}, \"big\": 9007199254740993}\nexpect result 1\n"
	src = strings.Replace(src, "send", "expect frame {\"t\": <any as text>, \"n\": <any as n>}\nsend", 1)
	tr, err := Parse("x", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	out, err := tr.Steps[1].Op.(*Send).Payload.Expand(vars{"text": `"say \"hi\""`, "n": `{"k":1}`})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a b": [1,2], "s": "say \"hi\" ${n} \" {\"k\":1}","n": {"k":1}, "big": 9007199254740993}`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"no title", "revisions: all\nopen\n", "f:1:1: the header has no title"},
		{"no revisions", "title: t\nopen\n", "f:1:1: the header has no revisions"},
		{"unknown revision", "title: t\nrevisions: 2024\nopen\n", `f:2:12: unknown revision "2024"`},
		{"empty range", "title: t\nrevisions: 2025-06-18..2024-11-05\n", "f:2:12: the range"},
		{"unknown header", "title: t\nrevision: all\n", `f:2:1: unknown header "revision"`},
		{"bad need", "title: t\nneeds: echo\n", "f:2:8: needs: is followed"},
		{"empty script", head, "the script is empty"},
		{"unknown step", head + "frobnicate\n", `f:4:1: unknown step "frobnicate"`},
		{"broken json", head + "send {\"a\": }\n", "f:4:12: this is not JSON"},
		{"json over lines", head + "send {\"a\": 1,\n  b}\n", "f:5:3: "},
		{"matcher in send", head + "send {\"a\": <int>}\n", "f:4:12: a matcher"},
		{"unknown matcher", head + "expect result 1 {\"a\": <integer>}\n", `f:4:24: unknown matcher "integer"`},
		{"open matcher", head + "expect result 1 {\"a\": <int}\n", "f:4:27: "},
		{"bad regexp", head + "expect result 1 {\"a\": </(/>}\n", "f:4:24: error parsing regexp"},
		{"trailing words", head + "close stdin now\n", `f:4:13: "now" after the end`},
		{"undefined reference", head + "call ${x} ping\n", "f:4:6: nothing before defines ${x}"},
		{"answer to nobody", head + "answer ask {}\n", "f:4:1: no step before expects"},
		{"missing end", head + "ordered\n  expect result 1\n", "f:4:1: this ordered has no end"},
		{"stray end", head + "open\nend\n", `f:5:1: "end" closes no block`},
		{"send in group", head + "unordered\n  open\nend\n", "f:5:3: an ordered or unordered block"},
		{"not utf-8", head + "send \"\xff\"\n", "f:4:7: the script is not UTF-8"},
		{"member twice", head + "expect result 1 {\"a\":1,\"a\":2}\n", "f:4:24: the member"},
		{"file outside", head + "open\n-- ../x --\n", "leaves the transcript's directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.src))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		wrong          []string // paths that do not fit
	}{
		{`{"a": 1}`, `{"a": 1.0, "b": 2}`, nil},
		{`<only {"a": 1}>`, `{"a": 1, "b": 2}`, []string{""}},
		{`{"a": {"b": <int>}}`, `{"a": {"b": 1.5}}`, []string{"a.b"}},
		{`{"a": <absent>, "b": <absent | null>}`, `{"b": null}`, nil},
		{`{"a": <any>}`, `{}`, []string{"a"}},
		{`[1, 2]`, `[2, 1]`, []string{"[0]", "[1]"}},
		{`[1]`, `[1, 2]`, []string{""}},
		{`<set [1, 2]>`, `[2, 1]`, nil},
		{`<set [<any>, 2]>`, `[2, 1]`, nil},
		{`<set [<number>, <number>, "x"]>`, `["x", 1, 2]`, nil},
		{`<contains [{"n": 2}]>`, `[{"n": 1}, {"n": 2, "m": 3}]`, nil},
		{`<contains [1, 1]>`, `[1, 2]`, []string{""}},
		{`<each {"type": <"text" | "image">} & len 1..>`, `[{"type": "text"}]`, nil},
		{`<len 1..>`, `[]`, []string{""}},
		{`<keys /^[a-z]+$/>`, `{"A": 1}`, []string{""}},
		{`</^a\/b$/>`, `"a/b"`, nil},
		{`<0..9 & !5>`, `5`, []string{""}},
		{`<..-1>`, `-32600`, nil},
		{`9007199254740993`, `9007199254740992`, []string{""}},
		{`<raw "1.0">`, `1.0`, nil},
		{`<raw "1.0">`, `1`, []string{""}},
		{`<date-time>`, `"2026-07-28T10:00:00Z"`, nil},
		{`<base64>`, `"aGk="`, nil},
		{`<base64>`, `"a"`, []string{""}},
		{`"say ${name}"`, `"say me"`, nil},
		{`{"n": ${name}}`, `{"n": "you"}`, []string{"n"}},
		{`{"n": <string as x>, "m": ${x}}`, `{"n": "1", "m": "1"}`, nil},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			p, value := patternAndValue(t, c.pattern, c.value)
			wrong, _ := p.Match(value, vars{"name": `"me"`})
			var paths []string
			for _, m := range wrong {
				paths = append(paths, m.Path)
			}
			if diff := cmp.Diff(c.wrong, paths); diff != "" {
				t.Errorf("%s\n%v", diff, wrong)
			}
		})
	}
}

// patternAndValue parses both; ${name} may be used in the pattern.
func patternAndValue(t *testing.T, pattern, value string) (*Pattern, *strictjson.Value) {
	t.Helper()
	tr, err := Parse("f", []byte(head+"expect frame {\"k\": <any as name>}\nexpect frame "+pattern+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := strictjson.Parse([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return tr.Steps[1].Op.(*Expect).Target.Pattern, v
}

func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(path, data); err != nil {
			t.Error(err)
		}
	}
}

// FuzzParse holds that no input makes the parser panic, that every error names
// a place inside the file, and that parsing is a function of the bytes alone.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(head + "expect result 1 <(int | \"x\") & !0 as n>\n"))
	f.Add([]byte(head + "raw every=1 \"${tmp}\" | hex:00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Parse("f", data)
		if err == nil {
			if again, err := Parse("f", tr.Source()); err != nil || len(again.Steps) != len(tr.Steps) {
				t.Fatalf("a second reading differs: %v", err)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Column < 1 || e.Pos.Line > strings.Count(string(data), "\n")+2 {
			t.Fatalf("error without a place: %v", err)
		}
	})
}
