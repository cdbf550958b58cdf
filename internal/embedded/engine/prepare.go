package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// setupLog is where the output of the prepare steps goes, below the run's directory.
const setupLog = "runtime/setup.log"

// prepare runs the prepare steps of the settings, one after another. They run in a dry run too, as in Fabro: what they
// set up may be what the dry run wants to see.
func (r *runner) prepare(ctx context.Context) error {
	steps := r.spec.Compiled.Settings.Prepare
	if len(steps.Steps) == 0 {
		return nil
	}
	began := r.clock.Now()
	err := r.append(ctx, Event{Name: "setup.started", Properties: map[string]any{"command_count": len(steps.Steps)}})
	if err != nil {
		return err
	}
	bounded, stop := ctx, func() {}
	if steps.Timeout > 0 {
		bounded, stop = r.withTimeout(ctx, steps.Timeout)
	}
	defer stop()
	for i, step := range steps.Steps {
		if ctx.Err() != nil {
			return endCause(ctx)
		}
		if err := r.prepareStep(bounded, i, step); err != nil {
			if ctx.Err() != nil {
				return endCause(ctx)
			}
			return err
		}
	}
	return r.append(ctx, Event{Name: "setup.completed", Properties: map[string]any{"duration_ms": millis(r.clock.Now().Sub(began))}})
}

func (r *runner) prepareStep(ctx context.Context, index int, step workflow.PrepareStep) error {
	argv, text := step.Command, step.Script
	if text != "" {
		argv = []string{"bash", "-c", text}
	} else {
		quoted := make([]string, len(argv))
		for i, word := range argv {
			quoted[i] = shellWord(word)
		}
		text = strings.Join(quoted, " ")
	}
	if len(argv) == 0 {
		return &bootError{wire.FailedBootstrapFailed, fmt.Errorf("prepare step %d has neither a script nor a command", index+1)}
	}
	err := r.append(ctx, Event{Name: "setup.command.started", Properties: map[string]any{"command": text, "index": index}})
	if err != nil {
		return err
	}
	log, err := openOutput(filepath.Join(r.spec.RunDir, filepath.FromSlash(setupLog)), r.spec.MaxOutput)
	if err != nil {
		return &bootError{wire.FailedBootstrapFailed, err}
	}
	stderr := &tailWriter{also: log}
	end, err := r.procs.run(ctx, process{
		argv: argv, dir: r.workDir, stdout: log, stderr: stderr,
		env: append(commandEnv(r.spec.Env, r.spec.Compiled.Settings.Environment.Env), commandEnv(nil, step.Env)...),
	})
	err = errors.Join(err, log.close())
	code, problem := end.code, ""
	switch {
	case err != nil:
		code, problem = -1, err.Error()
	case end.stopped && errors.Is(context.Cause(ctx), errTimeout):
		code, problem = -1, "the prepare steps took longer than "+r.spec.Compiled.Settings.Prepare.Timeout.String()
	case end.stopped:
		return endCause(ctx)
	case code == 0:
		return r.append(ctx, Event{Name: "setup.command.completed", Properties: map[string]any{
			"command": text, "index": index, "exit_code": 0, "duration_ms": millis(end.duration),
		}})
	default:
		problem = fmt.Sprintf("exit code %d", code)
	}
	message := withTail(fmt.Sprintf("Setup command failed: %s (%s)", text, problem), stderr.text())
	err = r.append(ctx, Event{Name: "setup.failed", Properties: map[string]any{
		"command": text, "index": index, "exit_code": code, "stderr": stderr.text(),
	}})
	return errors.Join(&bootError{wire.FailedBootstrapFailed, errors.New(message)}, err)
}

// shellWord quotes a word only where a reader would need it.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return shellQuote(word)
}
