package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/runs"
)

// runCmd is for people who want to look at runs without a host.
type runCmd struct {
	List   runListCmd   `cmd:"" help:"List runs, newest first."`
	Show   runShowCmd   `cmd:"" help:"Show one run: its stages and what it asks."`
	Logs   runLogsCmd   `cmd:"" help:"Print what the stages of a run wrote (on a terminal, without colours and other sequences)."`
	Answer runAnswerCmd `cmd:"" help:"Answer the question of a run."`
	Cancel runCancelCmd `cmd:"" help:"Cancel a run."`
}

// runArg names a run.
type runArg struct {
	targetFlags
	Run_ string `arg:"" name:"run" help:"A run id, the beginning of one, or a workflow's name (its newest run)."`
}

// with connects, finds the run and hands both on.
func (a runArg) with(ctx context.Context, g *globals, use func(*fabroapi.Client, *wire.Run) error) error {
	client, err := a.connect(ctx, g)
	if err != nil {
		return err
	}
	run, err := client.ResolveRun(ctx, a.Run_)
	if err != nil {
		return err
	}
	return use(client, run)
}

type runListCmd struct {
	targetFlags
	All   bool  `help:"Archived runs too."`
	Limit limit `default:"20" placeholder:"N" help:"How many at the most, 1 to 100 (default: 20)."`
}

// limit is a number of runs that one page of the API can hold.
type limit int

// Decode implements kong.MapperValue.
func (l *limit) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("%q is no number from 1 to 100", text)
	}
	*l = limit(n)
	return nil
}

func (c *runListCmd) Run(ctx context.Context, g *globals) error {
	client, err := c.connect(ctx, g)
	if err != nil {
		return err
	}
	list, err := client.ListRuns(ctx, fabroapi.ListRunsOptions{Limit: int(c.Limit), IncludeArchived: c.All})
	if err != nil {
		return err
	}
	if g.JSON {
		return g.printJSON(map[string]any{"runs": list.Data})
	}
	return runs.Table(g.stdout, list.Data, time.Now())
}

type runShowCmd struct{ runArg }

func (c *runShowCmd) Run(ctx context.Context, g *globals) error {
	return c.with(ctx, g, func(client *fabroapi.Client, run *wire.Run) error {
		stages, err := client.Stages(ctx, run.ID)
		if err != nil {
			return err
		}
		open, err := client.Questions(ctx, run.ID)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.printJSON(map[string]any{"run": run, "stages": stages, "questions": open})
		}
		settings, _ := client.RunSettings(ctx, run.ID) // a server that keeps them to itself does not say whether this is a dry run
		runs.Show(g.stdout, *run, settings, stages, open)
		return nil
	})
}

type runLogsCmd struct {
	runArg
	Stage  string `placeholder:"STAGE" help:"Only this stage, such as build@1."`
	Follow bool   `short:"f" help:"Go on until the run ends."`
}

func (c *runLogsCmd) Run(ctx context.Context, g *globals) error {
	return c.with(ctx, g, func(client *fabroapi.Client, run *wire.Run) error {
		return runs.Logs(ctx, client, run.ID, runs.LogOptions{Stage: c.Stage, Follow: c.Follow, Out: g.stdout, Screen: isTerminal(g.stdout)})
	})
}

type runAnswerCmd struct {
	runArg
	Answer   string `arg:"" help:"yes or no, the key or label of an option (several with commas between), or a text."`
	Question string `placeholder:"ID" help:"Which question, when the run asks several."`
}

func (c *runAnswerCmd) Run(ctx context.Context, g *globals) error {
	return c.with(ctx, g, func(client *fabroapi.Client, run *wire.Run) error {
		open, err := client.Questions(ctx, run.ID)
		if err != nil {
			return err
		}
		question, err := runs.Pick(open, c.Question)
		if err != nil {
			return err
		}
		answer, err := runs.Answer(question, c.Answer)
		if err != nil {
			return usage{err}
		}
		if err := client.Answer(ctx, run.ID, question.ID, answer); err != nil {
			return err
		}
		if g.JSON {
			return g.printJSON(map[string]any{"run_id": run.ID, "question_id": question.ID, "submitted": true})
		}
		g.say("Answered %q.", runs.Plain(question.Text))
		return nil
	})
}

type runCancelCmd struct{ runArg }

func (c *runCancelCmd) Run(ctx context.Context, g *globals) error {
	return c.with(ctx, g, func(client *fabroapi.Client, run *wire.Run) error {
		after, err := client.CancelRun(ctx, run.ID)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.printJSON(map[string]any{"run": after})
		}
		if after.Lifecycle.Status.Terminal() {
			g.say("%s  %s", after.ID, after.Lifecycle.Status)
		} else {
			g.say("%s  %s, asked to end", after.ID, after.Lifecycle.Status)
		}
		return nil
	})
}
