package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"fabro-mcp/conformance/check"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

// playFlags are shared by run and check.
type playFlags struct {
	Revision []string          `short:"r" placeholder:"REV" help:"Only these revisions: 2025-11-25, 2025-06-18.., or several. Default: all."`
	Filter   string            `short:"f" placeholder:"REGEXP" help:"Only what matches, in name@revision, title, tags or requirement ids."`
	Jobs     int               `short:"j" placeholder:"N" help:"Transcripts at once. Default: one for each processor."`
	Timeout  wait              `short:"t" default:"10s" placeholder:"TIME" help:"Bound of every wait, also for the server to start (${default})."`
	Grace    wait              `default:"1s" placeholder:"TIME" help:"How long the server may take to leave after a transcript (${default})."`
	Set      map[string]string `placeholder:"NAME=VALUE" help:"A value that transcripts ask for with 'needs: setting NAME'."`
	Env      []string          `sep:"none" placeholder:"NAME=VALUE" help:"A variable for the server; may be repeated."`
	Baseline string            `type:"existingfile" placeholder:"FILE" help:"Failures that are expected (format of the official suite); stale entries fail."`
	Format   []string          `default:"text" placeholder:"FORMAT[=FILE]" help:"text, json, junit, tap or sarif; to standard output or a file; may be repeated."`
	Strict   bool              `help:"Warnings fail too."`
	Verbose  bool              `short:"v" help:"Show every case and the whole exchange."`
	NoColor  bool              `help:"No colours, also on a terminal (so does NO_COLOR)."`

	expected *report.Baseline // read from Baseline; nil without
}

// wait is a time that something is waited for.
type wait time.Duration

// UnmarshalText reads 10s or 2m.
func (w *wait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no time to wait; write 10s or 2m", text)
	}
	*w = wait(d)
	return nil
}

type runCmd struct {
	Paths  []string `arg:"" optional:"" name:"suite|dir|file" help:"Built-in suites (see list), directories (the *.txtar below), files. Default: every built-in suite."`
	Update bool     `help:"Rewrite expected values in the files to what came. Review the diff."`
	playFlags
}

// Help is shown by run --help.
func (c *runCmd) Help() string {
	return "The command under test stands after --:\n\n  mcp-conformance run --format text --format junit=out.xml 2025-11-25 -- ./server --flag"
}

// Run plays transcripts.
func (c *runCmd) Run(w *world) error {
	cfg, err := c.config(w) // first: a command that is not after "--" would be taken for a transcript
	if err != nil {
		return err
	}
	ts, fromDisk, err := find(c.Paths)
	if err != nil {
		return usageError{err}
	}
	cfg.Transcripts = ts
	if len(c.Paths) == 0 {
		cfg.Inspect = check.Inspect(compileSchema) // everything that is built in
	}
	if c.Update {
		if !fromDisk {
			return usageError{errors.New("--update rewrites files: name directories or files, not built-in suites")}
		}
		cfg.Update = &runner.Updates{}
	}
	rep, err := c.play(w, cfg)
	if err != nil {
		return err
	}
	if cfg.Update != nil {
		said, err := cfg.Update.Write()
		for _, line := range said {
			fmt.Fprintln(w.stderr, line)
		}
		if err != nil {
			return err
		}
	}
	return c.finish(w, rep)
}

// aboutFabro reports whether a transcript belongs to the one suite that is about a
// certain program: it is played when it is asked for.
func aboutFabro(t *transcript.Transcript) bool {
	return strings.HasPrefix(runner.Name(t.Path), "fabro/")
}

// find loads paths on disk and built-in suites; without any, every suite that is about
// MCP servers in general.
func find(paths []string) (ts []*transcript.Transcript, fromDisk bool, err error) {
	if len(paths) == 0 {
		ts, err = runner.LoadFS(transcripts.FS(), ".")
		return slices.DeleteFunc(ts, aboutFabro), false, err
	}
	fromDisk = true
	for _, p := range paths {
		var some []*transcript.Transcript
		if _, statErr := os.Stat(p); statErr == nil {
			some, err = runner.Load(p)
		} else if _, fsErr := fs.Stat(transcripts.FS(), p); fsErr == nil && fs.ValidPath(p) {
			fromDisk = false
			some, err = runner.LoadFS(transcripts.FS(), p)
		} else {
			err = fmt.Errorf("%s is neither a file, a directory nor a built-in suite; the suites are %s", p, strings.Join(transcripts.Suites(), ", "))
		}
		if err != nil {
			return nil, false, err
		}
		ts = append(ts, some...)
	}
	return ts, fromDisk, nil
}

