package engine

import (
	"io/fs"
	"os"
	"path/filepath"
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

// All real files in a dry run. What is not named here only has to come to an end.
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
		"test/parallel.fabro":                                       {"start fork branch1 branch2 merge review exit", done},
		"test/docs/workflows/stages-and-nodes/all-node-types.fabro": {"start plan approve spec implement test gate fork * merge exit", done},
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
				t.Logf("%s: %s", order(got), status(result))
				return
			}
			way := strings.NewReplacer("(", "", ")", "").Replace(order(got))
			if before, after, ok := strings.Cut(want.order, " * "); ok { // any branches, in any order
				if strings.HasPrefix(way, before) && strings.HasSuffix(way, after) {
					way = want.order
				}
			}
			if way == "start fork branch2 branch1 merge review exit" {
				way = "start fork branch1 branch2 merge review exit" // branches start together
			}
			if diff := cmp.Diff(want.order+": "+want.status, way+": "+status(result)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if ran < len(known) {
		t.Errorf("%d files ran", ran)
	}
}

// The real files with human gates and only simulated work beside them, answered both ways.
func TestReferenceGates(t *testing.T) {
	root := referenceWorkflows(t)
	agent := []string{"sh", "-c", "cat > /dev/null; echo fine"}
	t.Run("approve", func(t *testing.T) {
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "fixtures/human_gate.fabro")))
		tr.spec.AgentCommand = agent
		tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("A")}
		result, got := tr.run()
		if diff := cmp.Diff("start draft approve ship exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("revise", func(t *testing.T) {
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "fixtures/human_gate.fabro")))
		tr.spec.AgentCommand = agent
		tr.desk.answers = []wire.SubmitAnswer{wire.AnswerOfOption("R"), wire.AnswerOfOption("A")}
		result, got := tr.run()
		if diff := cmp.Diff("start draft approve revise draft approve ship exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
			t.Error(diff)
		}
		if display := tr.desk.asked[0].ContextDisplay; display == nil || *display != "fine" {
			t.Errorf("shown beside the question: %v", display)
		}
	})
	t.Run("interview", func(t *testing.T) {
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "project-workflows/interview/workflow.fabro")))
		tr.spec.AgentCommand = agent
		tr.desk.answers = []wire.SubmitAnswer{
			wire.AnswerOfYes(true), wire.AnswerOfYes(false), wire.AnswerOfOption("T"), wire.AnswerOfOptions("S", "B"), wire.AnswerOfText("be kind"),
		}
		result, got := tr.run()
		if diff := cmp.Diff("start yes_no confirmation multiple_choice multi_select freeform summarize exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
			t.Error(diff)
		}
		var answers []any
		for _, l := range only(got, "interview.completed") {
			answers = append(answers, l.Props["answer"])
		}
		if diff := cmp.Diff([]any{"yes", "no", "T", "S, B", "be kind"}, answers); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a child workflow runs among its parent's stages", func(t *testing.T) {
		tr := trialOf(t, compileBundle(t, bundleOf(t, root, "test/docs/tutorials/sub-workflow/sub-workflow.fabro")))
		tr.spec.AgentCommand = agent
		result, got := tr.run()
		if diff := cmp.Diff("start plan impl start implement validate gate exit review exit: succeeded(completed)", order(got)+": "+status(result)); diff != "" {
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
