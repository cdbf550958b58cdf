package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// TestKnownFailures has one subtest for each way in which other servers broke, by
// the id it has in the collection of their reports.
func TestKnownFailures(t *testing.T) {
	for _, c := range []struct {
		id, name string
		run      func(t *testing.T)
	}{
		{"EOF-1", "piped requests are answered, fifty times out of fifty", func(t *testing.T) {
			for range 50 {
				p := start(t, startOptions{})
				p.send(req("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
					req("7", "tools/call", `{"name":"echo","arguments":{"text":"x"}}`))
				p.in.Close()
				p.answer("7")
				if code := p.exit(); code != 0 {
					t.Fatalf("exit code %d", code)
				}
			}
		}},
		{"EOF-3", "a background worker does not keep the process alive", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.tool("1", "ticker", "{}")
			p.send(modern("2", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
			p.next()
			p.in.Close()
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		}},
		{"EOF-7", "the watchdog ends an orphan whose pipe stays open", func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("there is no shell to be the parent")
			}
			// The shell starts the server in the background and waits; this test holds
			// the pipe. Killing the shell orphans the server.
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			inR, inW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer inW.Close()
			shell := exec.Command("sh", "-c", `"$0" --parent-watchdog <&3 & wait`, exe)
			shell.Env = append(os.Environ(), childVariable+"=1")
			shell.ExtraFiles = []*os.File{inR}
			out, err := shell.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := shell.Start(); err != nil {
				t.Fatal(err)
			}
			inR.Close()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r := bufio.NewReader(out)
				r.ReadString('\n')
				shell.Process.Kill()
				r.ReadString('\n') // returns when the server, which holds the pipe, has ended
			}()
			io.WriteString(inW, req("1", "ping", "")+"\n")
			select {
			case <-ended:
			case <-time.After(waitLimit):
				t.Error("the orphan lives on")
			}
			shell.Wait()
		}},
		{"EOF-8", "a closed standard output ends the process quietly", func(t *testing.T) {
			p := start(t, startOptions{quiet: true})
			p.out.Close()
			p.send(req("1", "ping", ""))
			if code := p.exit(); code != 1 {
				t.Errorf("exit code %d", code)
			}
			if spent := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(); spent > time.Second {
				t.Errorf("it spun for %v", spent)
			}
		}},
		{"EOF-11", "SIGTERM right after the end of input", func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("there is no SIGTERM")
			}
			for range 10 {
				p := start(t, startOptions{})
				p.send(modern(`"server-discover-probe-1"`, "server/discover", ""))
				p.answer(`"server-discover-probe-1"`)
				p.in.Close()
				p.cmd.Process.Signal(syscall.SIGTERM)
				if code := p.exit(); code != 0 {
					t.Fatalf("exit code %d: %s", code, p.errors())
				}
				if out := p.output(); !strings.HasSuffix(out, "\n") || strings.Contains(p.errors(), "goroutine") {
					t.Errorf("output %q, standard error %q", out, p.errors())
				}
			}
		}},
		{"EOF-12", "a child of a tool leaves the protocol's pipes alone", func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("there is no cat")
			}
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.send(req("1", "tools/call", `{"name":"run","arguments":{"cmd":"cat"}}`), req("2", "ping", ""))
			got := map[string]string{}
			for range 2 {
				r := parse(t, p.next())
				got[string(r.ID)] = string(r.Result)
			}
			if got["1"] != `{"content":[{"type":"text","text":""}]}` || got["2"] != "{}" {
				t.Errorf("got %v", got)
			}
		}},
		{"EOF-13", "two at once, a third after a kill", func(t *testing.T) {
			dir := t.TempDir()
			both := []*process{start(t, startOptions{args: []string{"--state-dir", dir}}), start(t, startOptions{args: []string{"--state-dir", dir}})}
			for _, p := range both {
				p.send(modern("1", "server/discover", ""), modern("2", "tools/list", ""))
			}
			for _, p := range both {
				p.answer("1")
				p.answer("2")
			}
			both[0].cmd.Process.Kill()
			both[0].exit()
			third := start(t, startOptions{args: []string{"--state-dir", dir}})
			third.send(modern("1", "tools/list", ""))
			third.answer("1")
			both[1].send(modern("3", "tools/list", ""))
			both[1].answer("3")
		}},
		{"OUT-1", "nothing but messages on standard output", func(t *testing.T) {
			p := start(t, startOptions{args: []string{"--verbose"}})
			p.open("2025-11-25")
			p.tool("1", "prints", "{}")
			p.tool("2", "noisy", "{}")
			p.send("garbage", `{"jsonrpc":"2.0","method":"notifications/unknown"}`)
			p.in.Close()
			p.exit()
			for line := range strings.Lines(p.output()) {
				parse(t, strings.TrimSuffix(line, "\n"))
			}
			bad := start(t, startOptions{args: []string{"--no-such-flag"}})
			if code := bad.exit(); code != 2 || bad.output() != "" {
				t.Errorf("a bad flag: exit code %d, output %q", code, bad.output())
			}
		}},
		{"OUT-4", "large frames do not mix", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for i := range 64 {
				p.send(req(fmt.Sprint(i), "tools/call", `{"name":"blob","arguments":{"bytes":200000},"_meta":{"progressToken":1}}`))
			}
			seen := map[string]bool{}
			for range 64 {
				r := parse(t, p.next())
				if seen[string(r.ID)] || r.Result == nil {
					t.Errorf("answer for %s", r.ID)
				}
				seen[string(r.ID)] = true
			}
		}},
		{"OUT-6", "lines end in one line feed", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.tool("1", "echo", `{"text":"a\r\nb"}`)
			p.in.Close()
			p.exit()
			if out := p.output(); strings.Contains(out, "\r") || strings.HasPrefix(out, "\xef\xbb\xbf") {
				t.Errorf("output %q", out)
			}
		}},
		{"FRM-1", "a malformed line does not end the session", both(func(t *testing.T, p *process) {
			p.send(`{"jsonrpc":"2.0","id":1,"method":`)
			if r := parse(t, p.next()); r.Error == nil || r.Error.Code != -32700 || string(r.ID) != "null" {
				t.Errorf("got %s", r.line)
			}
			p.call("2", "tools/list", list)
		})},
		{"FRM-3", "Content-Length framing is malformed, with a hint", func(t *testing.T) {
			p := start(t, startOptions{})
			p.write("Content-Length: 40\r\n\r\n" + req("1", "ping", "") + "\n")
			if r := parse(t, p.next()); r.Error == nil || r.Error.Code != -32700 {
				t.Errorf("got %s", r.line)
			}
			p.answer("1")
			p.in.Close()
			p.exit()
			if !strings.Contains(p.errors(), "Content-Length") {
				t.Errorf("no hint: %s", p.errors())
			}
		}},
		{"FRM-6", "long lines", func(t *testing.T) {
			p := start(t, startOptions{args: []string{"--max-result-bytes=20000000"}})
			p.open("2025-11-25")
			for i, n := range []int{70_000, 1_000_000, 12_000_000} {
				r := p.tool(fmt.Sprint(i), "echo", `{"text":"`+strings.Repeat("y", n)+`"}`)
				if len(r.line) < n {
					t.Errorf("%d bytes: got %d back", n, len(r.line))
				}
			}
		}},
		{"FRM-8", "no frame over the limit of clients", both(func(t *testing.T, p *process) {
			if r := p.call("1", "tools/call", withMeta(`"name":"blob","arguments":{"bytes":11000000}`)); len(r.line) > 1000 || !strings.Contains(r.line, `"isError":true`) {
				t.Errorf("%d bytes: %.300s", len(r.line), r.line)
			}
		})},
		{"FRM-9", "bytes that are no UTF-8", both(func(t *testing.T, p *process) {
			p.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"\xc3\x28\"}}}")
			if r := parse(t, p.next()); r.Error == nil || r.Error.Code != -32700 {
				t.Errorf("got %s", r.line)
			}
			p.call("2", "tools/list", list)
			if !utf8.ValidString(p.output()) {
				t.Error("the output is no UTF-8")
			}
		})},
		{"FRM-12", "byte-order marks", func(t *testing.T) {
			p := start(t, startOptions{})
			p.write("\xef\xbb\xbf")
			p.open("2025-11-25")
			p.write("\xef\xbb\xbf" + req("1", "ping", "") + "\n")
			p.answer("1")
		}},
		{"FRM-15", "member names in another case mean nothing", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for line, want := range map[string]int{
				`{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`:                                                         -32600,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo","arguments":{"text":"x"}}}`: -32602,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"echo"}}`:                          -32602,
				"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"param\u017f\":{\"name\":\"echo\"}}":     -32602,
				`{"JSONRPC":"2.0","id":1,"method":"ping"}`:                                                         -32600,
			} {
				p.send(line)
				if r := p.answer("1"); r.Error == nil || r.Error.Code != want {
					t.Errorf("%s: %s", line, r.line)
				}
			}
		}},
		{"ID-1", "integers above 2^53 stay apart", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.call("9007199254740993", "ping", "")
			p.send(req("9007199254740992", "tools/call", `{"name":"slow","arguments":{"ms":300}}`), req("9007199254740993", "tools/call", `{"name":"slow","arguments":{"ms":300}}`),
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740992}}`)
			if r := parse(t, p.next()); string(r.ID) != "9007199254740993" {
				t.Errorf("got %s", r.line)
			}
			p.quiet()
		}},
		{"ID-4", "ids of every kind at once", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			want := map[string]bool{}
			for _, id := range []string{"0", "-1", "2147483648", `""`, `"1"`, `"0"`, "1", `"` + strings.Repeat("i", 10_000) + `"`} {
				want[id] = true
				p.send(req(id, "tools/call", `{"name":"slow","arguments":{"ms":20}}`))
			}
			for range len(want) {
				r := parse(t, p.next())
				if !want[string(r.ID)] {
					t.Errorf("got id %.20s", r.ID)
				}
				delete(want, string(r.ID))
			}
		}},
		{"ID-5", "ids beyond 32 bits", both(func(t *testing.T, p *process) { p.call("1767225600000", "tools/list", list) })},
		{"ID-8", "large integers in arguments", both(func(t *testing.T, p *process) {
			if r := p.call("1", "tools/call", withMeta(`"name":"echo_json","arguments":{"n":9007199254740993}`)); !strings.Contains(r.line, "9007199254740993") {
				t.Errorf("got %s", r.line)
			}
		})},
		{"NOT-1", "notifications are never answered", both(func(t *testing.T, p *process) {
			p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/foo","params":{"x":1}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":null}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}`, `{"jsonrpc":"2.0","method":"tools/list"}`)
			p.quiet()
		})},
		{"NOT-3", "unknown notifications are ignored", both(func(t *testing.T, p *process) {
			p.send(`{"jsonrpc":"2.0","method":"notifications/vendor/thing","params":{"a":[1]}}`)
			p.quiet()
		})},
		{"CAN-1", "a cancelled request stays silent", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.send(modern("1", "tools/call", `"name":"slow_counter","arguments":{"ms":300}`), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			p.tool("2", "slow", `{"ms":500}`)
			if r := p.tool("3", "counter_get", "{}"); !strings.Contains(r.line, `"text":"0"`) {
				t.Errorf("the work went on: %s", r.line)
			}
			p.quiet()
		}},
		{"PRG-1", "falsy progress tokens", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for _, token := range []string{"0", `""`, `"0"`, "-1", "9007199254740993"} {
				p.send(req("1", "tools/call", `{"name":"steps","arguments":{"n":3},"_meta":{"progressToken":`+token+`}}`))
				if line := p.next(); !strings.Contains(line, `"progressToken":`+token+`,"progress":1,`) {
					t.Errorf("token %s: %s", token, line)
				}
				p.answer("1")
			}
		}},
		{"PRG-3", "no progress after the response, 200 times", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for i := range 200 {
				p.send(req(fmt.Sprint(i), "tools/call", fmt.Sprintf(`{"name":"steps","arguments":{"n":2},"_meta":{"progressToken":%d}}`, i)))
			}
			done := map[string]bool{}
			for len(done) < 200 {
				var m struct {
					ID     *int
					Params struct{ ProgressToken int }
				}
				line := p.next()
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatal(err)
				}
				if m.ID != nil {
					done[fmt.Sprint(*m.ID)] = true
				} else if done[fmt.Sprint(m.Params.ProgressToken)] {
					t.Errorf("after its response: %s", line)
				}
			}
			p.quiet()
		}},
		{"BAT-1", "2025-03-26 has batches", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-03-26")
			p.send(`[` + req("1", "ping", "") + `,{"jsonrpc":"2.0","method":"notifications/x"},` + req("2", "ping", "") + `]`)
			var replies []response
			if line := p.next(); json.Unmarshal([]byte(line), &replies) != nil || len(replies) != 2 {
				t.Errorf("got %s", line)
			}
			p.send(`[{"jsonrpc":"2.0","method":"notifications/x"}]`)
			p.quiet()
			p.send(`[]`)
			if r := parse(t, p.next()); r.Error == nil || r.Error.Code != -32600 {
				t.Errorf("empty: %s", r.line)
			}
			p.send(`[1]`)
			if line := p.next(); !strings.HasPrefix(line, `[{`) || !strings.Contains(line, "-32600") {
				t.Errorf("[1]: %s", line)
			}
		}},
		{"BAT-2", "other revisions have not", both(func(t *testing.T, p *process) {
			p.send(`[` + req("1", "tools/call", withMeta(`"name":"counter_inc","arguments":{}`)) + `]`)
			if r := parse(t, p.next()); r.Error == nil || r.Error.Code != -32600 {
				t.Errorf("got %s", r.line)
			}
			if r := p.call("2", "tools/call", withMeta(`"name":"counter_get","arguments":{}`)); !strings.Contains(r.line, `"text":"0"`) {
				t.Errorf("it was executed: %s", r.line)
			}
		})},
		{"VER-1", "only known revisions are agreed to", func(t *testing.T) {
			for proposed, want := range map[string]string{"2099-01-01": "2025-11-25", "1900-01-01": "2025-11-25", "": "2025-11-25", "2026-07-28": "2025-11-25", "2024-11-05": "2024-11-05"} {
				p := start(t, startOptions{})
				r := p.call("1", "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}`, proposed))
				if !strings.Contains(r.line, `"protocolVersion":"`+want+`"`) {
					t.Errorf("%q: %.200s", proposed, r.line)
				}
			}
		}},
		{"VER-4", "discover, then initialize", func(t *testing.T) {
			p := start(t, startOptions{})
			p.call("1", "no/such/method", "")
			p.send(modern(`"server-discover-probe-1"`, "server/discover", ""))
			p.answer(`"server-discover-probe-1"`)
			p.open("2025-11-25")
			p.call("2", "tools/list", "")
		}},
		{"VER-6", "discover with bad metadata", func(t *testing.T) {
			p := start(t, startOptions{})
			const v, c = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
			for params, want := range map[string]int{"": -32602, "{}": -32602, `{"_meta":{` + c + `}}`: -32602, `{"_meta":{` + v + `}}`: -32602, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + c + `}}`: -32022} {
				r := p.call("1", "server/discover", params)
				if r.Error == nil || r.Error.Code != want {
					t.Errorf("%s: %s", params, r.line)
				}
			}
		}},
		{"VER-8", "served before initialized; no code is 0", func(t *testing.T) {
			p := start(t, startOptions{})
			p.write(req("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`) + "\n" + req("1", "tools/list", "") + "\n")
			got := map[string]bool{}
			for range 2 {
				r := parse(t, p.next())
				got[string(r.ID)] = r.Result != nil
			}
			if !got["0"] || !got["1"] {
				t.Errorf("got %v", got)
			}
			for i, line := range []string{"x", "[]", "{}", req("2", "initialize", "{}"), req("2", "none", ""), req("2", "tools/call", "{}"), req("null", "ping", "")} {
				p.send(line)
				if r := parse(t, p.next()); r.Error == nil || r.Error.Code == 0 {
					t.Errorf("%d: %s", i, r.line)
				}
			}
		}},
		{"CON-1", "a tool that asks does not stop the loop", func(t *testing.T) {
			p := start(t, startOptions{args: []string{"--max-handlers=1"}})
			p.open("2025-11-25")
			p.send(req("1", "tools/call", `{"name":"ask","arguments":{}}`))
			ask := parse(t, p.next())
			p.call("2", "ping", "")
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"Ada"}}}`, ask.ID))
			if r := p.answer("1"); !strings.Contains(r.line, "Ada") {
				t.Errorf("got %s", r.line)
			}
		}},
		{"CON-5", "nobody reads standard error", func(t *testing.T) {
			p := start(t, startOptions{deaf: true})
			p.open("2025-11-25")
			for i := range 500 {
				p.send(req(fmt.Sprint(i), "tools/call", `{"name":"noisy","arguments":{}}`))
			}
			for range 500 {
				p.next()
			}
			p.in.Close()
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		}},
		{"PAR-1", "params of every shape", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for _, method := range []string{"ping", "tools/list", "tools/call", "resources/read", "prompts/get", "completion/complete", "logging/setLevel", "initialize", "server/discover"} {
				for _, params := range []string{"", "{}", "null", "[]", `"x"`, "5", "true"} {
					p.call("1", method, params)
				}
			}
		}},
		{"PAR-3", "arguments null", both(func(t *testing.T, p *process) {
			if r := p.call("1", "tools/call", withMeta(`"name":"noargs","arguments":null`)); !strings.Contains(r.line, `"text":"ok"`) {
				t.Errorf("noargs: %s", r.line)
			}
			if r := p.call("2", "tools/call", withMeta(`"name":"echo","arguments":null`)); !strings.Contains(r.line, `"isError":true`) || !strings.Contains(r.line, "text") {
				t.Errorf("echo: %s", r.line)
			}
		})},
		{"PAR-6", "unknown members", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			p.send(`{"jsonrpc":"2.0","id":1,"method":"ping","traceparent":"00-ab"}`)
			p.answer("1")
			p.call("2", "ping", `{"_meta":null}`)
			p.call("3", "ping", `{"zzz":1}`)
		}},
		{"NUL-1", "no null where the schema has none", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			for i, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
				if r := p.call(fmt.Sprint(i), method, ""); strings.Contains(strings.ReplaceAll(r.line, `"limit":{"type":["integer","null"]`, ""), "null") {
					t.Errorf("%s: %.300s", method, r.line)
				}
			}
		}},
		{"NUL-3", "empty lists are []", both(func(t *testing.T, p *process) {
			if r := p.call("1", "tools/call", withMeta(`"name":"empty","arguments":{}`)); !strings.Contains(r.line, `"content":[]`) {
				t.Errorf("got %s", r.line)
			}
		})},
		{"RES-1", "an error keeps the author's message and needs no structure", both(func(t *testing.T, p *process) {
			r := p.call("1", "tools/call", withMeta(`"name":"fails_with_schema","arguments":{}`))
			if !strings.Contains(r.line, "this tool always fails") || !strings.Contains(r.line, `"isError":true`) || strings.Contains(r.line, "structuredContent") {
				t.Errorf("got %s", r.line)
			}
		})},
		{"RES-4", "every input schema is an object", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			var m struct {
				Tools []struct {
					Name        string
					InputSchema struct{ Type string }
				}
			}
			if err := json.Unmarshal(p.call("1", "tools/list", "").Result, &m); err != nil || len(m.Tools) == 0 {
				t.Fatal(err)
			}
			for _, tool := range m.Tools {
				if tool.InputSchema.Type != "object" {
					t.Errorf("%s: %q", tool.Name, tool.InputSchema.Type)
				}
			}
		}},
		{"RES-7", "a schema's own keywords survive", func(t *testing.T) {
			p := start(t, startOptions{})
			p.open("2025-11-25")
			if r := p.call("1", "tools/list", ""); !strings.Contains(r.line, `"$defs":{"address":{"$anchor":"addressDef",`) || !strings.Contains(r.line, `"if":{"properties"`) {
				t.Error("keywords are missing")
			}
		}},
		{"RES-11", "bad arguments and panics are results", both(func(t *testing.T, p *process) {
			for _, call := range []string{`"name":"echo","arguments":{"text":5}`, `"name":"echo","arguments":{}`, `"name":"echo","arguments":{"text":"x","extra":1}`, `"name":"panics","arguments":{}`} {
				if r := p.call("1", "tools/call", withMeta(call)); !strings.Contains(r.line, `"isError":true`) {
					t.Errorf("%s: %s", call, r.line)
				}
			}
			p.call("2", "tools/list", list)
		})},
		{"ENV-1", "an empty environment, an odd directory", func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("a process without SystemRoot does not start")
			}
			p := start(t, startOptions{env: []string{}, dir: "/"})
			p.open("2025-11-25")
			p.call("1", "tools/list", "")
		}},
	} {
		t.Run(c.id+" "+c.name, func(t *testing.T) { c.run(t) })
	}
}

// list are params of a list that both eras take.
var list = withMeta("")

// withMeta returns params with the metadata of the modern era, which a session of
// an older one ignores.
func withMeta(members string) string {
	if members != "" {
		members += ","
	}
	return `{` + members + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
}

// both runs a case without a session and inside one; its requests are modern.
func both(run func(t *testing.T, p *process)) func(t *testing.T) {
	return func(t *testing.T) {
		run(t, start(t, startOptions{}))
		p := start(t, startOptions{})
		p.open("2025-11-25")
		run(t, p)
	}
}
