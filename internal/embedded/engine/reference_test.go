package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// referenceWorkflows is the folder of real workflow files, or skips the test.
func referenceWorkflows(t *testing.T) string {
	t.Helper()
	root := os.Getenv("FABRO_REFERENCE_DATA")
	if root == "" {
		t.Skip("FABRO_REFERENCE_DATA is not set: no real workflow files to run")
	}
	return filepath.Join(root, "data", "workflows")
}

// bundleOf puts a workflow file and all that lies around it into a bundle, as a client would.
func bundleOf(t *testing.T, root, file string) workflow.Bundle {
	t.Helper()
	dir := filepath.Dir(filepath.Join(root, file))
	files := map[string]string{}
	b := workflow.Bundle{Target: filepath.Base(file), Workflows: map[string]workflow.BundleWorkflow{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		key = filepath.ToSlash(key)
		switch filepath.Ext(key) {
		case ".fabro":
			b.Workflows[key] = workflow.BundleWorkflow{Source: string(text), Files: files}
		case ".toml":
		default:
			files[key] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(dir, "workflow.toml"))
	if w := b.Workflows[b.Target]; err == nil && b.Target == "workflow.fabro" {
		w.ConfigPath, w.ConfigSource = "workflow.toml", string(config)
		b.Workflows[b.Target] = w
	}
	return b
}

// The real files that hold commands only run for real and take the way that is known of them.
func TestReferenceCommands(t *testing.T) {
	root := referenceWorkflows(t)
	cases := []struct{ file, order string }{
		{"fixtures/command_pipeline.fabro", "start step1 step2 exit"},
		{"fixtures/conditional_branching.fabro", "start cmd gate passed exit"},
		{"fixtures/command_routing.fabro", "start classify gate kept exit"},
		{"test/inferred_command.fabro", "start echo_task exit"},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			tr := trialOf(t, compileBundle(t, bundleOf(t, root, c.file)))
			result, got := tr.run()
			if diff := cmp.Diff([]string{c.order, "succeeded(completed)"}, []string{order(got), status(result)}); diff != "" {
				t.Error(diff)
			}
			if n := len(only(got, "command.completed")); n == 0 {
				t.Error("no command ran")
			}
		})
	}
}

