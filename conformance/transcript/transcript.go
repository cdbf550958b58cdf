// Package transcript is the grammar of conformance transcripts: what a file
// says, as data. A transcript is a txtar archive whose comment holds a header
// and a script; docs/transcripts.md is the description for authors.
//
//	title: an id comes back with its type
//	requirement: jsonrpc.id.type-preserved
//	revisions: ..2025-11-25
//
//	open
//	call "1" ping
//	call 1 ping
//	expect result "1" {}
//	expect result 1 {}
//
// Parse reads a file; the runner package plays it. This package starts no
// process and reads no clock.
package transcript

import (
	"fmt"
	"time"
)

// Transcript is one parsed file.
type Transcript struct {
	Path         string // as given to Parse; used in messages and as the name
	Title        string
	Requirements []string // requirement ids the file covers, in order
	Revisions    []string // the revisions it is played at, oldest first
	Needs        []Need
	Timeout      time.Duration // for one wait; 0: the runner's
	Tags         []string      // free words for --filter
	Steps        []Step
	Files        []File // the archive's further files

	source []byte
}

// Source returns the bytes the transcript was parsed from.
func (t *Transcript) Source() []byte { return t.source }

// File is one further file of the archive; it is unpacked into ${tmp}.
type File struct {
	Name string
	Data []byte
}

// Need is something the server must offer for the transcript to mean anything.
type Need struct {
	Kind NeedKind
	Name string
}

func (n Need) String() string { return string(n.Kind) + " " + n.Name }

// NeedKind says what kind of thing is needed, and by that what its absence
// means: a capability or extension that is not offered makes the transcript
// "not covered", a missing fixture makes it "untestable".
type NeedKind string

// What a transcript can need.
const (
	NeedCapability NeedKind = "capability" // dotted path in the server's capabilities
	NeedExtension  NeedKind = "extension"  // key under capabilities.extensions
	NeedTool       NeedKind = "tool"       // a listed tool
	NeedPrompt     NeedKind = "prompt"     // a listed prompt
	NeedResource   NeedKind = "resource"   // a listed resource's URI
	NeedTemplate   NeedKind = "template"   // a listed resource template
	NeedSetting    NeedKind = "setting"    // a value given with --set NAME=VALUE
	NeedPlatform   NeedKind = "platform"   // unix, windows or a GOOS
	NeedRevision   NeedKind = "revision"   // a further revision the server speaks
)

var needKinds = []NeedKind{NeedCapability, NeedExtension, NeedTool, NeedPrompt, NeedResource, NeedTemplate, NeedSetting, NeedPlatform, NeedRevision}

// Fixture reports whether the absence of what is needed is a missing fixture
// (untestable) and not a feature the server does not offer (not covered).
func (n Need) Fixture() bool {
	return n.Kind != NeedCapability && n.Kind != NeedExtension && n.Kind != NeedPlatform && n.Kind != NeedRevision
}

// Pos is a place in a transcript file; lines and columns count from 1, columns
// in bytes.
type Pos struct{ Line, Column int }

