package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
)

// LogOptions say what Logs prints, and where.
type LogOptions struct {
	Stage  string // a stage id; empty: all stages in their order
	Follow bool   // go on until the run has ended
	Out    io.Writer
	Screen bool // Out is a terminal: nothing that acts on it is let through
}

// follower remembers how much of each stage's output has been printed.
type follower struct {
	client  *fabroapi.Client
	run     string
	options LogOptions
	offsets map[string]int64
	last    string
	screen  *screen // nil: bytes as they are
}

// Logs prints the output of a run's command stages, each under its stage id.
func Logs(ctx context.Context, client *fabroapi.Client, run string, o LogOptions) error {
	f := &follower{client: client, run: run, options: o, offsets: map[string]int64{}}
	if o.Screen {
		f.screen = &screen{w: o.Out}
		f.options.Out = f.screen
	}
	return errors.Join(f.logs(ctx), f.flush())
}

// flush ends the line of a terminal that has no end yet.
func (f *follower) flush() error {
	if f.screen == nil {
		return nil
	}
	return f.screen.Flush()
}

func (f *follower) logs(ctx context.Context) error {
	o := f.options
	if o.Stage != "" {
		if err := f.check(ctx); err != nil {
			return err
		}
	}
	if err := f.print(ctx); err != nil || !o.Follow {
		return err
	}
	// Each event of the run may mean that some stage has written more; the stream
	// ends with the run.
	if err := f.client.Attach(ctx, f.run, 0, func(wire.EventEnvelope) error { return f.print(ctx) }); err != nil {
		return err
	}
	return f.print(ctx)
}

// writers are the handlers whose stages write something.
var writers = []string{"command", "agent", "prompt"}

// check refuses a stage that the run does not have.
func (f *follower) check(ctx context.Context) error {
	stages, err := f.client.Stages(ctx, f.run)
	if err != nil {
		return err
	}
	for _, s := range stages {
		if s.ID == f.options.Stage {
			return nil
		}
	}
	return fmt.Errorf("run %s has no stage %q yet; `fabro run show %s` lists them", f.run, f.options.Stage, f.run)
}

func (f *follower) print(ctx context.Context) error {
	stages, err := f.client.Stages(ctx, f.run)
	if err != nil {
		return err
	}
	for _, s := range stages {
		if f.options.Stage != "" && s.ID != f.options.Stage || !slices.Contains(writers, s.Handler) {
			continue
		}
		if err := f.stage(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// stage prints what the stage has written since the last time.
func (f *follower) stage(ctx context.Context, id string) error {
	for {
		part, err := f.client.StageLog(ctx, f.run, id, f.offsets[id], 0)
		if err != nil {
			return err
		}
		if len(part.Bytes) == 0 {
			return nil
		}
		if f.last != id && f.options.Stage == "" {
			if err := f.flush(); err != nil {
				return err
			}
			fmt.Fprintf(f.options.Out, "== %s\n", Plain(id))
			f.last = id
		}
		if _, err := f.options.Out.Write(part.Bytes); err != nil {
			return err
		}
		f.offsets[id] = part.NextOffset
		if part.EOF {
			return nil
		}
	}
}
