package runner

import (
	"fmt"
	"sync"
	"time"

	"fabro-mcp/conformance/process"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/transcript"
)

// deferred is a finally step that the script has come by: what to run, and the
// environment at that place.
type deferred struct {
	step *transcript.Step
	args []string
	env  []string
	dir  string
}

// deferStep notes a finally step. The environment is that of this very place,
// so that a script which stops before it sets a HOME of its own cleans up nothing
// in the HOME of whoever runs it.
func (p *player) deferStep(s *transcript.Step, op *transcript.Finally) error {
	d := deferred{step: s, env: p.env, dir: p.dir}
	for _, a := range op.Args {
		text, err := a.Expand(scope{p, nil})
		if err != nil {
			return err
		}
		d.args = append(d.args, string(text))
	}
	p.finally = append(p.finally, d)
	return nil
}

// runFinally runs the finally steps, the last one first, after every process of
// the transcript has gone. One that fails, or does not end in time, fails the
// transcript: something is left behind.
func (p *player) runFinally() {
	for i := len(p.finally) - 1; i >= 0; i-- {
		d := p.finally[i]
		if err := p.runOnce(d); err != nil {
			p.add(report.Finding{
				Severity: report.Failure, Revision: p.rev, Step: d.step.Pos.String(), StepText: d.step.Text, Message: err.Error(),
			}, nil)
		}
	}
	p.finally = nil
}

func (p *player) runOnce(d deferred) error {
	var (
		mu   sync.Mutex // guards said
		said []byte
	)
	proc, err := process.Start(p.ctx, process.Spec{
		Command: append([]string{p.cfg.Command[0]}, d.args...), Env: d.env, Dir: d.dir,
		OnErr: func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			if len(said) < maxStderr {
				said = append(said, b...)
			}
		},
	})
	if err != nil {
		return err
	}
	proc.CloseStdin()
	bound := time.NewTimer(p.timeout)
	defer bound.Stop()
	select {
	case <-proc.Done():
	case <-bound.C:
		proc.Kill()
		<-proc.Done()
		return fmt.Errorf("the closing command did not end within %v", p.timeout)
	}
	if state := proc.State(); state.Signal != "" || state.Code != 0 {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Errorf("the closing command ended with %s; its last words: %s", state, lastLines(said, 3))
	}
	return nil
}