func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Error is a mistake in a transcript file.
type Error struct {
	Path    string
	Pos     Pos
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%s: %s", e.Path, e.Pos, e.Message) }

// Step is one step of a script.
type Step struct {
	Pos     Pos
	Text    string   // the first line as written, for messages
	Process string   // "main" unless the step begins with @NAME
	Rules   []string // requirement ids of a [ID] prefix: what a failure here breaks
	Op      Op
}

// Op is what a step does: one of the types below.
type Op interface{ op() }

// Open starts a session of the revision that is being played: the initialize
// handshake before 2026-07-28, nothing on the wire after it. Capabilities are
// the client's, for the session or for each following request; nil: {}.
type Open struct{ Capabilities *Template }

// Call sends a well-formed request; in a modern revision _meta is filled in,
// keys the transcript gives win.
type Call struct {
	ID     *Template
	Method *Template
	Params *Template // nil: no params (in a modern revision: only _meta)
}

// Notify sends a notification, exactly as written.
type Notify struct {
	Method *Template
	Params *Template
}

// Send writes one line: the JSON as written, on one line.
type Send struct{ Payload *Template }

// Raw writes bytes; Newline adds the line's end. Chunks are written apart, so
// that a reader sees a split message.
type Raw struct {
	Chunks  [][]Bytes
	Every   int // > 0: cut everything into pieces of so many bytes
	Newline bool
}

// Bytes is one item of a raw payload, written Count times.
type Bytes struct {
	Text  *Template // a quoted string, references allowed
	Data  []byte    // hex:
	File  string    // file:NAME
	Count int
}

// Expect waits until a frame arrived that was not yet taken and fits.
type Expect struct {
	Target Target
	Maybe  bool // its absence is no failure
	Should bool // its absence is a warning
}

// Never demands that no frame fits Target. With Until it is judged when that
// witness arrived, else at the end of the transcript.
type Never struct {
	Target Target
	Until  *Target // nil: until the end
	Should bool
}

// TargetKind says which kind of frame a Target is about.
type TargetKind string

// The kinds of frames.
const (
	TargetResult       TargetKind = "result"
	TargetError        TargetKind = "error"
	TargetReply        TargetKind = "reply" // result or error
	TargetNotification TargetKind = "notification"
	TargetRequest      TargetKind = "request"
	TargetFrame        TargetKind = "frame"   // anything, matched whole
	TargetWitness      TargetKind = "witness" // a cheap request of the harness and its reply
)

// Target describes a frame of the server.
type Target struct {
	Kind    TargetKind
	ID      *Template // of a reply; nil with Unreadable
	Exact   bool      // the id's bytes count, also within a string
	Missing bool      // error unreadable: id null or absent
	Codes   []int64   // of an error; nil: any
	Method  string    // of a notification or request
	Pattern *Pattern  // result, error object, params or the whole frame; nil: anything
	As      string    // of a request: the name an answer refers to
}

// Answer replies to a request of the server that was expected "as" a name.
type Answer struct {
	Name   string
	Result *Template // or
	Error  *Template // the whole error object
}

// Ignore says that nobody waits for the reply to a call: without it, each call
// whose reply no step takes gets an expectation at the end.
type Ignore struct{ ID *Template }

// Start starts a process: the command under test, with further arguments.
type Start struct{ Args []*Template }

// Finally runs the program under test once more when the transcript is over,
// with these arguments instead of the command's own.
type Finally struct{ Args []*Template }

// Env sets, unsets or (Clear) empties the environment of processes started
// later. After Clear only what Env sets is there, and PATH.
type Env struct {
	Clear bool
	Name  string
	Value *Template // nil: unset
}

// Cwd sets the working directory of processes started later.
type Cwd struct{ Dir *Template }

// Close closes the server's stdin (its end of input), or our end of its stdout.
type Close struct{ Stream string } // "stdin" or "stdout"

// Reading stops or resumes reading the server's stdout.
type Reading struct{ On bool }

// Signal sends a signal: TERM, INT, HUP, KILL, STOP, CONT.
type Signal struct{ Name string }

// ExpectExit waits for the process to end. Codes nil: any code. Signals are
// named "signal TERM".
type ExpectExit struct {
	Codes   []int
	Signals []string
	Within  time.Duration // 0: the timeout
	Should  bool
}

// ExpectStderr waits until standard error holds a match, or with Not demands
// that it does not when the step is reached.
type ExpectStderr struct {
	Regexp string
	Not    bool
	Should bool
}

// Pause lets time pass, at most 10 seconds, where time is the subject.
type Pause struct{ For time.Duration }

// SetTimeout changes the bound of the waits that follow.
type SetTimeout struct{ To time.Duration }

// Ordered holds expectations whose frames must arrive in the order written.
type Ordered struct{ Steps []Step }

// Unordered holds expectations that share one timeout and may be met in any
// order.
type Unordered struct{ Steps []Step }

// Repeat plays steps with ${Var} counting from From to To.
type Repeat struct {
	Var      string
	From, To int
	Steps    []Step
}

// When plays Then at the named revisions and Else at the others.
type When struct {
	Revisions  []string
	Then, Else []Step
}

func (*Open) op()         {}
func (*Call) op()         {}
func (*Notify) op()       {}
func (*Send) op()         {}
func (*Raw) op()          {}
func (*Expect) op()       {}
func (*Never) op()        {}
func (*Answer) op()       {}
func (*Ignore) op()       {}
func (*Start) op()        {}
func (*Finally) op()      {}
func (*Env) op()          {}
func (*Cwd) op()          {}
func (*Close) op()        {}
func (*Reading) op()      {}
func (*Signal) op()       {}
func (*ExpectExit) op()   {}
func (*ExpectStderr) op() {}
func (*Pause) op()        {}
func (*SetTimeout) op()   {}
func (*Ordered) op()      {}
func (*Unordered) op()    {}
func (*Repeat) op()       {}
func (*When) op()         {}
