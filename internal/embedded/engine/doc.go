// Package engine executes one compiled workflow.
//
// It is the part of the embedded server that does the work, and nothing else: it knows no database and no HTTP. What it
// sees of the world are three things it is handed: a [Journal], to which it appends what happened, a [Desk], at which a
// person answers questions, and a [Clock]. Everything shown about a run is derived from the journal's events, so the
// order in which they are appended is the contract of this package.
//
// A run passes through these files:
//
//	run.go      start, prepare steps, the walk, the terminal event, the end of the processes
//	walk.go     from node to node, recording each (record.go); enter.go, breaker.go and gates.go hold its rules
//	route.go    which edge is taken
//	stage.go    one node under its retry policy, timeout and watchdog
//	handlers.go what a node of each type does; command.go, agent.go, human.go, parallel.go, manager.go the larger ones
//	process.go  a process of ours: own group, output bounded in memory and on disk, an end that leaves nothing behind
//	state.go    what a checkpoint holds, kept as changes and rendered whole on reading (fold.go)
//
// The semantics are Fabro's, its traps included: a diamond does not see its predecessor's outcome, a failed node follows
// its unconditional edge, a non-zero exit code is never retried. What is different on purpose:
//
//   - Waits and back-offs end at once on cancel; Fabro's server kills its worker for that.
//   - A stage cut off by the daemon's own stop gets no end, and a resumed run executes it again.
//   - Child workflows append no checkpoints: a run resumed from one would go on in the wrong graph.
//   - Where an agent command, bash or the start node is missing the run fails, instead of passing over the stage.
//   - A pause also holds the run in front of its end, because a paused run cannot succeed.
//   - A run that ended because its last node failed executes that node again when it is resumed.
//   - The output of a stage is kept up to [DefaultMaxOutput] bytes; what a command leaves running ends with the run.
//   - An environment that is not this machine is this machine all the same, with a notice.
//
// The package may import fabroapi/wire and internal/workflow.
package engine