// All real files in a dry run: the way each takes and how it ends. Those that do not compile are named by the tests of
// the workflow package.
func TestReferenceDryRuns(t *testing.T) {
	root := referenceWorkflows(t)
	const done = "succeeded(completed)"
	known := map[string]struct{ order, status string }{
		"project-workflows/hello/workflow.fabro":                    {"start greet exit", done},
		"project-workflows/sleeper/workflow.fabro":                  {"start nap exit", done},
		"project-workflows/context-demo/workflow.fabro":             {"start emit exit", done},
		"project-workflows/interview/workflow.fabro":                {"start yes_no confirmation multiple_choice multi_select freeform summarize exit", done},
		"fixtures/command_pipeline.fabro":                           {"start step1 step2 exit", done},
		"fixtures/conditional_branching.fabro":                      {"start cmd gate passed exit", done},
		"fixtures/command_routing.fabro":                            {"start classify gate none exit", done},
		"fixtures/human_gate.fabro":                                 {"start draft approve ship exit", done},
		"fixtures/full_stack.fabro":                                 {"start setup plan approve impl verify exit", done},
		"fixtures/command_agent_mixed.fabro":                        {"start setup work verify exit", done},
		"fixtures/agent_linear.fabro":                               {"start work exit", done},
		"test/simple.fabro":                                         {"start run_tests report exit", done},
		"test/branching.fabro":                                      {"start plan implement validate gate exit", done},
		"test/conditions.fabro":                                     {"start decide path_b exit", done},
		"test/styled.fabro":                                         {"start plan implement critical_review exit", done},
		"test/inferred_command.fabro":                               {"start echo_task exit", done},
		"test/docs/tutorials/branch-loop/fixed-loop.fabro":          {"start improve gate improve gate improve gate improve gate improve gate exit", done},
		"test/docs/tutorials/branch-loop/branch-loop.fabro":         {"start plan implement validate gate exit", done},
		"test/dot-compatibility/human-default-choice.fabro":         {"start approve deploy exit", done},
		"test/docs/workflows/transitions/transition-patterns.fabro": {"start plan implement review gate fast_path preferred exit", done},
		"test/docs/workflows/human-in-the-loop/hitl-patterns.fabro": {"start plan approve implement review exit", done},
		"test/parallel.fabro":                                       {"start fork * merge review exit", done},
		"test/docs/workflows/stages-and-nodes/all-node-types.fabro": {"start plan approve spec implement test gate fork * merge exit", done},
		"project-workflows/smoke/workflow.fabro":                    {"start toolchain compile_rust compile_typescript lint_rust test_rust test_typescript exit", done},
		"test/docs/execution/context/example.fabro":                 {"start work exit", done},
		"test/docs/execution/failures/example.fabro":                {"start work exit", done},
		"test/docs/execution/failures/example-02.fabro":             {"start fix exit", done},
		"test/docs/execution/failures/example-03.fabro":             {"start plan implement verify exit", done},
		"test/docs/execution/failures/example-04.fabro":             {"start work exit", done},
		"test/docs/execution/interviews/default-choice.fabro":       {"start approve deploy", done}, // nothing leads on from deploy
		"test/docs/execution/run-configuration/c-i.fabro":           {"start clone test exit", done},
		"test/docs/tutorials/ensemble/ensemble.fabro":               {"start fork * merge synth exit", done},
		"test/docs/tutorials/hello-world/hello.fabro":               {"start compose exit", done},
		"test/docs/tutorials/hello-world/sub-agent.fabro":           {"start research exit", done},
		"test/docs/tutorials/hello-world/tool-use.fabro":            {"start explore exit", done},
		"test/docs/tutorials/multi-model/multi-model.fabro":         {"start spec implement test review exit", done},
		"test/docs/tutorials/parallel-review/parallel.fabro":        {"start fork * merge report exit", done},
		"test/docs/tutorials/plan-implement/plan-implement.fabro":   {"start plan approve implement simplify exit", done},
		"test/docs/tutorials/sub-workflow/implement-and-test.fabro": {"start implement validate gate exit", done},
		"test/docs/tutorials/sub-workflow/sub-workflow.fabro":       {"start plan impl review exit", done}, // the child is not run
		"test/docs/workflows/stylesheets/example.fabro":             {"start spec implement test review exit", done},
		"test/docs/workflows/variables/check.fabro":                 {"start clone test exit", done},
		"test/docs/workflows/variables/example.fabro":               {"start plan exit", done},
		"test/dot-compatibility/acp-agent-chain.fabro":              {"start plan implement exit", done},
		"test/dot-compatibility/subworkflow-manager.fabro":          {"start plan impl review exit", done}, // the child is not run
		"test/templated_inputs/workflow.fabro":                      {"start work exit", done},
		"test/templated_unbound.fabro":                              {"start work exit", done},
		"test/templated_unbound_imported/workflow.fabro":            {"start work exit", done},
		"test/templated_unbound_partial/workflow.fabro":             {"start test_imported_include exit", done},
		"test/templates/sibling_partial/workflow.fabro":             {"start audit exit", done},
		"test/templates/static_dependencies/workflow.fabro":         {"start file_prompt inline_prompt exit", done},
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".fabro" {
			rel, _ := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			c, diagnostics, err := workflow.Compile(bundleOf(t, root, file), workflow.CompileOptions{})
			if err != nil || workflow.HasErrors(diagnostics) {
				if _, ok := known[file]; ok {
					t.Fatalf("does not compile: %v %v", err, diagnostics)
				}
				return // the workflow package's tests say which errors are right
			}
			ran++
			tr := trialOf(t, c)
			tr.spec.DryRun = true
			result, got := tr.run()
			want, ok := known[file]
			if !ok {
				t.Fatalf("nobody has said what is right for this file: %s: %s", order(got), status(result))
			}
			if diff := cmp.Diff(want.order+": "+want.status, anyBranches(order(got))+": "+status(result)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if ran != len(known) {
		t.Errorf("%d files ran, %d are known", ran, len(known))
	}
}

// anyBranches writes * for the branches of a fork, which start together and so in any order.
func anyBranches(order string) string {
	return branchesOfOrder.ReplaceAllString(order, "*")
}

var branchesOfOrder = regexp.MustCompile(`\([^)]*\)( \([^)]*\))*`)

// The real files with human gates and only simulated work beside them, answered both ways.
func TestReferenceGates(t *testing.T) {
	root := referenceWorkflows(t)
	agent := []string{"sh", "-c", "cat > /dev/null; echo fine"}
	option, text := wire.AnswerOfOption, wire.AnswerOfText
	const docs = "test/docs/"
	cases := []struct {
		name, file string
		answers    []wire.SubmitAnswer
		way        string
	}{
		{"approve", "fixtures/human_gate.fabro", []wire.SubmitAnswer{option("A")}, "start draft approve ship exit"},
		{"revise", "fixtures/human_gate.fabro", []wire.SubmitAnswer{option("R"), option("A")}, "start draft approve revise draft approve ship exit"},
		{"approve", docs + "tutorials/plan-implement/plan-implement.fabro", []wire.SubmitAnswer{option("A")}, "start plan approve implement simplify exit"},
		{"revise", docs + "tutorials/plan-implement/plan-implement.fabro", []wire.SubmitAnswer{option("R"), option("A")}, "start plan approve plan approve implement simplify exit"},
		{"approve twice", docs + "workflows/human-in-the-loop/hitl-patterns.fabro", []wire.SubmitAnswer{option("A"), option("A")}, "start plan approve implement review exit"},
		{"skip", docs + "workflows/human-in-the-loop/hitl-patterns.fabro", []wire.SubmitAnswer{option("S")}, "start plan approve exit"},
		{"revise at both gates", docs + "workflows/human-in-the-loop/hitl-patterns.fabro", []wire.SubmitAnswer{option("R"), option("A"), option("R"), option("S")},
			"start plan approve plan approve implement review plan approve exit"},
		{"own words", docs + "workflows/human-in-the-loop/hitl-patterns.fabro", []wire.SubmitAnswer{option("A"), text("use tabs")}, "start plan approve implement review custom exit"},
		{"words that are a label", docs + "workflows/human-in-the-loop/hitl-patterns.fabro", []wire.SubmitAnswer{option("A"), text("[a] approve")}, "start plan approve implement review exit"},
		{"approve", docs + "workflows/stages-and-nodes/all-node-types.fabro", []wire.SubmitAnswer{option("A")}, "start plan approve spec implement test gate fork * merge exit"},
		{"revise", docs + "workflows/stages-and-nodes/all-node-types.fabro", []wire.SubmitAnswer{option("R"), option("A")},
			"start plan approve plan approve spec implement test gate fork * merge exit"},
		{"deploy", docs + "execution/interviews/default-choice.fabro", []wire.SubmitAnswer{option("D")}, "start approve deploy"},
		{"skip", docs + "execution/interviews/default-choice.fabro", []wire.SubmitAnswer{option("S")}, "start approve exit"},
		{"deploy", "test/dot-compatibility/human-default-choice.fabro", []wire.SubmitAnswer{option("D")}, "start approve deploy exit"},
		{"revise", "test/dot-compatibility/human-default-choice.fabro", []wire.SubmitAnswer{option("R"), option("D")}, "start approve revise approve deploy exit"},
	}
	for _, c := range cases {
		t.Run(c.name+" in "+c.file, func(t *testing.T) {
			tr := trialOf(t, compileBundle(t, bundleOf(t, root, c.file)))
			tr.spec.AgentCommand = agent
			tr.desk.answers = c.answers
			result, got := tr.run()
			if diff := cmp.Diff(c.way+": succeeded(completed)", anyBranches(order(got))+": "+status(result)); diff != "" {
				t.Error(diff)
			}
			if len(tr.desk.answers) > 0 {
				t.Errorf("%d answers were not asked for", len(tr.desk.answers))
			}
			if display := tr.desk.asked[0].ContextDisplay; strings.Contains(c.way, " plan approve") && (display == nil || *display != "fine") {
				t.Errorf("shown beside the question: %v", display)
			}
		})
	}
	interviews := []struct {
		name    string
		answers []wire.SubmitAnswer
		said    []any
	}{
		{"interview", []wire.SubmitAnswer{wire.AnswerOfYes(true), wire.AnswerOfYes(false), option("T"), wire.AnswerOfOptions("S", "B"), text("be kind")},
			[]any{"yes", "no", "T", "S, B", "be kind"}},
		{"interview, the other way", []wire.SubmitAnswer{wire.AnswerOfYes(false), wire.AnswerOfYes(true), option("Q"), wire.AnswerOfOptions("N"), text("S")},
			[]any{"no", "yes", "Q", "N", "S"}},
	}
	for _, c := range interviews {
		t.Run(c.name, func(t *testing.T) {
			tr := trialOf(t, compileBundle(t, bundleOf(t, root, "project-workflows/interview/workflow.fabro")))
			tr.spec.AgentCommand = agent
			tr.desk.answers = c.answers
			result, got := tr.run()
			if diff := cmp.Diff("start yes_no confirmation multiple_choice multi_select freeform summarize exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
				t.Error(diff)
			}
			var said []any
			for _, l := range only(got, "interview.completed") {
				said = append(said, l.Props["answer"])
			}
			if diff := cmp.Diff(c.said, said); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a child workflow runs among its parent's stages", func(t *testing.T) {
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "test/docs/tutorials/sub-workflow/sub-workflow.fabro")))
		tr.spec.AgentCommand = agent
		result, got := tr.run()
		if diff := cmp.Diff("start plan impl start implement validate gate exit review exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("full stack after a revision, with somebody who does the work", func(t *testing.T) {
		if _, err := os.Stat("/tmp/scenario_full"); err == nil {
			t.Skip("/tmp/scenario_full exists already: not touching somebody's files")
		}
		t.Cleanup(func() { os.RemoveAll("/tmp/scenario_full") })
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "fixtures/full_stack.fabro")))
		tr.spec.AgentCommand = []string{"sh", "-c", "cat > /dev/null; echo PASS | tee /tmp/scenario_full/result.txt"}
		tr.desk.answers = []wire.SubmitAnswer{option("R"), option("A")}
		result, got := tr.run()
		if diff := cmp.Diff("start setup plan approve plan approve impl verify exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("full stack fails at its goal gate", func(t *testing.T) {
		if _, err := os.Stat("/tmp/scenario_full"); err == nil {
			t.Skip("/tmp/scenario_full exists already: not touching somebody's files")
		}
		t.Cleanup(func() { os.RemoveAll("/tmp/scenario_full") })
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "fixtures/full_stack.fabro")))
		tr.spec.AgentCommand = agent
		tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("A")}
		result, got := tr.run()
		if diff := cmp.Diff("start setup plan approve impl verify impl verify impl verify", order(got)); diff != "" {
			t.Error(diff)
		}
		if !strings.HasPrefix(status(result), "failed(workflow_error): deterministic failure cycle detected: signature verify|deterministic|") {
			t.Error(status(result))
		}
	})
}
