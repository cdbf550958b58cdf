package tools

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// readText reads a resource and returns its text.
func (s *session) readText(uri string) string {
	s.t.Helper()
	contents := s.request("resources/read", map[string]any{"uri": uri})["contents"].([]any)
	entry := contents[0].(map[string]any)
	if entry["uri"] != uri || entry["mimeType"] == "" {
		s.t.Errorf("%s: %v", uri, entry)
	}
	text, _ := entry["text"].(string)
	return text
}

func TestResources(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	run := api.add(wire.StatusRunning)
	run.log = "\x1b[31mfirst\x1b[0m\n" + strings.Repeat("x", maxLogResource)
	api.ask(run, deployQuestion())
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project, Version: "9"}, rev2607, nil)
	base := "fabro://runs/" + run.ID
	for _, c := range []struct{ uri, want string }{
		{"fabro://server", `"mcp_server_version": "9"`},
		{"fabro://workflows", `"description": "Says hello"`},
		{"fabro://workflows/hello", `digraph Hello`},
		{"fabro://runs", run.ID},
		{base, `"status": "blocked"`},
		{"fabro://runs/" + run.ID[:20], run.ID},
		{base + "/state", `"build@1"`},
		{base + "/events", `"run.blocked"`},
		{base + "/questions", `"Deploy?"`},
		{base + "/graph", `digraph Release`},
		{base + "/artifacts", `"artifacts": []`},
		{base + "/logs/build@1", `[not shown: the first 15 bytes]`},
		{base + "/logs/build%401", `xxxx`},
	} {
		if text := s.readText(c.uri); !strings.Contains(text, c.want) || strings.Contains(text, "\x1b") {
			t.Errorf("%s lacks %q: %.300s", c.uri, c.want, text)
		}
	}
	for _, uri := range []string{"fabro://", "fabro://run", "fabro://runs/", base + "/", base + "/secrets", base + "/logs", base + "/logs/build", base + "/logs/a/b", "fabro://workflows/none",
		"fabro://workflows/..%2f..%2fetc", "fabro://workflows/..", "file:///etc/passwd", "fabro://runs/nothing", "fabro://server?x=1", "", "x", "fabro://runs/%00", "fabro://runs/%zz"} {
		m := s.wait(s.begin("resources/read", map[string]any{"uri": uri}), uri)
		e, _ := m["error"].(map[string]any)
		if e == nil || e["code"] != -32602.0 {
			t.Errorf("%q: %v", uri, m)
		}
	}
	lists := s.request("resources/list", nil)["resources"].([]any)
	for _, r := range lists {
		s.readText(r.(map[string]any)["uri"].(string))
	}
	var templates []string
	for _, r := range s.request("resources/templates/list", nil)["resourceTemplates"].([]any) {
		uri := r.(map[string]any)["uriTemplate"].(string)
		templates = append(templates, uri)
		s.readText(strings.NewReplacer("{run_id}", run.ID, "{stage_id}", "build@1", "{name}", "hello").Replace(uri))
	}
	if diff := cmp.Diff([]string{"fabro://runs/{run_id}", "fabro://runs/{run_id}/state", "fabro://runs/{run_id}/events", "fabro://runs/{run_id}/questions", "fabro://runs/{run_id}/graph",
		"fabro://runs/{run_id}/artifacts", "fabro://runs/{run_id}/logs/{stage_id}", "fabro://workflows/{name}"}, templates); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSubscription: a change of a run reaches those who subscribed to it.
