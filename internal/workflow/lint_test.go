package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compileText compiles a graph that stands alone, or with files beside it.
func compileText(t testing.TB, src string, files map[string]string, opts CompileOptions, args Args) (*Compiled, []Diagnostic) {
	t.Helper()
	c, list, err := Compile(Bundle{
		Target: "w.fabro", Workflows: map[string]BundleWorkflow{"w.fabro": {Source: src, Files: files}}, Args: args,
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, list
}

// frame is a graph around the body of a case: start -> a -> exit, where a is an
// agent with a prompt.
func frame(body string) string {
	body += "\na [prompt=\"work\"]"
	return "digraph G { start [shape=Mdiamond] exit [shape=Msquare] start -> a -> exit\n" + body + "\n}"
}

// A table for every rule: what fires it, and what comes close and does not. The
// body begins on line 2.
func TestLintRules(t *testing.T) {
	cases := []struct {
		name, body string
		want       []string
	}{
		{"clean", ``, nil},

		{"start_node: two", `b [shape=Mdiamond]`, []string{"2:1 error start_node b", "2:1 warning reachability b"}},
		{"start_node: shape and name", `Start [prompt="x"]`, []string{"2:1 error start_node Start", "2:1 warning reachability Start"}},
		{"terminal_node: two", `end [prompt="x"] a -> end`, []string{"2:1 error terminal_node end", "2:1 warning exit_not_terminal end"}},
		{"start_no_incoming", `a -> start`, []string{"2:1 error start_no_incoming start"}},
		{"exit_no_outgoing", `exit -> a`, []string{"2:1 error exit_no_outgoing exit"}},
		{"edge_target_exists: once for each node", "a -> ghost -> exit\nghost -> a\n", []string{"2:6 error edge_target_exists ghost"}},
		{"edge_target_exists: as a source", "ghost -> exit", []string{"2:1 error edge_target_exists ghost"}},
		{"reachability", `b [prompt="x"] b -> exit`, []string{"2:1 warning reachability b"}},

		{"all_conditional_edges: one edge", `b [prompt="x"] a -> b b -> exit [condition="context.x=1"]`, []string{"2:1 error all_conditional_edges b"}},
		{"all_conditional_edges: with outcomes", `b [prompt="x"] a -> b b -> exit [condition="outcome=done"] b -> a [condition="outcome=again"]`,
			[]string{"2:1 error all_conditional_edges b", "2:1 warning orphan_custom_outcome b"}},
		{"all_conditional_edges: empty condition is none", `b [prompt="x"] a -> b b -> exit [condition=""]`, nil},
		{"condition_syntax", `a -> exit [condition="x &&"]`, []string{"2:27 error condition_syntax a->exit"}},
		{"condition_syntax: behind escapes", `a -> exit [condition="x=\"1\" & y"]`, []string{"2:31 error condition_syntax a->exit"}},
		{"condition_syntax: of a manager loop", `b [shape=house, stack.child_dot_source="digraph X { start exit start -> exit}", manager.stop_condition="a =="] a -> b -> exit`, []string{"2:108 error condition_syntax b"}},
		{"stylesheet_syntax", `graph [model_stylesheet="* { model x }"]`, []string{"2:36 error stylesheet_syntax"}},

		{"command_requires_script", `b [shape=parallelogram] a -> b -> exit`, []string{"2:1 error command_requires_script b"}},
		{"command_requires_script: blank", `b [shape=parallelogram, script=" "] a -> b -> exit`, []string{"2:32 error command_requires_script b"}},
		{"command_requires_script: a number", `b [script=5] a -> b -> exit`, []string{"2:11 error command_requires_script b", "2:11 info ignored_value b"}},
		{"script_prompt_conflict", `b [script="x", prompt="y"] a -> b -> exit`, []string{"2:23 error script_prompt_conflict b", "2:23 warning inert_attribute b"}},
		{"script_absolute_cd", `b [script="set -e; cd /srv && ls"] a -> b -> exit`, []string{"2:11 warning script_absolute_cd b"}},
		{"script_absolute_cd: relative", `b [script="cd src && ls /; echo abcd /x"] a -> b -> exit`, nil},
		{"stdin_source_valid", `b [script="x", stdin_source=""] a -> b -> exit`, []string{"2:29 error stdin_source_valid b"}},
		{"stdin_source_valid: a number", `b [script="x", stdin_source=1] a -> b -> exit`, []string{"2:29 error stdin_source_valid b"}},

		{"backend_valid", `b [prompt="x", backend=other] a -> b -> exit`, []string{"2:24 error backend_valid b"}},
		{"backend_valid: acp without backend", `b [prompt="x", acp.command="y"] a -> b -> exit`, []string{"2:28 error backend_valid b"}},
		{"backend_valid: legacy spelling", `b [prompt="x", acp_command="y"] a -> b -> exit`, []string{"2:28 error backend_valid b"}},
		{"backend_valid: both", `b [prompt="x", backend=acp, acp.command="y", acp.config="z"] a -> b -> exit`, []string{"2:57 error backend_valid b"}},
		{"backend_valid: blank command", `b [prompt="x", backend=acp, acp.command=" "] a -> b -> exit`, []string{"2:41 error backend_valid b"}},
		{"backend_valid: right", `b [prompt="x", backend=acp, acp.command="y"] a -> b -> exit`, nil},

		{"freeform_edge_count", `b [shape=hexagon] a -> b b -> exit [freeform=true] b -> a [freeform=true]`, []string{"2:52 error freeform_edge_count b"}},
		{"for_each_contract: not a text", `p [shape=component, for_each=3] a -> p p -> q q [prompt="x"] q -> exit`, []string{"2:30 error for_each_contract p"}},
		{"for_each_contract: two edges", `p [shape=component, for_each="items"] a -> p p -> q q [prompt="x"] q -> exit p -> exit`, []string{"2:30 error for_each_contract p"}},
		{"for_each_contract: a command", `p [shape=component, for_each="items"] a -> p p -> q q [script="x"] q -> exit`, []string{"2:30 error for_each_contract p"}},
		{"for_each_contract: nested", `o [shape=component] a -> o -> p p [shape=component, for_each="items"] p -> q q [prompt="x"] q -> exit`, []string{"2:62 error for_each_contract p"}},
		{"for_each_contract: right", `p [shape=component, for_each="items"] a -> p p -> q q [prompt="x"] q -> exit`, nil},
		{"random_selection_no_conditions", `b [prompt="x", selection=random] a -> b b -> exit b -> a [condition="x=1"]`, []string{"2:69 error random_selection_no_conditions b"}},
		{"join_policy_removed", `p [shape=component, join_policy=all] a -> p -> exit`, []string{"2:33 error join_policy_removed p"}},

		{"type_known", `b [type="humann", prompt="x"] a -> b -> exit`, []string{"2:9 warning type_known b"}},
		{"fidelity_valid: node, edge and graph", "b [prompt=\"x\", fidelity=all] a -> b [fidelity=\"summary\"] b -> exit\ndefault_fidelity=most",
			[]string{"2:25 warning fidelity_valid b", "2:47 warning fidelity_valid a->b", "3:18 warning fidelity_valid"}},
		{"selection_valid", `b [prompt="x", selection=first] a -> b -> exit`, []string{"2:26 warning selection_valid b"}},
		{"direction_valid", `rankdir=XX`, []string{"2:9 warning direction_valid"}},
		{"retry_target_exists", "retry_target=gone\nb [prompt=\"x\", fallback_retry_target=\"alsogone\"] a -> b -> exit",
			[]string{"2:14 warning retry_target_exists", "3:38 warning retry_target_exists b"}},
		{"goal_gate_has_retry", `b [prompt="x", goal_gate=true] a -> b -> exit`, []string{"2:1 warning goal_gate_has_retry b"}},
		{"goal_gate_has_retry: a target on the graph is not enough", `retry_target=a b [prompt="x", goal_gate=true] a -> b -> exit`, []string{"2:16 warning goal_gate_has_retry b"}},
		{"goal_gate_has_retry: right", `b [prompt="x", goal_gate=true, fallback_retry_target=a] a -> b -> exit`, nil},
		{"prompt_on_llm_nodes", `b [shape=tab] a -> b -> exit`, []string{"2:1 warning prompt_on_llm_nodes b"}},
		{"prompt_on_llm_nodes: a label is enough", `b [shape=tab, label="x"] a -> b -> exit`, nil},
		{"reserved_keyword_node_id", `if [prompt="x"] a -> if -> exit`, []string{"2:1 warning reserved_keyword_node_id if"}},
		{"thread_id_requires_fidelity_full", `b [prompt="x", thread_id=t] a -> b [thread_id=u] b -> exit`,
			[]string{"2:26 warning thread_id_requires_fidelity_full b", "2:47 warning thread_id_requires_fidelity_full a->b"}},
		{"thread_id_requires_fidelity_full: right", `b [prompt="x", thread_id=t, fidelity=full] a -> b [thread_id=u] b -> exit`, nil},
		{"thread_id_requires_fidelity_full: by default", `default_fidelity=full b [prompt="x", thread_id=t] a -> b -> exit`, nil},
		{"inert_attribute: every row", `h [shape=hexagon, script="s", language=shell, stdin_source=x, duration=1s, max_parallel=1, output_retries=1, output_schema=routing, prompt="p"] a -> h -> exit b [prompt="x", review_target=true] a -> b -> exit`,
			[]string{
				"2:26 warning inert_attribute h", "2:40 warning inert_attribute h", "2:60 warning inert_attribute h", "2:72 warning inert_attribute h", "2:89 warning inert_attribute h",
				"2:107 warning inert_attribute h", "2:124 warning inert_attribute h", "2:140 error script_prompt_conflict h", "2:140 warning inert_attribute h", "2:189 warning inert_attribute b",
			}},
		{"parallel_branch_inert_attribute", `p [shape=component] a -> p p -> b [fidelity=full] b [prompt="x", fidelity=full, thread_id=t] b -> exit`,
			[]string{"2:45 warning parallel_branch_inert_attribute p->b", "2:75 warning parallel_branch_inert_attribute b", "2:91 warning parallel_branch_inert_attribute b"}},
		{"detemplated_attribute", `b [prompt="x", label="{{ goal }}"] a -> b [label="{% x %}"] b -> exit rankdir="{{ d }}"`,
			[]string{"2:22 warning detemplated_attribute b", "2:50 warning detemplated_attribute a->b", "2:79 warning direction_valid", "2:79 warning detemplated_attribute"}},

		{"unresolved_file_ref", "goal=\"@goal.md\"\nb [prompt=\"@/abs\"] a -> b -> exit", []string{"2:6 error unresolved_file_ref", "3:11 error unresolved_file_ref b"}},
		{"goal_self_reference", `goal="do {{ goal }}"`, []string{"2:13 error goal_self_reference"}},
		{"template_undefined_variable: in a prompt and a script", "b [prompt=\"{{ inputs.x }} {{ y }}\"] a -> b -> exit\nc [script=\"echo {{ vars.z }}\"] a -> c -> exit",
			[]string{"2:15 warning template_undefined_variable b", "2:30 warning template_undefined_variable b", "3:20 warning template_undefined_variable c"}},
		{"script_unsupported_variable", `c [script="echo {{ env.X }} {{ secrets.Y }}"] a -> c -> exit`,
			[]string{"2:20 error script_unsupported_variable c", "2:32 error script_unsupported_variable c"}},
		{"template_unsupported", `b [prompt="{% if x %}y{% endif %}"] a -> b -> exit`, []string{"2:15 error template_unsupported b"}},
		{"template_syntax", `b [prompt="{{ x"] a -> b -> exit`, []string{"2:12 error template_syntax b"}},

		{"ignored_value", `default_max_retries="3" b [prompt="x", max_retries="5", timeout=300, label=7] a -> b [weight="2"] b -> exit`,
			[]string{"2:21 info ignored_value", "2:52 info ignored_value b", "2:65 info ignored_value b", "2:76 info ignored_value b", "2:94 info ignored_value a->b"}},
		{"ignored_value: a label that is a duration", `b [shape=tab, label="30s"] a -> b -> exit`, []string{"2:21 info ignored_value b"}},
		{"diamond_own_outcome", `d [shape=diamond] a -> d d -> exit [condition="outcome=failed"] d -> a`, []string{"2:47 info diamond_own_outcome d"}},
		{"parallel_branch_goal_gate", `p [shape=component] a -> p -> b b [prompt="x", goal_gate=true, retry_target=a] b -> exit`, []string{"2:58 warning parallel_branch_goal_gate b"}},
		{"default_choice_without_timeout", `h [shape=hexagon, human.default_choice=exit] a -> h -> exit`, []string{"2:40 info default_choice_without_timeout h"}},
		{"child_workflow: none", `h [shape=house] a -> h -> exit`, []string{"2:1 warning child_workflow h"}},
		{"child_workflow: not sent along", `h [shape=house, stack.child_workflow="c.fabro"] a -> h -> exit`, []string{"2:38 warning child_workflow h"}},
		{"child_workflow: does not parse", `h [shape=house, stack.child_dot_source="digraph"] a -> h -> exit`, []string{"2:40 warning child_workflow h"}},
		{"child_workflow: has an error", `h [shape=house, stack.child_dot_source="digraph C { exit [shape=Msquare] }"] a -> h -> exit`, []string{"2:40 warning child_workflow h"}},
		{"child_workflow: itself", `h [shape=house, stack.child_workflow="w.fabro"] a -> h -> exit`, nil},
		{"goal_missing: once a node", `b [prompt="{{ goal }}{{ goal }}"] c [script="echo {{ goal }}"] a -> b -> c -> exit`, []string{"2:11 info goal_missing b", "2:45 info goal_missing c"}},
		{"default_choice_without_timeout: right", `h [shape=hexagon, human.default_choice=exit, timeout=5m] a -> h -> exit`, nil},
		{"edge_attribute_ignored", `a -> exit [max_visits=5]`, []string{"2:23 info edge_attribute_ignored a->exit"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, list := compileText(t, frame(c.body), nil, CompileOptions{}, Args{})
			want := c.want
			if want == nil {
				want = []string{}
			}
			if diff := cmp.Diff(want, findings(list, true)); diff != "" {
				t.Errorf("%s\n%s", diff, FormatDiagnostics(list))
			}
			for _, d := range list {
				if d.Message == "" || d.Rule == "" || d.Fix == "" || d.SourcePath != "w.fabro" || d.SpanLen < 1 {
					t.Errorf("incomplete: %+v", d)
				}
			}
		})
	}
}

func TestMissingStartAndExit(t *testing.T) {
	_, list := compileText(t, "digraph Empty {}", nil, CompileOptions{}, Args{})
	if diff := cmp.Diff([]string{"1:9 error start_node", "1:9 error terminal_node"}, findings(list, true)); diff != "" {
		t.Error(diff)
	}
}

// Undefined variables are warnings in validate and errors at run creation.
func TestStrictVariables(t *testing.T) {
	src := frame(`b [prompt="{{ inputs.x }}"] a -> b -> exit`)
	for strict, want := range map[bool]bool{false: false, true: true} {
		_, list := compileText(t, src, nil, CompileOptions{StrictVariables: strict}, Args{})
		if HasErrors(list) != want {
			t.Errorf("strict %v: %v", strict, findings(list, true))
		}
	}
}

func TestReport(t *testing.T) {
	_, list := compileText(t, "digraph G {\n\tstart [shape=Mdiamond]\n\texit [shape=Msquare]\n\twork [prompt=\"In \u00e4 {{ inputs.dir }}\", label=\"\x1b[31mred\"]\n\tstart -> wrok\n\tstart -> work -> exit\n}", nil, CompileOptions{}, Args{Inputs: []string{"dirs=1"}})
	want := "" +
		"w.fabro:4:24: warning: variable `inputs.dir` is not defined [template_undefined_variable]\n" +
		"    4 |  work [prompt=\"In \u00e4 {{ inputs.dir }}\", label=\"\ufffd[31mred\"]\n" +
		"      |                        ^~~~~~~~~~\n" +
		"      = fix: did you mean inputs.dirs?\n" +
		"w.fabro:5:11: error: the edge start -> wrok names `wrok`, which is not declared [edge_target_exists]\n" +
		"    5 |  start -> wrok\n" +
		"      |           ^~~~\n" +
		"      = fix: did you mean `work`?\n"
	if diff := cmp.Diff(want, FormatDiagnostics(list)); diff != "" {
		t.Error(diff)
	}
	_, err := Parse("x.fabro", []byte("digraph G { a ["+strings.Repeat("k=1 ", 200)+"!"+strings.Repeat(" k=1", 200)+"] }"))
	want = "" +
		"x.fabro:1:816: error: expected an attribute or `]`, found `!` [syntax]\n" +
		"    1 | …" + strings.Repeat("k=1 ", 10) + "!" + strings.Repeat(" k=1", 19) + " k=…\n" +
		"      | " + strings.Repeat(" ", 41) + "^\n" +
		"      = fix: write attributes as key=value, with texts in quotes\n"
	if diff := cmp.Diff(want, FormatDiagnostics([]Diagnostic{err.(*SyntaxError).Diagnostic()})); diff != "" {
		t.Error(diff)
	}
}