// config turns flags into a runner's configuration.
func (c *playFlags) config(w *world) (runner.Config, error) {
	cfg := runner.Config{Command: w.command, Jobs: c.Jobs, Timeout: time.Duration(c.Timeout), ExitGrace: time.Duration(c.Grace), Settings: c.Set, Verbose: c.Verbose}
	if len(w.command) == 0 {
		return cfg, usageError{errors.New(`no command to test: write it after "--", such as: mcp-conformance check -- ./my-server`)}
	}
	if c.Jobs < 0 {
		return cfg, usageError{fmt.Errorf("--jobs %d: at least one transcript is played at once", c.Jobs)}
	}
	if len(c.Revision) > 0 {
		revs, err := transcript.ParseRevisions(strings.Join(c.Revision, ","))
		if err != nil {
			return cfg, usageError{err}
		}
		cfg.Revisions = revs
	}
	if c.Filter != "" {
		re, err := regexp.Compile(c.Filter)
		if err != nil {
			return cfg, usageError{fmt.Errorf("--filter: %w", err)}
		}
		cfg.Filter = re
	}
	if len(c.Env) > 0 {
		cfg.Env = append(os.Environ(), c.Env...)
	}
	return cfg, c.prepare()
}

// prepare reads and opens what is needed after the run, so that a mistake is told before it.
func (c *playFlags) prepare() error {
	for _, f := range c.Format {
		name, file, isFile := strings.Cut(f, "=")
		if report.Formats[name] == nil {
			return usageError{fmt.Errorf("unknown --format %q; known: text, json, junit, tap, sarif", name)}
		}
		if !isFile {
			continue
		}
		out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return usageError{fmt.Errorf("--format %s: %w", f, err)}
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	if c.Baseline == "" {
		return nil
	}
	data, err := os.ReadFile(c.Baseline)
	if err != nil {
		return usageError{err}
	}
	if c.expected, err = report.ParseBaseline(data); err != nil {
		return usageError{fmt.Errorf("%s: %w", c.Baseline, err)}
	}
	return nil
}

// play runs, with progress on a terminal.
func (c *playFlags) play(w *world, cfg runner.Config) (*report.Report, error) {
	cfg.Progress = foretell(w.stderr, cfg.Jobs)
	if onTerminal(w.stderr) {
		foretell, line := cfg.Progress, progressLine(w.stderr)
		cfg.Progress = func(p runner.Progress) { foretell(p); line(p) }
		defer fmt.Fprint(w.stderr, "\r\x1b[K")
	}
	rep, err := runner.Run(w.ctx, cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return rep, nil
}

// longStart is how long the starts of the server may take together before a person is told.
const longStart = 2 * time.Minute

// foretell says before the first case that it will take long, and why.
func foretell(w io.Writer, jobs int) func(runner.Progress) {
	return func(p runner.Progress) {
		if p.Expected >= longStart {
			fmt.Fprintf(w, "mcp-conformance: the server takes %v to start, and %d cases start it: about %v; --jobs %d would halve that\n",
				p.Start.Round(100*time.Millisecond), p.Starting, p.Expected.Round(time.Minute), 2*cmp.Or(jobs, runtime.NumCPU()))
		}
	}
}

// progressLine draws one line, over and over.
func progressLine(w io.Writer) func(runner.Progress) {
	failed := 0
	return func(p runner.Progress) {
		name := ""
		if p.Last != nil {
			name = p.Last.ID()
			if p.Last.Outcome == report.Fail {
				failed++
			}
		}
		if len(name) > 50 {
			name = name[:50]
		}
		fmt.Fprintf(w, "\r\x1b[K%d/%d", p.Done, p.Total)
		if failed > 0 {
			fmt.Fprintf(w, ", %d failed", failed)
		}
		fmt.Fprintf(w, "  %s", name)
	}
}

// finish applies the baseline, writes every format and turns the verdict into
// an exit code.
func (c *playFlags) finish(w *world, rep *report.Report) error {
	if c.expected != nil {
		c.expected.Apply(rep)
	}
	var failed error
	toStdout := false
	for _, f := range c.Format {
		name, file, isFile := strings.Cut(f, "=")
		if !isFile {
			toStdout = toStdout || name == "text"
			failed = errors.Join(failed, c.write(w.stdout, name, rep, onTerminal(w.stdout)))
			continue
		}
		failed = errors.Join(failed, writeFile(file, func(out io.Writer) error { return c.write(out, name, rep, false) }))
	}
	if !toStdout { // the verdict is printed whatever happens
		failed = errors.Join(failed, report.WriteVerdict(w.stderr, rep, report.TextOptions{Strict: c.Strict}))
	}
	if failed != nil {
		return failed
	}
	if code := rep.ExitCode(c.Strict); code != report.ExitGood {
		return exit(code)
	}
	return nil
}

func (c *playFlags) write(out io.Writer, name string, rep *report.Report, terminal bool) error {
	if name == "text" {
		color := terminal && !c.NoColor && os.Getenv("NO_COLOR") == ""
		return report.WriteText(out, rep, report.TextOptions{Color: color, Verbose: c.Verbose, Strict: c.Strict})
	}
	return report.Formats[name](out, rep)
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
