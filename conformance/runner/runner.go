// Package runner plays transcripts against a command and judges what comes
// back. It is what `mcp-conformance run` does, as a function, so that `go test`
// can guard a built binary in the same way:
//
//	ts, err := runner.Load("conformance/transcripts/2025-11-25")
//	rep, err := runner.Run(ctx, runner.Config{Command: []string{"bin/fabro", "mcp", "start"}, Transcripts: ts})
//	if rep.ExitCode(false) != 0 { … }
//
// First the server is asked, once a revision, what it speaks and offers; that
// decides which transcripts can be played. Each transcript then gets a process
// of its own. Every wait is bounded and names what it waited for, and nothing
// that was started outlives the run.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/transcript"
)

// Config says what to run against what. Command and Transcripts are required.
type Config struct {
	Command     []string
	Transcripts []*transcript.Transcript
	Revisions   []string          // nil: every revision a transcript names
	Filter      *regexp.Regexp    // on "name@revision title tags requirement-ids"; nil: all
	Jobs        int               // transcripts at once; 0: one for each processor
	Timeout     time.Duration     // bound of one wait; 0: 10 s
	ExitGrace   time.Duration     // how long a server may take to leave after a transcript; 0: 1 s
	Settings    map[string]string // values of --set
	Env         []string          // nil: the harness's own
	Verbose     bool              // keep the whole exchange of every case
	Update      *Updates          // not nil: collect rewritten expectations
	// Inspect judges, in Go, what a server offers at one revision; its cases come
	// first in the report. It may be called for several revisions at once.
	Inspect  func(*Offer, *Session) []*report.Case
	Progress func(Progress) // called from one goroutine at a time; may be nil

	slack    time.Duration // what a process may take longer until its first word
	patience *patience     // shared by all waits of a run
}

// Progress is told after each case and before the first.
type Progress struct {
	Done, Total int
	Last        *report.Case // nil before the first

	// Before the first: how long the server took to start, how many of the cases will
	// start it, and how long that alone will take.
	Start    time.Duration
	Starting int
	Expected time.Duration
}

// Defaults of Config.
const (
	DefaultTimeout   = 10 * time.Second
	DefaultExitGrace = time.Second
)

func (c *Config) fill() error {
	if len(c.Command) == 0 {
		return errors.New("no command to test: write it after --")
	}
	path, err := program(c.Command[0])
	if err != nil {
		return err
	}
	c.Command = append([]string{path}, c.Command[1:]...)
	if c.Jobs <= 0 {
		c.Jobs = runtime.NumCPU()
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.ExitGrace <= 0 {
		c.ExitGrace = DefaultExitGrace
	}
	c.patience = newPatience()
	return nil
}

// program finds the program of a command, or says what is wrong with its name.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	info, statErr := os.Stat(name)
	switch {
	case err == nil:
		return filepath.Abs(path)
	case statErr == nil && info.IsDir():
		return "", fmt.Errorf("the command under test: %s is a directory", name)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("the command under test: %s is not executable; name the interpreter before it, or chmod +x it", name)
	case strings.ContainsAny(name, " \t"):
		return "", fmt.Errorf("the command under test: there is no program %q; write the command without quotes around the whole of it", name)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("the command under test: there is no program %s in PATH", name)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the command under test: there is no file %s", name)
	}
	return "", fmt.Errorf("the command under test: %w", err)
}

// job is one transcript at one revision.
type job struct {
	t   *transcript.Transcript
	rev string
}

// jobs lists what is to be played, in the order of the report.
func (c *Config) jobs() []job {
	var out []job
	for _, t := range c.Transcripts {
		for _, rev := range t.Revisions {
			if c.Revisions != nil && !slices.Contains(c.Revisions, rev) {
				continue
			}
			if c.Filter != nil && !c.Filter.MatchString(filterText(t, rev)) {
				continue
			}
			out = append(out, job{t, rev})
		}
	}
	return out
}

func filterText(t *transcript.Transcript, rev string) string {
	text := Name(t.Path) + "@" + rev + " " + t.Title
	for _, word := range append(slices.Clone(t.Tags), t.Requirements...) {
		text += " " + word
	}
	return text
}

// slackFactor is how much longer than in the probe a start may take.
const slackFactor = 5

var errNothing = errors.New("no transcript matches the paths, --revision and --filter")

