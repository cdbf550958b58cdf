package ourservers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"fabro-mcp/conformance/built"
	"fabro-mcp/conformance/check"
	"fabro-mcp/conformance/report"
	"fabro-mcp/conformance/runner"
	"fabro-mcp/conformance/transcript"
	"fabro-mcp/conformance/transcripts"
)

// programs is the directory of the built programs.
var programs string

func TestMain(m *testing.M) {
	os.Exit(built.Main(m.Run, &programs, "fabro-mcp/cmd/fabro", "fabro-mcp/cmd/mcp-fixture"))
}

// patience bounds every wait of a transcript that does not say otherwise;
// nothing comes near it when all is well, however busy the machine is.
const patience = 60 * time.Second

// jobs is how many transcripts are played at once: most of the time of most of
// them is spent waiting.
const jobs = 8

// withoutNetwork refuses to fetch what a schema refers to.
type withoutNetwork struct{}

func (withoutNetwork) Load(url string) (any, error) {
	return nil, errors.New("not fetched: " + url)
}

// compile judges a listed schema in its own dialect.
func compile(schema []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(withoutNetwork{})
	const here = "https://schema.invalid/listed.json"
	if err := c.AddResource(here, doc); err != nil {
		return err
	}
	_, err = c.Compile(here)
	return err
}

// play plays the named suites and reports every finding.
func play(t *testing.T, cfg runner.Config, suites []string) *report.Report {
	t.Helper()
	for _, suite := range suites {
		ts, err := runner.LoadFS(transcripts.FS(), suite)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Transcripts = append(cfg.Transcripts, ts...)
	}
	cfg.Jobs, cfg.Timeout, cfg.ExitGrace, cfg.Inspect = jobs, patience, 5*time.Second, check.Inspect(compile)
	rep, err := runner.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Aborted != "" {
		t.Errorf("cut short: %s", rep.Aborted)
	}
	if missing := len(transcript.Revisions) - len(rep.Spoken); missing != 0 {
		t.Errorf("%d of the revisions are not spoken: only %v are", missing, rep.Spoken)
	}
	count := map[report.Outcome]int{}
	for _, c := range rep.Cases {
		count[c.Outcome]++
		for _, f := range c.Findings {
			if f.Severity != report.Note {
				t.Errorf("%s: %s %s: %s\n%s\n%v%s", c.ID(), f.Severity, f.Rule, f.Message, f.StepText, f.Differences, exchange(f.Wire))
			}
		}
	}
	t.Logf("%v in %v", count, rep.Duration.Round(time.Millisecond))
	return rep
}

func exchange(wire []report.Event) string {
	var b strings.Builder
	for _, e := range wire {
		fmt.Fprintf(&b, "\n\t%7.3fs %s%s %s", e.At.Seconds(), e.Process, e.Dir, e.Text)
	}
	return b.String()
}

// TestFabro plays everything against fabro. Its own suite has to pass whole; of the
// others, what asks for the tools, prompts and settings of a fixture server cannot be
// tested, and nothing else.
func TestFabro(t *testing.T) {
	fabro := filepath.Join(programs, "fabro")
	env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	t.Cleanup(func() { // reading resources starts the embedded server
		stop := exec.Command(fabro, "server", "stop")
		stop.Env = env
		if out, err := stop.CombinedOutput(); err != nil {
			t.Errorf("fabro server stop: %v\n%s", err, out)
		}
	})
	rep := play(t, runner.Config{Command: []string{fabro, "mcp", "start"}, Env: env}, transcripts.Suites())
	passed := map[string]int{}
	for _, c := range rep.Cases {
		suite, _, _ := strings.Cut(c.Name, "/")
		if c.Outcome == report.Pass {
			passed[suite]++
		}
		if suite == "fabro" && c.Outcome != report.Pass && len(c.Findings) == 0 {
			t.Errorf("%s: %s, %s", c.ID(), c.Outcome, c.Reason)
		}
	}
	for _, suite := range transcripts.Suites() {
		if passed[suite] == 0 && suite != "tasks" {
			t.Errorf("nothing of %s was played", suite)
		}
	}
	t.Logf("passed: %v", passed)
}

// TestRealHomeIsLeftAlone holds that fabro finds a home directory of the test's own in every
// transcript that it may be played against. Without HOME it asks the system, which knows the
// real one, so a transcript that takes the variable away gives it a FABRO_HOME instead.
func TestRealHomeIsLeftAlone(t *testing.T) {
	all, err := runner.LoadFS(transcripts.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range all {
		if slices.ContainsFunc(tr.Needs, func(n transcript.Need) bool { return n.Fixture() && !strings.HasPrefix(n.Name, "fabro") }) {
			continue // fabro has no such tool, prompt or setting
		}
		gone := false
		for _, s := range tr.Steps {
			switch op := s.Op.(type) {
			case *transcript.Env:
				home := op.Name == "HOME" || op.Name == "FABRO_HOME"
				gone = op.Clear || gone && !(home && op.Value != nil) || op.Name == "HOME" && op.Value == nil
			default:
				if gone {
					t.Errorf("%s: %s starts the server without a home of its own; set HOME or FABRO_HOME to a place in ${tmp}", tr.Path, s.Text)
				}
			}
		}
	}
}

// settings give mcp-fixture every way of running that a transcript asks for.
var settings = map[string]string{
	"state_file": "--state-dir=", "state_ttl": "--state-ttl=2s", "paged": "--page-size=3",
	"no_tasks": "--no-tasks", "minimal": "--minimal", "modern_only": "--modern-only",
}

// TestFixture plays every suite that is not about Fabro against the fixture server, of
// which nothing stays untestable.
func TestFixture(t *testing.T) {
	suites := slices.DeleteFunc(transcripts.Suites(), func(s string) bool { return s == "fabro" })
	env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	rep := play(t, runner.Config{Command: []string{filepath.Join(programs, "mcp-fixture")}, Env: env, Settings: maps.Clone(settings)}, suites)
	for _, c := range rep.Cases {
		if c.Outcome == report.Untestable {
			t.Errorf("%s: %s", c.ID(), c.Reason)
		}
	}
}
