package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// Causes with which the context of a run may be cancelled. Any other cancellation counts as ErrCancelled.
var (
	// ErrCancelled: a person wants the run to end. It ends as failed(cancelled).
	ErrCancelled = errors.New("run cancelled")
	// ErrShutdown: the daemon stops in an orderly way. The run ends as failed(terminated) and can be resumed.
	ErrShutdown = errors.New("server shut down")
)

// An Event is what the engine appends to the journal. Properties marshals to a JSON object. The members of State in the
// properties of stage.completed and checkpoint.completed are in stored form, see [Fold].
type Event struct {
	Name, NodeID, NodeLabel, StageID  string
	ParallelGroupID, ParallelBranchID string
	Actor                             *wire.Actor // nil: the worker of the run
	Properties                        any
}

// A Journal keeps what happened. The engine calls it from several goroutines at once when branches run in parallel.
type Journal interface {
	// Append makes the events durable, in this order and with nothing between them, before it returns. An error ends
	// the run; the engine then tries to append its run.failed, once.
	Append(ctx context.Context, events ...Event) error
	// PutBlob keeps content and returns its SHA-256 in hex.
	PutBlob(ctx context.Context, content []byte) (hash string, err error)
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// A Desk is where people answer the questions of a run.
type Desk interface {
	// Ask waits for the answer to a question that has just been appended as interview.started. When ctx is done it
	// withdraws the question and returns the context's error, unless an answer has been accepted already. Answers are
	// checked against the question before they are accepted.
	Ask(ctx context.Context, q wire.Question, about AskInfo) (Answer, error)
}

// AskInfo says where a question comes from.
type AskInfo struct {
	StageID, NodeID  string
	ParallelBranchID string
	Deadline         time.Time // zero: none
}

// An Answer is what a person said. Done, if set, is called when the answer is on record, or could not be: only then
// may its giver be told that it was taken.
type Answer struct {
	Submit wire.SubmitAnswer
	Actor  *wire.Actor
	Done   func(error)
}

// A Spec is everything needed to execute one run.
type Spec struct {
	RunID    string
	Compiled *workflow.Compiled
	Cwd      string // the manifest's; the settings of the run may name another
	RunDir   string // for logs; made when it does not exist

	DryRun, AutoApprove bool     // also when the settings of the run say so
	AgentCommand        []string // argv that stands in for a language model; empty: agents fail
	Env                 []string // the environment of the daemon, filtered for commands

	Resume  *Checkpoint // nil: from the start
	Control *Control    // nil: never paused

	MaxOutput int64          // bytes kept of one stage's output; 0: DefaultMaxOutput
	Clock     Clock          // nil: the system's
	Random    func() float64 // in [0, 1), for back-off and random selection; nil: a random one
	NewID     func() string  // question ids; nil: ULIDs
}

func (s *Spec) withDefaults() {
	s.DryRun = s.DryRun || s.Compiled.Settings.DryRun()
	s.AutoApprove = s.AutoApprove || s.Compiled.Settings.AutoApprove()
	if s.MaxOutput == 0 {
		s.MaxOutput = DefaultMaxOutput
	}
	if s.Clock == nil {
		s.Clock = systemClock{}
	}
	if s.Random == nil {
		s.Random = rand.Float64
	}
	if s.NewID == nil {
		s.NewID = func() string { return ulid.Make().String() }
	}
	if s.Control == nil {
		s.Control = NewControl()
	}
}

// A Result is how a run ended.
type Result struct {
	Status  wire.RunStatus
	Failure *Failure // nil after success
}

// journalError is a journal that failed. Nothing of the run can go on after it.
type journalError struct{ err error }

func (e journalError) Error() string { return e.err.Error() }
func (e journalError) Unwrap() error { return e.err }

// fatalError ends the run: what Fabro calls an engine error.
type fatalError struct{ failure Failure }

func (e *fatalError) Error() string { return e.failure.Message }

func fatal(message string) error { return &fatalError{*failureFromText(message)} }
