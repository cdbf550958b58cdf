package tools

import (
	"context"

	"fabro-mcp/protocol"
	"fabro-mcp/tools/args"
)

// operation is the arguments of one call together with what they do.
type operation interface {
	// fields is the table of the arguments, bound to the operation.
	fields() args.Fields
	// check holds the rules across fields.
	check() error
	// run does the work. Arguments are complete and valid.
	run(ctx context.Context, r *request) (*reply, error)
}

// mutator is an operation of which only some calls change something.
type mutator interface{ mutates() bool }

// toolSpec is one row of the catalogue.
type toolSpec struct {
	name, title, description string
	see                      []pointer
	toolset                  string
	output                   string // JSON Schema of the structured result
	make                     func() operation

	readOnly    bool // changes nothing, ever
	destructive bool
	idempotent  bool
	waits       bool // spends its time waiting
	task        bool // may run as a task
}

// pointer is a sentence of a description that names another tool; it is left out
// where that tool is not offered.
type pointer struct{ tool, sentence string }

// described is the description that a server gives of a tool.
func (h *host) described(t *toolSpec) string {
	s := t.description
	for _, p := range t.see {
		if h.offers(p.tool) {
			s += " " + p.sentence
		}
	}
	return s
}

// catalogue lists every tool there is.
func catalogue(readOnly bool) []*toolSpec {
	return []*toolSpec{
		{
			name: nameCreate, title: "Create runs", toolset: toolsetRuns,
			description: "Creates one or more workflow runs, on request below a parent run, and starts them unless told otherwise. The workflow is checked first; what is wrong with it is reported with file, line and column.",
			see:         []pointer{{nameGather, "Then wait with fabro_run_gather."}},
			output:      createSchema, make: func() operation { return new(createParams) },
		},
		{
			name: nameSearch, title: "Search runs", toolset: toolsetRuns, readOnly: true, idempotent: true,
			description: "Finds runs by id, parent, workflow, labels, status, archive flag and creation time. Newest created first.",
			output:      searchSchema, make: func() operation { return new(searchParams) },
		},
		{
			name: nameGet, title: "Get a run", toolset: toolsetRuns, readOnly: true, idempotent: true,
			description: "Looks at one run without changing it: its summary, the state of its stages, and its open questions.",
			output:      getSchema, make: func() operation { return new(getParams) },
		},
		{
			name: nameInteract, title: "Steer or answer a run", toolset: toolsetRuns, destructive: true,
			description: "Steers one run: start, approve or deny it, send a message to its agent, interrupt, cancel, archive or unarchive it, set or remove its parent, read or answer its questions. An answer must come from the person.",
			see:         []pointer{{nameGet, "To look at a run use fabro_run_get."}},
			output:      interactSchema, make: func() operation { return new(interactParams) },
		},
		{
			name: nameGather, title: "Wait for runs", toolset: toolsetRuns, readOnly: readOnly, waits: true, task: true, idempotent: readOnly,
			description: gatherDescription(readOnly),
			output:      gatherSchema, make: func() operation { return new(gatherParams) },
		},
		{
			name: namePair, title: "Pair with an agent", toolset: toolsetRuns,
			description: "A live side conversation with the agent of a running stage: status, start, message, transcript, get, end.",
			output:      pairSchema, make: func() operation { return new(pairParams) },
		},
		{
			name: nameEvents, title: "Read a run's events", toolset: toolsetRuns, readOnly: true, idempotent: true,
			description: "Lists, shows or searches the stored events of one run, oldest or newest first.",
			output:      eventsSchema, make: func() operation { return new(eventsParams) },
		},
		{
			name: nameDiagnose, title: "Diagnose a run", toolset: toolsetInsight, readOnly: true, idempotent: true,
			description: "Says in one call why a run failed, or what it waits for: the failed stage, its error, the last lines of its log, and the likely next step.",
			output:      diagnoseSchema, make: func() operation { return new(diagnoseParams) },
		},
		{
			name: nameLogs, title: "Read a stage's log", toolset: toolsetInsight, readOnly: true, idempotent: true,
			description: "Reads what a command stage wrote: the last lines, on from a byte offset, or the lines that contain a text.",
			output:      logsSchema, make: func() operation { return new(logsParams) },
		},
		{
			name: nameWorkflowList, title: "List workflows", toolset: toolsetInsight, readOnly: true, idempotent: true,
			description: "Lists the workflows that can be run by name, of the project and of the user. Needs no Fabro server.",
			output:      workflowListSchema, make: func() operation { return new(workflowListParams) },
		},
		{
			name: nameWorkflowValidate, title: "Check a workflow", toolset: toolsetInsight, readOnly: true, idempotent: true,
			description: "Checks a workflow and reports what is wrong with file, line and column. Runs nothing and needs no Fabro server.",
			see:         []pointer{{nameCreate, "fabro_run_create makes the same checks."}},
			output:      validateSchema, make: func() operation { return new(workflowValidateParams) },
		},
		{
			name: nameAgentAudit, title: "What agents changed", toolset: toolsetInsight, readOnly: true, idempotent: true,
			description: "Lists the calls through this server that changed something, newest first: time, tool, client, arguments without secrets, outcome.",
			output:      auditSchema, make: func() operation { return new(auditParams) },
		},
	}
}

func gatherDescription(readOnly bool) string {
	const waits = "Waits until all given runs have ended, or time is up, and reports where they stand"
	if readOnly {
		return waits + "; says which of them wait for a person, and for what."
	}
	return waits + ". When a run asks a question and the host can show forms, the person is asked and the answer goes to the run; otherwise the result carries the question and the call that answers it."
}

// publish makes the protocol's form of a tool.
func (h *host) publish(t *toolSpec) protocol.Tool {
	yes, no := true, false
	flag := func(v bool) *bool {
		if v {
			return &yes
		}
		return &no
	}
	tool := protocol.Tool{
		Name: t.name, Title: t.title, Description: h.described(t),
		InputSchema:  t.make().fields().Schema(""),
		OutputSchema: []byte(t.output),
		Annotations: &protocol.ToolAnnotations{
			Title: t.title, ReadOnly: flag(t.readOnly), Destructive: flag(t.destructive), Idempotent: flag(t.idempotent), OpenWorld: flag(!t.readOnly),
		},
		ChecksArguments: true,
		Waits:           t.waits,
		Call: func(ctx context.Context, call *protocol.ToolCall) (*protocol.ToolResult, error) {
			return h.call(ctx, t, call)
		},
	}
	if t.task {
		tool.Task = protocol.TaskOptional
	}
	return tool
}
