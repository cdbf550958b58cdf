package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fabro-mcp/internal/workflow"
)

const (
	// maxResponse bounds the response of an agent command, in bytes: it becomes part of events.
	maxResponse = 1 << 20

	// shownResponse is how much of a response last_response repeats, in characters.
	shownResponse = 200

	// defaultOutputRetries is how often a response that misses its output_schema is asked for again.
	defaultOutputRetries = 2

	// agentProvider stands where events name the provider of a model.
	agentProvider = "agent-command"
)

// NeedsAgent lists the ids of the nodes that need a language model, in file order: agents, prompts, and joins with a
// prompt. A run with such nodes needs a dry run or an agent command.
func NeedsAgent(g *workflow.Graph) []string {
	var ids []string
	for _, n := range g.Nodes {
		if n.LLM() || n.Handler() == workflow.HandlerFanIn && hasPrompt(n) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// NeedsAgentBelow is NeedsAgent for a workflow and the child workflows its managers run; the ids of a child's nodes are
// written manager/node. Each child is looked at once, whoever runs it. Children that do not compile are left out, and so
// is what lies beyond maxChildren: their managers will say so when the run comes to them.
func NeedsAgentBelow(c *workflow.Compiled) []string {
	ids := NeedsAgent(c.Graph)
	seen := map[string]bool{c.Path: true}
	compiled := 0
	var below func(c *workflow.Compiled, prefix string)
	below = func(c *workflow.Compiled, prefix string) {
		for _, n := range c.Graph.Nodes {
			if n.Handler() != workflow.HandlerManagerLoop || compiled == maxChildren {
				continue
			}
			compiled++
			child, diagnostics, err := c.Child(n)
			if err != nil || workflow.HasErrors(diagnostics) || seen[child.Path] {
				continue
			}
			seen[child.Path] = true
			for _, id := range NeedsAgent(child.Graph) {
				ids = append(ids, prefix+n.ID+"/"+id)
			}
			below(child, prefix+n.ID+"/")
		}
	}
	below(c, "")
	return ids
}

// maxChildren is how many managers NeedsAgentBelow looks behind.
const maxChildren = 1000

func hasPrompt(n *workflow.Node) bool {
	prompt, ok := n.Attrs.String("prompt")
	return ok && strings.TrimSpace(prompt) != ""
}

// stagePrompt are the properties of stage.prompt.
type stagePrompt struct {
	Visit    int    `json:"visit"`
	Text     string `json:"text"`
	Mode     string `json:"mode"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// promptCompleted are the properties of prompt.completed.
type promptCompleted struct {
	Response string `json:"response"`
	Model    string `json:"model"`
	Provider string `json:"provider"`
}

// prompt is what the stage asks for: its prompt, or its label, and for a branch of for_each the item.
func (s *stage) prompt(ctx context.Context) (string, error) {
	text := s.node.Label()
	if hasPrompt(s.node) {
		text, _ = s.node.Attrs.String("prompt")
	}
	if s.item != nil {
		raw, err := marshal(s.item.value)
		if err != nil {
			return "", err
		}
		text += "\n\nItem " + s.item.label + ":\n" + string(raw)
	}
	if s.node.Handler() == workflow.HandlerFanIn {
		value, _ := s.ctx.Get("parallel.results")
		value, err := s.r.blobs.resolve(ctx, value)
		if err != nil {
			return "", err
		}
		raw, err := marshal(value)
		if err != nil {
			return "", err
		}
		text += "\n\nResults of the branches:\n" + string(raw)
	}
	return text, nil
}

// agent has the agent command do what a language model would do in Fabro: goal, account of the run and prompt go to its
// standard input, its standard output is the response.
func (s *stage) agent(ctx context.Context) (*Outcome, error) {
	if len(s.r.spec.AgentCommand) == 0 {
		// Creation refuses such runs. Were it only this stage that fails, the run could still end as a success.
		return nil, fatal(fmt.Sprintf(
			"stage %s needs a language model, and this run has no agent command: run it with dry_run, with FABRO_AGENT_COMMAND, or on a Fabro server", s.node.ID))
	}
	prompt, err := s.prompt(ctx)
	if err != nil {
		return failedWith(Deterministic, "Cannot build the prompt: "+err.Error()), nil
	}
	mode := "agent"
	if s.node.Handler() != workflow.HandlerAgent {
		mode = "prompt"
	}
	model := filepath.Base(s.r.spec.AgentCommand[0])
	if err := s.emit(ctx, "stage.prompt", stagePrompt{s.visit, prompt, mode, agentProvider, model}); err != nil {
		return nil, err
	}
	input := s.account(ctx) + prompt + "\n"
	retries, ok := s.node.Attrs.Int("output_retries")
	if !ok {
		retries = defaultOutputRetries
	}
	var spent time.Duration
	for {
		response, o, took, err := s.askAgent(ctx, input)
		spent += took
		if err != nil || o != nil {
			return withInference(o, spent), withInferenceError(err, spent)
		}
		o = s.responded(response)
		problem := s.structured(o, response, true)
		if problem != "" && retries > 0 {
			retries--
			input = s.account(ctx) + prompt + "\n\nThe previous response was refused. " + problem + "\n"
			continue
		}
		if err := s.emit(ctx, "prompt.completed", promptCompleted{response, model, agentProvider}); err != nil {
			return nil, err
		}
		if problem != "" {
			o = failedWith(Deterministic, problem)
		}
		return withInference(o, spent), nil
	}
}

func withInference(o *Outcome, spent time.Duration) *Outcome {
	if o != nil {
		o.inference = spent
	}
	return o
}

func withInferenceError(err error, spent time.Duration) error {
	var problem *stageError
	if errors.As(err, &problem) {
		problem.inference = spent
	}
	return err
}

// responded is the outcome of a stage that got its response.
func (s *stage) responded(response string) *Outcome {
	o := succeeded("Stage completed: " + s.node.ID)
	o.response, o.hasResponse = response, true
	o.set("last_stage", s.node.ID)
	o.set("last_response", firstCharacters(response, shownResponse))
	o.set("response."+s.node.ID, response)
	return o
}

// askAgent runs the command once. It returns the response, or else an outcome or an error.
func (s *stage) askAgent(ctx context.Context, input string) (string, *Outcome, time.Duration, error) {
	log, err := openOutput(StageLogPath(s.r.spec.RunDir, s.id), s.r.spec.MaxOutput)
	if err != nil {
		return "", nil, 0, fatal(err.Error())
	}
	stderr := &tailWriter{also: log}
	stdout := &headWriter{max: maxResponse} // the log has it too, for who looks on
	env := append(append([]string(nil), s.r.spec.Env...),
		"FABRO_RUN_ID="+s.r.spec.RunID, "FABRO_STAGE_ID="+s.id, "FABRO_NODE_ID="+s.node.ID)
	end, err := s.r.procs.run(ctx, process{
		argv: s.r.spec.AgentCommand, dir: s.r.workDir, env: env, stdin: []byte(input), stdout: io.MultiWriter(stdout, log), stderr: stderr,
	})
	if _, _, logErr := log.finish(); logErr != nil {
		return "", nil, end.duration, fatal(logErr.Error())
	}
	name := s.r.spec.AgentCommand[0]
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", nil, 0, fatal(fmt.Sprintf("the agent command %q is not to be found", name))
	case err != nil:
		return "", nil, 0, notStarted("Cannot run the agent command: ", err)
	case end.stopped && errors.Is(context.Cause(ctx), errTimeout):
		return "", nil, end.duration, errAborted
	case end.stopped:
		f := Failure{Message: withTail("Agent command cancelled: "+name, stderr.text()), Category: Canceled}
		return "", nil, end.duration, &stageError{failure: f, final: true}
	case end.code != 0:
		said := stderr.text()
		if strings.TrimSpace(said) == "" {
			said = lastCharacters(stdout.text(), failureTail)
		}
		return "", failed(failureFromText(withTail(fmt.Sprintf("Agent command failed with exit code: %d", end.code), said))), end.duration, nil
	}
	return strings.TrimRight(stdout.text(), "\r\n"), nil, end.duration, nil
}

// simulateAgent is the stage of a dry run.
func (s *stage) simulateAgent(context.Context) (*Outcome, error) {
	response := "[Simulated] Response for stage: " + s.node.ID
	o := s.responded(response)
	o.Notes = "[Simulated] " + s.node.ID
	return o, nil
}

func firstCharacters(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func lastCharacters(text string, n int) string {
	if len(text) <= n {
		return text
	}
	runes := []rune(text)
	return string(runes[max(len(runes)-n, 0):])
}
