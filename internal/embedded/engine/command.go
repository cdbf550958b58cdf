package engine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"fabro-mcp/fabroapi/wire"
)

const (
	// defaultCommandTimeout is the timeout of a command whose node sets none.
	defaultCommandTimeout = 600 * time.Second

	// maxStdin bounds what stdin_source may feed a command, in bytes.
	maxStdin = 30 << 20
)

// Values of the termination of command.completed.
const (
	exited    = "exited"
	timedOut  = "timed_out"
	cancelled = "cancelled"
)

// commandStarted are the properties of command.started.
type commandStarted struct {
	Script    string `json:"script"`
	Command   string `json:"command"`
	Language  string `json:"language"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
}

// commandCompleted are the properties of command.completed. No others are allowed there.
type commandCompleted struct {
	Output        string `json:"output"`
	ExitCode      *int   `json:"exit_code,omitempty"`
	DurationMS    int64  `json:"duration_ms"`
	Termination   string `json:"termination"`
	OutputBytes   int64  `json:"output_bytes"`
	LiveStreaming bool   `json:"live_streaming"`
}

// script is what a command node is to run, checked.
type script struct {
	text, language string
	shell          string // for bash -c, without the first line that merges the outputs
	stdin          []byte // nil: none
}

// script reads the node's attributes. A failed outcome is returned for what no attempt can mend.
func (s *stage) script(ctx context.Context) (script, *Outcome) {
	var c script
	c.text, _ = s.node.Attrs.String("script")
	if strings.TrimSpace(c.text) == "" {
		return c, failedWith(Deterministic, "No script specified")
	}
	c.language = "shell"
	if l, ok := s.node.Attrs.String("language"); ok {
		c.language = l
	}
	switch c.language {
	case "shell":
		c.shell = c.text
	case "python":
		c.shell = "python3 -c " + shellQuote(c.text)
	default:
		return c, failedWith(Deterministic, "Invalid language: "+c.language)
	}
	source, ok := s.node.Attrs.String("stdin_source")
	if !ok {
		return c, nil
	}
	value, ok := s.ctx.Get(source)
	if !ok {
		return c, failedWith(Deterministic, fmt.Sprintf("stdin_source %q is not in the context", source))
	}
	value, err := s.r.blobs.resolve(ctx, value)
	if err != nil {
		return c, failedWith(Deterministic, fmt.Sprintf("stdin_source %q cannot be read: %v", source, err))
	}
	if text, ok := value.(string); ok {
		c.stdin = []byte(text)
	} else if c.stdin, err = marshal(value); err != nil {
		return c, failedWith(Deterministic, fmt.Sprintf("stdin_source %q cannot be written as JSON: %v", source, err))
	}
	if len(c.stdin) > maxStdin {
		return c, failedWith(Deterministic, fmt.Sprintf("stdin_source %q holds %d bytes, more than %d", source, len(c.stdin), maxStdin))
	}
	return c, nil
}

// shellQuote makes text one word of a POSIX shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// command runs the node's script in a shell of its own process group, in the run's working directory.
func (s *stage) command(ctx context.Context) (*Outcome, error) {
	c, refused := s.script(ctx)
	if refused != nil {
		return refused, nil
	}
	timeout, limited := s.node.Attrs.Duration("timeout")
	started := commandStarted{Script: c.text, Command: "exec 2>&1\n" + c.shell, Language: c.language}
	if limited {
		started.TimeoutMS = timeout.Milliseconds()
	} else {
		timeout = defaultCommandTimeout
	}
	log, err := openOutput(StageLogPath(s.r.spec.RunDir, s.id), s.r.spec.MaxOutput)
	if err != nil {
		return nil, fatal(err.Error())
	}
	if err := s.emit(ctx, "command.started", started); err != nil {
		return nil, errors.Join(err, log.close())
	}
	bounded, stop := s.r.withTimeout(ctx, timeout)
	end, err := s.r.procs.run(bounded, process{
		argv: []string{"bash", "-c", started.Command}, dir: s.r.workDir,
		env: commandEnv(s.r.spec.Env, s.r.spec.Compiled.Settings.Environment.Env), stdin: c.stdin, stdout: log, stderr: log,
	})
	stop()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.Join(fatal("command stages need bash, which is not to be found in PATH"), log.close())
	}
	if err != nil {
		return nil, errors.Join(notStarted("Cannot run the script: ", err), log.close())
	}
	return s.commandEnded(ctx, c, log, end, timeout, context.Cause(bounded))
}

// notStarted is the error of a process that could not be started, which another attempt may mend, unless it is one that
// ends the run.
func notStarted(what string, err error) error {
	var end *fatalError
	if errors.As(err, &end) {
		return err
	}
	return retryable(what + err.Error())
}

// commandEnded puts the end of a command on record and makes an outcome of it.
func (s *stage) commandEnded(ctx context.Context, c script, log *output, end exit, timeout time.Duration, cause error) (*Outcome, error) {
	tail := log.last(failureTail)
	text, total, err := log.finish()
	if err != nil {
		return nil, fatal(err.Error())
	}
	ref, err := s.r.blobs.putText(context.WithoutCancel(ctx), text)
	if err != nil {
		return nil, err
	}
	completed := commandCompleted{
		Output: ref, DurationMS: millis(end.duration), Termination: exited, OutputBytes: total, LiveStreaming: true,
	}
	switch {
	case !end.stopped:
		completed.ExitCode = &end.code
	case errors.Is(cause, errTimeout):
		completed.Termination = timedOut
	default:
		completed.Termination = cancelled
	}
	if err := s.emit(ctx, "command.completed", completed); err != nil {
		return nil, err
	}
	updates := map[string]any{"command.output": ref}
	switch completed.Termination {
	case timedOut:
		f := failureFromText(withTail(fmt.Sprintf("Script timed out after %dms: %s", timeout.Milliseconds(), c.text), tail))
		f.Category, f.SystemActor = TransientInfra, wire.SystemTimeout
		return nil, &stageError{failure: *f, tool: end.duration, updates: updates}
	case cancelled:
		f := Failure{Message: withTail("Script cancelled: "+c.text, tail), Category: Canceled}
		return nil, &stageError{failure: f, final: true, tool: end.duration, updates: updates}
	}
	if end.code != 0 {
		o := failed(failureFromText(withTail(fmt.Sprintf("Script failed with exit code: %d", end.code), tail)))
		o.ContextUpdates, o.tool = updates, end.duration
		return o, nil
	}
	o := succeeded("Script completed: " + c.text)
	o.ContextUpdates, o.tool = updates, end.duration
	if problem := s.structured(o, text, false); problem != "" {
		o = failedWith(Deterministic, problem)
		o.ContextUpdates, o.tool = updates, end.duration
	}
	return o, nil
}

// withTail appends the end of an output to a failure message.
func withTail(message, tail string) string {
	if strings.TrimSpace(tail) == "" {
		return message
	}
	return message + "\n\n## output\n" + tail
}

// simulateCommand checks what a dry run can check.
func (s *stage) simulateCommand(ctx context.Context) (*Outcome, error) {
	c, refused := s.script(ctx)
	if refused != nil {
		return refused, nil
	}
	o := succeeded("[Simulated] Command skipped: " + c.text)
	o.set("command.output", "")
	return o, nil
}