// Run plays everything and returns the report. An error means that nothing
// could be played at all (no such command); whatever a server does wrong is in
// the report. A cancelled context ends the run early; the report says so.
func Run(ctx context.Context, cfg Config) (*report.Report, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	rep := &report.Report{Tool: "mcp-conformance", Command: cfg.Command, Started: time.Now()}
	jobs := cfg.jobs()
	if len(jobs) == 0 && cfg.Inspect == nil {
		return nil, errNothing
	}
	offers := probeAll(ctx, &cfg, jobs)
	for _, o := range offers {
		// How long a server takes to start is no matter of the protocol, and under
		// load it takes a multiple of that.
		cfg.slack = max(cfg.slack, slackFactor*o.firstReply)
	}
	for _, rev := range transcript.Revisions {
		if o := offers[rev]; o != nil && o.Spoken {
			rep.Spoken = append(rep.Spoken, rev)
			if rep.Server == "" {
				rep.Server = o.Server
			}
		}
	}
	rep.Cases = make([]*report.Case, len(jobs))
	if len(rep.Spoken) == 0 {
		rep.Aborted = whyNothingIsSpoken(offers)
	}
	play(ctx, &cfg, jobs, offers, rep)
	rep.Cases = append(cfg.inspected(offers), rep.Cases...)
	if len(rep.Cases) == 0 && rep.Aborted == "" {
		return nil, errNothing
	}
	if ctx.Err() != nil && rep.Aborted == "" {
		rep.Aborted = fmt.Sprintf("interrupted: %v", context.Cause(ctx))
	}
	rep.ShortWaits = cfg.patience.shortened()
	rep.Duration = time.Since(rep.Started)
	return rep, nil
}

func (cfg *Config) inspected(offers map[string]*Offer) []*report.Case {
	var out []*report.Case
	for _, rev := range transcript.Revisions {
		o := offers[rev]
		if o == nil {
			continue
		}
		for _, c := range o.inspected {
			if cfg.Filter == nil || cfg.Filter.MatchString(c.ID()+" "+c.Title+" "+strings.Join(c.Requirements, " ")) {
				out = append(out, c)
			}
		}
		// A server that is broken must not look like one that speaks nothing.
		if c := o.garbled; c != nil && !o.Spoken {
			if c.Settle(); c.Outcome == report.Fail {
				out = append(out, c)
			}
		}
	}
	return out
}

// play fills in rep.Cases, cfg.Jobs at a time.
func play(ctx context.Context, cfg *Config, jobs []job, offers map[string]*Offer, rep *report.Report) {
	var (
		mu   sync.Mutex // guards done and the calls of Progress
		done int
		wg   sync.WaitGroup
		next = make(chan int)
	)
	tell := func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Last != nil {
			done++
		}
		p.Done, p.Total = done, len(jobs)
		if cfg.Progress != nil {
			cfg.Progress(p)
		}
	}
	tell(outlook(cfg, jobs, offers))
	for range cfg.Jobs {
		wg.Go(func() {
			for i := range next {
				c := one(ctx, cfg, jobs[i], offers[jobs[i].rev], rep.Aborted)
				rep.Cases[i] = c
				tell(Progress{Last: c})
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
}

// outlook foresees how long starting the server will take.
func outlook(cfg *Config, jobs []job, offers map[string]*Offer) (p Progress) {
	for _, j := range jobs {
		o := offers[j.rev]
		if o.Spoken && !slices.ContainsFunc(j.t.Needs, func(n transcript.Need) bool { return !o.Has(n, cfg.Settings) }) {
			p.Starting++
			p.Start = max(p.Start, o.firstReply)
		}
	}
	p.Expected = p.Start * time.Duration((p.Starting+cfg.Jobs-1)/cfg.Jobs)
	return p
}

// one plays one job, or says why it is not played.
func one(ctx context.Context, cfg *Config, j job, offer *Offer, aborted string) *report.Case {
	c := &report.Case{Name: Name(j.t.Path), Path: j.t.Path, Title: j.t.Title, Revision: j.rev, Requirements: applicable(j.t.Requirements, j.rev)}
	switch {
	case aborted != "" || ctx.Err() != nil:
		c.Outcome, c.Reason = report.NotCovered, "not played: the run was cut short"
		return c
	case !offer.Spoken:
		c.Outcome, c.Reason = report.NotCovered, offer.Why
		return c
	}
	for _, need := range j.t.Needs {
		if offer.Has(need, cfg.Settings) {
			continue
		}
		c.Outcome = report.NotCovered
		c.Reason = "the server does not offer " + need.String()
		if need.Fixture() {
			c.Outcome, c.Reason = report.Untestable, "missing fixture: "+need.String()
		}
		return c
	}
	start := time.Now()
	p := newPlayer(ctx, cfg, j, c)
	p.play()
	c.Duration = time.Since(start)
	return c
}
