package tools

import (
	"math"

	"fabro-mcp/tools/args"
)

// Limits of fabro_run_gather, in seconds.
const (
	maxGatherTimeout     = 600
	defaultGatherTimeout = 300
	minPoll              = 5
	defaultPoll          = 15
	maxGather            = 50 // runs
)

// Values of until.
const (
	untilTerminal  = "terminal"
	untilAttention = "attention"
)

// gatherParams are the arguments of fabro_run_gather.
type gatherParams struct {
	RunIDs  args.Opt[[]string]
	Timeout args.Opt[int64]
	Poll    args.Opt[int64]
	Until   string
}

func (p *gatherParams) fields() args.Fields {
	return args.Fields{
		{Name: "run_ids", Required: true, Type: args.List(&p.RunIDs, 1, maxGather).Trimmed(),
			Doc: "The runs: ids, beginnings of ids, or workflow names (then the newest run of each)."},
		{Name: "timeout_seconds", Type: args.Count(&p.Timeout, 0, maxGatherTimeout).Default(defaultGatherTimeout),
			Doc: "How long to wait; 0 looks once. The time a person takes to answer a question does not count."},
		{Name: "poll_interval_seconds", Type: args.Count(&p.Poll, minPoll, math.MaxUint32).Default(defaultPoll),
			Doc: "How often to look where the server's event stream cannot be followed."},
		{Name: "until", Type: args.Text(&p.Until).OneOf(untilTerminal, untilAttention).Default(untilTerminal),
			Doc: "terminal: wait until every run has ended. attention: return as soon as every unfinished run waits for a person."},
	}
}

func (p *gatherParams) check() error { return nil }
