package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"

	"fabro-mcp/fabroapi"
)

// nowhere is a Connect that must not be called: arguments are judged before.
func nowhere(t *testing.T) func(context.Context) (*fabroapi.Client, error) {
	return func(context.Context) (*fabroapi.Client, error) {
		t.Error("Connect was called although the arguments are wrong")
		return nil, errors.New("nowhere")
	}
}

// TestArgumentRules is the table of every rule about arguments with its message. It
// needs no server, no home and no network.
func TestArgumentRules(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	many := func(n int) string { return `["` + strings.Repeat(`a","`, n-1) + `a"]` }
	const ulid = "01JTZZZZZZZZZZZZZZZZZZZZZZ"
	rules := []struct{ tool, arguments, want string }{
		{nameCreate, `{}`, `runs is required`},
		{nameCreate, `{"runs":null}`, `runs is required`},
		{nameCreate, `{"runs":"x"}`, `runs must be a list of workflow names or objects, got the string "x"`},
		{nameCreate, `{"runs":[]}`, `runs must contain at least 1 item(s)`},
		{nameCreate, `{"runs":` + many(51) + `}`, `runs must contain no more than 50 item(s)`},
		{nameCreate, `{"runs":[" "]}`, `runs[0].workflow must not be blank`},
		{nameCreate, `{"runs":["x",null]}`, `runs[1]: expected workflow string shorthand or create spec object, got null`},
		{nameCreate, `{"runs":[7]}`, `runs[0]: expected workflow string shorthand or create spec object, got number`},
		{nameCreate, `{"runs":[[]]}`, `runs[0]: expected workflow string shorthand or create spec object, got array`},
		{nameCreate, `{"runs":[{}]}`, `runs[0].workflow is required`},
		{nameCreate, `{"runs":[{"workflow":5}]}`, `runs[0].workflow must be a string, got the number 5`},
		{nameCreate, `{"runs":[{"workflow":""}]}`, `runs[0].workflow must not be blank`},
		{nameCreate, `{"runs":[{"workflow":"x","cwd":""}]}`, `runs[0].cwd must not be blank`},
		{nameCreate, `{"runs":[{"workflow":"x","parent_id":" "}]}`, `runs[0].parent_id must not be blank`},
		{nameCreate, `{"runs":[{"workflow":"x","goal":1}]}`, `runs[0].goal must be a string, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","goal":"a","goal_file":"b"}]}`, `runs[0]: goal and goal_file are mutually exclusive; use exactly one`},
		{nameCreate, `{"runs":[{"workflow":"x","goal_file":""}]}`, `runs[0].goal_file must not be blank`},
		{nameCreate, `{"runs":[{"workflow":"x","inputs":[]}]}`, `runs[0].inputs must be an object of strings, booleans and numbers, got an array []`},
		{nameCreate, `{"runs":[{"workflow":"x","inputs":{"k":null}}]}`, "input `k` cannot be null; use a string, boolean, or number"},
		{nameCreate, `{"runs":[{"workflow":"x","inputs":{"k":[1]}}]}`, "input `k` does not support array values; use a string, boolean, or number"},
		{nameCreate, `{"runs":[{"workflow":"x","inputs":{"k":{}}}]}`, "input `k` does not support object values; use a string, boolean, or number"},
		{nameCreate, `{"runs":[{"workflow":"x","inputs":{"k":1e999}}]}`, "input `k` contains a number outside TOML's supported range"},
		{nameCreate, `{"runs":[{"workflow":"x","labels":{"k":1}}]}`, `runs[0].labels.k must be a string, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","dry_run":"yes"}]}`, `runs[0].dry_run must be true or false, got the string "yes"`},
		{nameCreate, `{"runs":[{"workflow":"x","auto_approve":1}]}`, `runs[0].auto_approve must be true or false, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","preserve_sandbox":1}]}`, `runs[0].preserve_sandbox must be true or false, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","start":"no"}]}`, `runs[0].start must be true or false, got the string "no"`},
		{nameCreate, `{"runs":[{"workflow":"x","model":1}]}`, `runs[0].model must be a string, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","provider":1}]}`, `runs[0].provider must be a string, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","environment":1}]}`, `runs[0].environment must be a string, got the number 1`},
		{nameCreate, `{"runs":[{"workflow":"x","dryrun":true}]}`, `unknown field "runs[0].dryrun"; did you mean "dry_run"?`},
		{nameCreate, `{"runs":["x"],"request_key":" "}`, `request_key must not be blank`},
		{nameCreate, `{"runs":["x"],"request_key":"` + strings.Repeat("k", 201) + `"}`, `request_key must be at most 200 characters, got 201`},
		{nameCreate, `{"run":["x"]}`, `unknown field "run"; did you mean "runs"?`},

		{nameSearch, `{"first":101}`, `first must be <= 100, got 101`},
		{nameSearch, `{"first":-1}`, `first must be >= 0, got -1`},
		{nameSearch, `{"first":"5"}`, `first must be an integer, got the string "5"`},
		{nameSearch, `{"run_ids":[]}`, `run_ids must contain at least 1 item(s)`},
		{nameSearch, `{"run_ids":` + many(101) + `}`, `run_ids must contain no more than 100 item(s)`},
		{nameSearch, `{"run_ids":["a"," "]}`, `run_ids[1] must not be blank`},
		{nameSearch, `{"workflow":1}`, `workflow must be a string, got the number 1`},
		{nameSearch, `{"labels":{"a":null}}`, `labels.a must be a string, got null`},
		{nameSearch, `{"status":["done"]}`, "unknown run status `done`"},
		{nameSearch, `{"status":["runing"]}`, "did you mean `running`?"},
		{nameSearch, `{"status":"failed"}`, `status must be a list of strings, got the string "failed"`},
		{nameSearch, `{"archived":"no"}`, `archived must be true or false, got the string "no"`},
		{nameSearch, `{"created_after":"soon"}`, `created_after must be RFC3339 or YYYY-MM-DD: "soon" is not a time`},
		{nameSearch, `{"created_before":"2026-13-01"}`, `created_before must be RFC3339 or YYYY-MM-DD: "2026-13-01" is not a day`},
		{nameSearch, `{"after":5}`, `after must be a string, got the number 5`},
		{nameSearch, `{"parent_id":""}`, `parent_id must not be blank`},
		{nameSearch, `{"limit":5}`, `unknown field "limit"`},

		{nameGet, `{}`, `run_id is required`},
		{nameGet, `{"run_id":" "}`, `run_id is required`},
		{nameGet, `{"run_id":7}`, `run_id must be a string, got the number 7`},
		{nameGet, `{"id":"x"}`, `unknown field "id"; did you mean "run_id"?`},

		{nameInteract, `{"run_id":"x"}`, `action is required`},
		{nameInteract, `{"action":"stop","run_id":"x"}`, "action must be one of `get`, `start`"},
		{nameInteract, `{"action":"strat","run_id":"x"}`, "did you mean `start`?"},
		{nameInteract, `{"action":"get"}`, `run_id is required`},
		{nameInteract, `{"action":"get","run_id":""}`, `run_id is required`},
		{nameInteract, `{"action":"cancel","run_id":"x","reason":"r"}`, `reason is only valid for action deny`},
		{nameInteract, `{"action":"message","run_id":"x"}`, `message is required for action message`},
		{nameInteract, `{"action":"message","run_id":"x","message":" "}`, `message is required for action message`},
		{nameInteract, `{"action":"message","run_id":"x","message":"` + strings.Repeat("m", 8193) + `"}`, `message must be at most 8192 characters, got 8193`},
		{nameInteract, `{"action":"message","run_id":"x","message":"m","interrupt":1}`, `interrupt must be true or false, got the number 1`},
		{nameInteract, `{"action":"link_parent","run_id":"x","parent_id":" "}`, `parent_id is required for action link_parent`},
		{nameInteract, `{"action":"answer","run_id":"x","answer":true}`, `question_id is required for action answer`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":" ","answer":true}`, `question_id is required for action answer`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q"}`, `answer is required for action answer`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":null}`, `answer is required for action answer`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"option":1}}`, `answer option must be a string, got the number 1`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"options":"a"}}`, `answer options must be strings, got the string "a"`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"options":[1]}}`, `answer options[0] must be a string, got the number 1`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"text":1}}`, `answer text must be a string, got the number 1`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{}}`, `answer object must contain one of: option, options, text`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"key":"a"}}`, `answer object must contain one of: option, options, text`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":{"option":"a","text":"b"}}`, `answer object must contain only one of: option, options, text`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":5}`, `unsupported answer value: the number 5; expected boolean, string, or object`},
		{nameInteract, `{"action":"answer","run_id":"x","question_id":"q","answer":[]}`, `unsupported answer value: an array []; expected boolean, string, or object`},
		{nameInteract, `{"action":"get","run_id":"x","questionid":"q"}`, `unknown field "questionid"; did you mean "question_id"?`},

		{nameGather, `{}`, `run_ids is required`},
		{nameGather, `{"run_ids":[]}`, `run_ids must contain at least 1 item(s)`},
		{nameGather, `{"run_ids":` + many(51) + `}`, `run_ids must contain no more than 50 item(s)`},
		{nameGather, `{"run_ids":[""]}`, `run_ids[0] must not be blank`},
		{nameGather, `{"run_ids":["x"],"timeout_seconds":601}`, `timeout_seconds must be <= 600, got 601`},
		{nameGather, `{"run_ids":["x"],"timeout_seconds":-1}`, `timeout_seconds must be >= 0, got -1`},
		{nameGather, `{"run_ids":["x"],"poll_interval_seconds":4}`, `poll_interval_seconds must be >= 5, got 4`},
		{nameGather, `{"run_ids":["x"],"poll_interval_seconds":5.5}`, `poll_interval_seconds must be an integer, got the number 5.5`},
		{nameGather, `{"run_ids":["x"],"until":"done"}`, "until must be one of `terminal`, `attention`, got \"done\""},
		{nameGather, `{"run_id":"x"}`, `unknown field "run_id"; did you mean "run_ids"?`},

		{nameEvents, `{"run_id":"x"}`, `action is required`},
		{nameEvents, `{"action":"tail","run_id":"x"}`, "action must be one of `list`, `details`, `search`"},
		{nameEvents, `{"action":"list"}`, `run_id is required`},
		{nameEvents, `{"action":"list","run_id":" "}`, `run_id is required`},
		{nameEvents, `{"action":"list","run_id":"x","first":201}`, `first must be <= 200, got 201`},
		{nameEvents, `{"action":"list","run_id":"x","limit":201}`, `limit must be <= 200, got 201`},
		{nameEvents, `{"action":"list","run_id":"x","direction":"down"}`, "direction must be one of `asc`, `desc`, got \"down\""},
		{nameEvents, `{"action":"list","run_id":"x","created_after":"x"}`, `created_after must be RFC3339 or YYYY-MM-DD`},
		{nameEvents, `{"action":"list","run_id":"x","created_before":"x"}`, `created_before must be RFC3339 or YYYY-MM-DD`},
		{nameEvents, `{"action":"list","run_id":"x","event_types":"run.created"}`, `event_types must be a list of strings`},
		{nameEvents, `{"action":"list","run_id":"x","categories":[1]}`, `categories[0] must be a string, got the number 1`},
		{nameEvents, `{"action":"list","run_id":"x","after":4294967296}`, `after must be <= 4294967295, got 4294967296`},
		{nameEvents, `{"action":"list","run_id":"x","offset":-1}`, `offset must be >= 0, got -1`},
		{nameEvents, `{"action":"list","run_id":"x","max_content_length":200001}`, `max_content_length must be <= 200000, got 200001`},
		{nameEvents, `{"action":"details","run_id":"x"}`, `event_ids is required for details action`},
		{nameEvents, `{"action":"details","run_id":"x","event_ids":[]}`, `event_ids is required for details action`},
		{nameEvents, `{"action":"search","run_id":"x"}`, `query is required for search action`},
		{nameEvents, `{"action":"search","run_id":"x","query":" "}`, `query is required for search action`},
		{nameEvents, `{"action":"list","run_id":"x","cursor":1}`, `unknown field "cursor"`},

		{namePair, `{"run_id":"x"}`, `action is required`},
		{namePair, `{"action":"join","run_id":"x"}`, "action must be one of `status`, `start`, `get`, `message`, `end`, `transcript`"},
		{namePair, `{"action":"status"}`, `run_id is required`},
		{namePair, `{"action":"start","run_id":"x"}`, `stage_id is required for action start`},
		{namePair, `{"action":"start","run_id":"x","stage_id":"work"}`, `invalid stage_id for action start: stage id must contain '@'`},
		{namePair, `{"action":"start","run_id":"x","stage_id":"@1"}`, `invalid stage_id for action start: stage id node_id must not be empty`},
		{namePair, `{"action":"start","run_id":"x","stage_id":"work@"}`, `invalid stage_id for action start: stage id visit suffix must not be empty`},
		{namePair, `{"action":"start","run_id":"x","stage_id":"work@0"}`, `invalid stage_id for action start: stage id visit must be greater than zero`},
		{namePair, `{"action":"start","run_id":"x","stage_id":"work@x"}`, `invalid stage_id for action start: invalid stage id visit`},
		{namePair, `{"action":"get","run_id":"x"}`, `pair_id is required for action get`},
		{namePair, `{"action":"message","run_id":"x","text":"t"}`, `pair_id is required for action message`},
		{namePair, `{"action":"end","run_id":"x"}`, `pair_id is required for action end`},
		{namePair, `{"action":"transcript","run_id":"x"}`, `pair_id is required for action transcript`},
		{namePair, `{"action":"get","run_id":"x","pair_id":"short"}`, `invalid pair_id for action get: invalid length`},
		{namePair, `{"action":"get","run_id":"x","pair_id":"01JTZZZZZZZZZZZZZZZZZZZZZU"}`, `invalid pair_id for action get: invalid character`},
		{namePair, `{"action":"message","run_id":"x","pair_id":"` + ulid + `"}`, `text is required for action message`},
		{namePair, `{"action":"message","run_id":"x","pair_id":"` + ulid + `","text":"` + strings.Repeat("é", 4097) + `"}`, `text must be at most 8192 bytes for action message`},
		{namePair, `{"action":"transcript","run_id":"x","pair_id":"` + ulid + `","since_seq":-1}`, `since_seq must be >= 0, got -1`},
		{namePair, `{"action":"transcript","run_id":"x","pair_id":"` + ulid + `","limit":1001}`, `limit must be <= 1000, got 1001`},
	}
	s := open(t, Config{Connect: nowhere(t)}, rev2607, nil)
	// An answer that lacks something is refused with the run's questions, where the
	// run can be read: here it cannot.
	offline := open(t, Config{Connect: func(context.Context) (*fabroapi.Client, error) { return nil, errors.New("nowhere") }}, rev2607, nil)
	for _, rule := range rules {
		t.Run(rule.tool+" "+rule.want, func(t *testing.T) {
			s := s
			if strings.HasSuffix(rule.want, "is required for action answer") {
				s = offline
			}
			r := s.call(rule.tool, rule.arguments)
			if !r.failed() || !strings.Contains(r.text(), rule.want) {
				t.Errorf("%s\nsays %q\nwant %q", rule.arguments, r.text(), rule.want)
			}
			if !strings.Contains(r.text(), "call again") {
				t.Errorf("no next step in %q", r.text())
			}
		})
	}
}

// TestSchemasAgree judges each published input schema against the decoder: values
// of all kinds are put into each field of a call that is otherwise right.
func TestSchemasAgree(t *testing.T) {
	const ulid = "01JTZZZZZZZZZZZZZZZZZZZZZZ"
	base := map[string]string{
		nameCreate: `{"runs":["x"]}`, nameSearch: `{}`, nameGet: `{"run_id":"x"}`, nameInteract: `{"action":"get","run_id":"x"}`, nameGather: `{"run_ids":["x"]}`,
		namePair: `{"action":"status","run_id":"x"}`, nameEvents: `{"action":"list","run_id":"x"}`,
		nameDiagnose: `{"run_id":"x"}`, nameLogs: `{"run_id":"x"}`, nameWorkflowList: `{}`, nameWorkflowValidate: `{"workflow":"x"}`, nameAgentAudit: `{}`,
	}
	values := []string{`null`, `true`, `false`, `0`, `1`, `4`, `5`, `20`, `100`, `101`, `200`, `201`, `600`, `601`, `1000`, `1001`, `200001`, `4294967296`, `-1`, `1.5`, `2.0`, `""`, `" "`, `"x"`, `"asc"`,
		`"terminal"`, `"failed"`, `"` + ulid + `"`, `"2026-05-11"`, `"2026-05-11T01:02:03Z"`, `"2026-5-1"`, `"` + strings.Repeat("l", 201) + `"`, `[]`, `["x"]`, `["failed"]`, `[" "]`, `[1]`, `[null]`,
		`{}`, `{"k":"v"}`, `{"k":1}`, `{"k":true}`, `{"k":null}`, `{"k":{}}`, `{"option":"a"}`, `{"option":1}`, `{"options":["a"]}`, `{"options":[1]}`, `{"text":"t"}`, `{"text":"t","option":"a"}`,
		`[{"workflow":"x"}]`, `[{"workflow":""}]`, `[{}]`, `[{"workflow":"x","start":null,"inputs":null}]`, `[{"workflow":"x","inputs":{"k":[]}}]`, `[{"workflow":"x","labels":{"k":1}}]`, `[{"workflow":"x","other":1}]`,
		`[{"workflow":"x","goal_file":""}]`, `[{"workflow":"x","cwd":" "}]`, `[{"workflow":"x","dry_run":1}]`}
	for _, tool := range catalogue(false) {
		fields := tool.make().fields()
		schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(fields.Schema("")))
		if err != nil {
			t.Fatalf("%s: %v", tool.name, err)
		}
		for _, name := range append(fields.Names(), "unknown") {
			for _, value := range values {
				var call map[string]json.RawMessage
				if err := json.Unmarshal([]byte(base[tool.name]), &call); err != nil {
					t.Fatalf("%s: no sample call: %v", tool.name, err)
				}
				call[name] = json.RawMessage(value)
				arguments, _ := json.Marshal(call)
				verdict, err := schema.Validate(gojsonschema.NewBytesLoader(arguments))
				if err != nil {
					t.Fatal(err)
				}
				decodeErr := tool.make().fields().Decode(arguments)
				if verdict.Valid() != (decodeErr == nil) {
					t.Errorf("%s %s: schema says %v %v, decoder says %v", tool.name, arguments, verdict.Valid(), verdict.Errors(), decodeErr)
				}
			}
		}
	}
}

// TestSchemaKeywords keeps the schemas to what every host understands.
func TestSchemaKeywords(t *testing.T) {
	for _, tool := range catalogue(false) {
		var root map[string]any
		if err := json.Unmarshal(tool.make().fields().Schema(""), &root); err != nil {
			t.Fatal(err)
		}
		for key := range root {
			switch key {
			case "$schema", "type", "properties", "required", "additionalProperties":
			default:
				t.Errorf("%s: %s at the root of the input schema", tool.name, key)
			}
		}
		for name, property := range root["properties"].(map[string]any) {
			if description, _ := property.(map[string]any)["description"].(string); description == "" {
				t.Errorf("%s: %s has no description", tool.name, name)
			}
		}
		var out map[string]any
		if err := json.Unmarshal([]byte(tool.output), &out); err != nil {
			t.Fatalf("%s: output schema: %v", tool.name, err)
		}
		if out["type"] != "object" || out["additionalProperties"] != nil {
			t.Errorf("%s: an output schema is an open object", tool.name)
		}
		if _, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(tool.output)); err != nil {
			t.Errorf("%s: output schema: %v", tool.name, err)
		}
		if len(tool.name) > 40 || len(tool.description) < 40 {
			t.Errorf("%s: name of %d, description of %d characters", tool.name, len(tool.name), len(tool.description))
		}
	}
}

func TestSelection(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"default", Config{}, "fabro_run_create fabro_run_events fabro_run_gather fabro_run_get fabro_run_interact fabro_run_pair fabro_run_search"},
		{"read-only", Config{ReadOnly: true}, "fabro_run_events fabro_run_gather fabro_run_get fabro_run_search"},
		{"read-only wins", Config{ReadOnly: true, Tools: []string{nameCreate, nameGet}}, "fabro_run_get"},
		{"some tools", Config{Tools: []string{nameGet, nameDiagnose}}, "fabro_run_diagnose fabro_run_get"},
		{"without some", Config{Exclude: []string{namePair, nameCreate}}, "fabro_run_events fabro_run_gather fabro_run_get fabro_run_interact fabro_run_search"},
		{"insight", Config{Toolsets: []string{"insight"}}, "fabro_agent_audit fabro_run_diagnose fabro_run_logs fabro_workflow_list fabro_workflow_validate"},
		{"unknown tool", Config{Tools: []string{"fabro_run_gte"}}, `unknown tool "fabro_run_gte"; did you mean "fabro_run_get"?`},
		{"unknown excluded tool", Config{Exclude: []string{"zzz"}}, `unknown tool "zzz".`},
		{"unknown toolset", Config{Toolsets: []string{"insights"}}, `unknown toolset "insights"; did you mean "insight"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := newHost(c.cfg)
			got := fmt.Sprint(err)
			if err == nil {
				var names []string
				for _, tool := range h.tools {
					names = append(names, tool.name)
				}
				got = strings.Join(names, " ")
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

var update = flag.Bool("update", false, "write testdata/tools.json anew")

// TestDefinitions holds what hosts see of the tools against the last state that was
// looked at: a change there is a change for every model that uses them.
func TestDefinitions(t *testing.T) {
	var got bytes.Buffer
	for _, cfg := range []Config{{Toolsets: []string{"runs", "insight"}}, {ReadOnly: true}} {
		s := open(t, cfg, rev2607, nil)
		enc := json.NewEncoder(&got)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		if err := enc.Encode(s.request("tools/list", nil)["tools"]); err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/tools.json"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("the tools have changed; look at the difference, then run the test with -update (-%s +now)\n%s", file, diff)
	}
}