func TestSubscription(t *testing.T) {
	for _, revision := range []string{rev2511, rev2607} {
		t.Run(revision, func(t *testing.T) {
			api := newFakeAPI(t)
			run, other := api.add(wire.StatusRunning), api.add(wire.StatusRunning)
			s := open(t, Config{Connect: api.connect}, revision, nil)
			uri := "fabro://runs/" + run.ID
			if revision == rev2607 {
				s.begin("subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{uri}}})
			} else {
				s.request("resources/subscribe", map[string]any{"uri": uri})
			}
			api.waitFor(t, run.ID+"/attach")
			api.end(other)
			api.end(run)
			deadline := time.After(2 * time.Minute)
			for {
				select {
				case <-s.noted:
				case <-deadline:
					t.Fatal("no notification")
				}
				s.mu.Lock()
				last := s.notes[len(s.notes)-1]
				s.mu.Unlock()
				if last["method"] == "notifications/resources/updated" {
					if got := last["params"].(map[string]any)["uri"]; got != uri {
						t.Errorf("updated %v", got)
					}
					return
				}
			}
		})
	}
}

// TestSubscriptionStartsAtOnce: what happens after the answer to a subscription is
// announced although the event stream opens only later.
func TestSubscriptionStartsAtOnce(t *testing.T) {
	api := newFakeAPI(t)
	run := api.add(wire.StatusRunning)
	for _, c := range []struct {
		uri    string
		read   []string // before the subscription is answered
		change func()
	}{
		{"fabro://runs/" + run.ID, []string{"GET /api/v1/runs/resolve?selector=" + run.ID, "GET /api/v1/runs/" + run.ID + "/events?limit=1&order=desc"},
			func() { api.change(run, wire.EventRunBlocked, nil) }},
		{"fabro://runs", []string{"GET /api/v1/runs?page%5Blimit%5D=50"}, func() { api.add(wire.StatusRunning) }},
	} {
		t.Run(c.uri, func(t *testing.T) {
			changed := make(chan struct{})
			api.mu.Lock()
			api.fault = func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/attach") {
					<-changed
				}
				return false
			}
			api.mu.Unlock()
			s := open(t, Config{Connect: api.connect}, rev2511, nil)
			api.seen()
			s.request("resources/subscribe", map[string]any{"uri": c.uri})
			read := slices.DeleteFunc(api.seen(), func(request string) bool { return strings.Contains(request, "/attach") })
			if diff := cmp.Diff(c.read, read); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			c.change()
			close(changed)
			s.untilNote("notifications/resources/updated")
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := s.notes[0]["params"].(map[string]any)["uri"]; got != c.uri {
				t.Errorf("updated %v", got)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	s := open(t, Config{Connect: nowhere(t), Toolsets: []string{"runs", "insight"}}, rev2607, nil)
	var names []string
	for _, p := range s.request("prompts/list", nil)["prompts"].([]any) {
		prompt := p.(map[string]any)
		names = append(names, prompt["name"].(string))
		given := map[string]any{}
		for _, a := range prompt["arguments"].([]any) {
			given[a.(map[string]any)["name"].(string)] = "the-given-value"
		}
		got := s.request("prompts/get", map[string]any{"name": prompt["name"], "arguments": given})
		message := got["messages"].([]any)[0].(map[string]any)
		text := message["content"].(map[string]any)["text"].(string)
		if message["role"] != "user" || !strings.Contains(text, "the-given-value") {
			t.Errorf("%v", got)
		}
	}
	if diff := cmp.Diff([]string{promptAnswer, promptDiagnose, promptReview, promptStart, promptWatch, promptWrite}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	readOnly := open(t, Config{Connect: nowhere(t), ReadOnly: true}, rev2607, nil)
	for _, p := range readOnly.request("prompts/list", nil)["prompts"].([]any) {
		if name := p.(map[string]any)["name"]; name == promptStart || name == promptAnswer || name == promptWrite {
			t.Errorf("%v is offered although its tools are not", name)
		}
	}
}

// TestTextsNameOfferedTools: no text of a server names a tool it does not offer.
func TestTextsNameOfferedTools(t *testing.T) {
	for _, cfg := range []Config{{ReadOnly: true}, {Tools: []string{nameGet, nameEvents}}, {Toolsets: []string{"insight"}}, {Exclude: []string{nameGather}}} {
		h, err := newHost(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		all.WriteString(h.instructions())
		for _, p := range h.server.Prompts {
			all.WriteString(p.Description)
		}
		for _, tool := range h.server.Tools {
			all.WriteString(strings.ReplaceAll(tool.Description+string(tool.InputSchema)+string(tool.OutputSchema), tool.Name, ""))
		}
		for _, kind := range runStatuses {
			run := &wire.Run{ID: "x"}
			run.Lifecycle.Status.Kind = kind
			all.WriteString(h.runLine(run) + h.listLine(run))
			for _, api := range []*fabroapi.APIError{{Status: 404}, {Status: 501}, {Status: 500}, {Status: 429}, {Status: 409, Code: wire.CodeAgentNotSteerable}} {
				all.WriteString(h.sentence(api))
			}
			all.WriteString(strings.Join(h.nextSteps(run, &diagnosis{FailedStage: &failedStage{}}), " "))
		}
		for _, tool := range catalogue(false) {
			if strings.Contains(all.String(), tool.name) && !h.offers(tool.name) {
				t.Errorf("%+v: %s is named and not offered", cfg, tool.name)
			}
		}
	}
}

func TestCompletions(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	done, blocked := api.add(wire.StatusSucceeded), api.add(wire.StatusRunning)
	for range 120 {
		api.add(wire.StatusSucceeded)
	}
	api.ask(blocked, deployQuestion())
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project}, rev2607, nil)
	complete := func(ref map[string]any, argument, value string, context map[string]any) map[string]any {
		params := map[string]any{"ref": ref, "argument": map[string]any{"name": argument, "value": value}}
		if context != nil {
			params["context"] = map[string]any{"arguments": context}
		}
		return s.request("completion/complete", params)["completion"].(map[string]any)
	}
	prompt := func(name string) map[string]any { return map[string]any{"type": "ref/prompt", "name": name} }
	template := func(uri string) map[string]any { return map[string]any{"type": "ref/resource", "uri": uri} }
	first := func(c map[string]any) any {
		values := c["values"].([]any)
		if len(values) == 0 {
			return nil
		}
		return values[0]
	}
	if got := complete(prompt(promptWatch), argRun, "", nil); len(got["values"].([]any)) != 100 {
		t.Errorf("%d values", len(got["values"].([]any)))
	}
	if got := complete(template("fabro://runs/{run_id}"), argRun, strings.ToLower(api.runs[60].ID), nil); first(got) != api.runs[60].ID {
		t.Errorf("%v", got)
	}
	if got := complete(prompt(promptStart), argWorkflow, "HE", nil); first(got) != "hello" {
		t.Errorf("%v", got)
	}
	if got := complete(template("fabro://workflows/{name}"), "name", "", nil); first(got) != "hello" {
		t.Errorf("%v", got)
	}
	if got := complete(template("fabro://runs/{run_id}/logs/{stage_id}"), "stage_id", "", map[string]any{argRun: done.ID}); first(got) != "build@1" {
		t.Errorf("%v", got)
	}
	if got := complete(prompt(promptDiagnose), argStage, "ga", map[string]any{argRun: done.ID}); first(got) != "gate@1" {
		t.Errorf("%v", got)
	}
	if got := complete(prompt(promptAnswer), argQuestion, "", map[string]any{argRun: blocked.ID}); first(got) != "q1" {
		t.Errorf("%v", got)
	}
	if got := complete(prompt(promptAnswer), argRun, "", nil); first(got) != blocked.ID {
		t.Errorf("who answers looks for runs that wait: %v", got)
	}
	if got := complete(prompt(promptWatch), "unknown", "", nil); first(got) != nil {
		t.Errorf("%v", got)
	}
	if diff := cmp.Diff([]string{"ab", "cab", "x"}, rank([]candidate{{"x", "about"}, {"cab", ""}, {"ab", ""}, {"zz", "z"}}, "ab")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAudit(t *testing.T) {
	api := newFakeAPI(t)
	endOnAnswer(api)
	env, project := home(t)
	run := api.add(wire.StatusRunning)
	api.ask(run, deployQuestion())
	dir := t.TempDir()
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project, StateDir: dir, Toolsets: []string{"runs", "insight"}}, rev2607, accept(map[string]any{"answer": "A"}))
	s.call(nameCreate, `{"runs":[{"workflow":"hello","inputs":{"api_key":"hunter2","note":"sk-abcdefghijklmnopqrstuvwx"},"goal":"`+strings.Repeat("g", 500)+`"}]}`)
	s.call(nameCreate, `{"runs":["none"]}`)
	s.call(nameGet, `{"run_id":"`+run.ID+`"}`)
	s.call(nameInteract, `{"action":"get_questions","run_id":"`+run.ID+`"}`)
	s.call(nameGather, `{"run_ids":["`+run.ID+`"]}`)
	s.call(nameInteract, `{"action":"archive","run_id":"`+run.ID+`"}`)
	var got auditResult
	r := s.call(nameAgentAudit, `{}`)
	r.structured(&got)
	var lines []string
	for _, e := range got.Entries {
		lines = append(lines, e.Tool+" "+e.Client+" "+strings.SplitN(e.Outcome, ":", 2)[0])
	}
	if diff := cmp.Diff([]string{"fabro_run_interact test 1 ok", "fabro_run_gather test 1 ok", "fabro_run_create test 1 failed", "fabro_run_create test 1 ok"}, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	data, err := os.ReadFile(dir + "/audit.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "sk-abc", strings.Repeat("g", 300)} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(string(data), `"kind":"selected","option_key":"A"`) {
		t.Errorf("the answer given in the host is not recorded: %s", data)
	}
	if info, err := os.Stat(dir + "/audit.jsonl"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	var one auditResult
	s.call(nameAgentAudit, `{"limit":1,"tool":"fabro_run_create"}`).structured(&one)
	if len(one.Entries) != 1 || !one.More {
		t.Errorf("%+v", one)
	}
}

func TestAuditRotates(t *testing.T) {
	dir := t.TempDir()
	log := newAuditLog(dir)
	big := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for range 20 {
		if err := log.append(auditEntry{Tool: "t", Arguments: big}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Size() > maxAuditFile {
			t.Errorf("%s: %v %v", e.Name(), info.Size(), err)
		}
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3", "audit.jsonl.lock"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestInsight(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	run := api.add(wire.StatusFailed)
	run.Lifecycle.Status.Reason = wire.FailedWorkflowError
	run.Lifecycle.Error = &wire.RunError{Message: "build failed"}
	for i := range 5000 {
		run.log += "line " + strings.Repeat("=", i%7) + "\n"
		if i == 2500 {
			run.log += "error: needle\n"
		}
	}
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project, Toolsets: []string{"insight"}}, rev2607, nil)

	var d diagnosis
	r := s.call(nameDiagnose, `{"run_id":"`+run.ID+`"}`)
	r.structured(&d)
	if !strings.Contains(r.text(), "> build failed") || len(d.NextSteps) == 0 {
		t.Errorf("%s", r.text())
	}

	var logs logsResult
	s.call(nameLogs, `{"run_id":"`+run.ID+`","tail_lines":2}`).structured(&logs)
	if logs.StageID != "build@1" || logs.Text != "line \nline =" || !logs.EOF || logs.NextOffset != nil {
		t.Errorf("tail: %+v", logs)
	}
	logs = logsResult{}
	s.call(nameLogs, `{"run_id":"`+run.ID+`","query":"needle","context_lines":1}`).structured(&logs)
	if *logs.Matches != 1 || logs.Text != "2501- line =\n2502: error: needle\n2503- line ==\n" {
		t.Errorf("search: %+v", logs)
	}
	whole, offset := "", int64(0)
	for {
		logs = logsResult{}
		r := s.call(nameLogs, `{"run_id":"`+run.ID+`","max_bytes":10000,"offset":`+jsonNumber(offset)+`}`)
		r.structured(&logs)
		whole += logs.Text
		if logs.NextOffset == nil {
			break
		}
		offset = *logs.NextOffset
	}
	if whole != run.log {
		t.Errorf("read on from offset to offset: %d of %d bytes", len(whole), len(run.log))
	}
	if r := s.call(nameLogs, `{"run_id":"`+run.ID+`","stage_id":"bulid"}`); !r.failed() || !strings.Contains(r.text(), "must contain '@'") {
		t.Error(r.text())
	}

	var list workflowListResult
	s.call(nameWorkflowList, `{}`).structured(&list)
	if len(list.Workflows) != 1 || list.Workflows[0].Name != "hello" || list.Workflows[0].Source != "project" {
		t.Errorf("%+v", list)
	}
	if r := s.call(nameWorkflowValidate, `{"workflow":"warns.fabro"}`); r.failed() || !strings.Contains(r.text(), "warns.fabro is valid.") || !strings.Contains(r.text(), "warns.fabro:3:") {
		t.Error(r.text())
	}
	for workflow, ok := range map[string]bool{"hello": true, "broken.fabro": false, "nostart.fabro": false} {
		var v validateResult
		r := s.call(nameWorkflowValidate, `{"workflow":"`+workflow+`"}`)
		r.structured(&v)
		if v.OK != ok || !ok && len(v.Diagnostics) == 0 {
			t.Errorf("%s: %+v", workflow, v)
		}
	}
}

func jsonNumber(n int64) string {
	b, err := json.Marshal(n)
	if err != nil {
		return "0"
	}
	return string(b)
}

func TestRoots(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/goal.md", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, project+"/link"); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project, Roots: []string{project}, Toolsets: []string{"runs", "insight"}}, rev2607, nil)
	if r := s.call(nameCreate, `{"runs":["hello"]}`); r.failed() {
		t.Error(r.text())
	}
	for _, spec := range []string{`{"workflow":"hello","cwd":"` + outside + `"}`, `{"workflow":"hello","goal_file":"` + outside + `/goal.md"}`, `{"workflow":"hello","goal_file":"link/goal.md"}`,
		`{"workflow":"hello","goal_file":"../x.md"}`, `{"workflow":"` + outside + `/w.fabro"}`, `{"workflow":"link/w.fabro"}`} {
		if r := s.call(nameCreate, `{"runs":[`+spec+`]}`); !r.failed() || strings.Contains(r.text(), "secret") {
			t.Errorf("%s: %s", spec, r.text())
		}
	}
	if len(api.runs) != 1 {
		t.Errorf("%d runs", len(api.runs))
	}
	if r := s.call(nameWorkflowList, `{"cwd":"`+outside+`"}`); !r.failed() || !strings.Contains(r.text(), "outside the roots") {
		t.Error(r.text())
	}
}

// Only the settings of a run tell that it is a dry run; what has another shape tells nothing.
func TestSimulated(t *testing.T) {
	for state, want := range map[string]bool{
		`{"spec":{"settings":{"run":{"execution":{"mode":"dry_run"}}}}}`: true,
		`{"spec":{"settings":{"run":{"execution":{"mode":"normal"}}}}}`:  false,
		`{"spec":{"settings":{"run":{"execution":"dry_run"}}}}`:          false,
		`{"spec":{"settings":null}}`:                                     false,
		`{"status":{}}`:                                                  false,
		`[]`:                                                             false,
	} {
		if got := simulated(json.RawMessage(state)); got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// A directory with a graph and no settings runs by its name, and is listed.
func TestWorkflowsWithoutSettings(t *testing.T) {
	api := newFakeAPI(t)
	env, project := home(t)
	const graph = "digraph Bare { start [shape=Mdiamond] exit [shape=Msquare] start -> exit }"
	write := func(path string) {
		t.Helper()
		path = filepath.Join(project, ".fabro", "workflows", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(graph), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bare/workflow.fabro")
	write("other/notes.fabro") // no workflow: nothing has the name that is looked for
	write("odd/workflow.toml/workflow.fabro")
	s := open(t, Config{Connect: api.connect, Env: env, Cwd: project, Toolsets: []string{"runs", "insight"}}, rev2607, nil)

	var list workflowListResult
	r := s.call(nameWorkflowList, `{}`)
	r.structured(&list)
	var names []string
	for _, w := range list.Workflows {
		names = append(names, w.Name+" "+filepath.Base(w.Path))
		if r := s.call(nameCreate, `{"runs":["`+w.Name+`"]}`); r.failed() {
			t.Errorf("%s is listed and does not run: %s", w.Name, r.text())
		}
	}
	if diff := cmp.Diff([]string{"bare workflow.fabro", "hello workflow.toml"}, names); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.text(), "> bare (project)\n") {
		t.Errorf("no title, no colon: %s", r.text())
	}
	for uri, want := range map[string]string{"fabro://workflows": `"name": "bare"`, "fabro://workflows/bare": `"graph": "digraph Bare`} {
		if got := s.readText(uri); !strings.Contains(got, want) {
			t.Errorf("%s: %s", uri, got)
		}
	}
}
