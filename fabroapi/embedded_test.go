package fabroapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded"
)

// serveHelper makes the test binary the daemon of a storage directory.
const serveHelper = "FABRO_TEST_SERVE"

func serveEmbedded(storage string) int {
	cfg, err := embedded.LoadConfig(os.Getenv("FABRO_HOME"), storage, "test")
	if err == nil {
		cfg.KeepPath = true
		err = embedded.Serve(context.Background(), cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const gated = `
-- work/gated.fabro --
digraph Gated {
  start [shape=Mdiamond]
  build [shape=parallelogram, script="echo built"]
  ask   [shape=hexagon, label="Go on?"]
  done  [shape=parallelogram, script="echo done"]
  exit  [shape=Msquare]
  start -> build -> ask
  ask -> done [label="[Y] Yes"]
  ask -> build [label="[N] No"]
  done -> exit
}
`

// home is a fresh machine: a Fabro home with nothing in it, a directory with a
// workflow, and a connector that starts the embedded server by itself.
type home struct {
	dir       string
	cfg       embedded.Config
	connector func() *fabroapi.Connector
}

func newHome(t *testing.T) home {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the workflow of this test runs a POSIX shell")
	}
	dir := tree(t, gated)
	short, err := os.MkdirTemp("", "fa") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	for name, value := range map[string]string{"HOME": short, "FABRO_HOME": short, "FABRO_SERVER": "", "FABRO_CONFIG": "", "FABRO_STORAGE_DIR": "", "FABRO_RUN_ID": "", serveHelper: filepath.Join(short, "s")} {
		t.Setenv(name, value)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := home{dir: dir, cfg: embedded.Config{StorageDir: filepath.Join(short, "s"), FabroHome: short, Version: "test", StartTimeout: time.Minute}}
	h.connector = func() *fabroapi.Connector {
		c := &fabroapi.Connector{StorageDir: h.cfg.StorageDir, StartEmbedded: func(ctx context.Context, storage string) (string, string, error) {
			cfg := h.cfg
			cfg.StorageDir = storage
			return embedded.Ensure(ctx, cfg, []string{executable, "-test.run=^$"})
		}}
		t.Cleanup(c.Close)
		return c
	}
	t.Cleanup(func() {
		if err := embedded.Stop(context.Background(), h.cfg); err != nil && !errors.Is(err, embedded.ErrNotRunning) {
			t.Error(err)
		}
	})
	return h
}

func (h home) connect(t *testing.T) *fabroapi.Client {
	t.Helper()
	client, err := h.connector().Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// start creates and starts a run of the workflow.
func (h home) start(t *testing.T, client *fabroapi.Client) string {
	t.Helper()
	manifest, err := fabroapi.BuildManifest(t.Context(), fabroapi.Environment{}, fabroapi.ManifestSpec{Workflow: "gated.fabro", Cwd: filepath.Join(h.dir, "work"), Goal: "Try it", Title: "Tried"})
	if err != nil {
		t.Fatal(err)
	}
	validated, err := client.Validate(t.Context(), manifest)
	if err != nil || !validated.OK {
		t.Fatal(validated, err)
	}
	run, err := client.CreateRun(t.Context(), manifest)
	if err != nil || run.Title != "Tried" || run.Lifecycle.Status.Kind != wire.StatusSubmitted {
		t.Fatal(run, err)
	}
	if _, err := client.StartRun(t.Context(), run.ID, false); err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// TestEmbeddedWholeRun: from nothing to a finished run with one client, and what
// another client sees of it.
func TestEmbeddedWholeRun(t *testing.T) {
	h := newHome(t)
	client, other := h.connect(t), h.connect(t)
	id := h.start(t, client)
	if client.Target() != other.Target() {
		t.Errorf("two servers: %s, %s", client.Target(), other.Target())
	}
	var events []wire.EventEnvelope
	err := other.Attach(t.Context(), id, 1, func(event wire.EventEnvelope) error {
		events = append(events, event)
		if event.Event != wire.EventInterviewStarted {
			return nil
		}
		questions, err := other.Questions(t.Context(), id)
		if err != nil || len(questions) != 1 {
			return fmt.Errorf("questions %v: %w", questions, err)
		}
		if err := other.Answer(t.Context(), id, questions[0].ID, wire.AnswerOfText("no")); err == nil {
			t.Error("a text was taken for a choice")
		}
		return client.Answer(t.Context(), id, questions[0].ID, wire.AnswerOfOption("Y"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		if event.Seq != int64(i)+1 {
			t.Fatalf("event %d has seq %d", i, event.Seq)
		}
	}
	if last := events[len(events)-1].Event; last != wire.EventRunCompleted {
		t.Errorf("the last event is %s", last)
	}
	run, err := other.ResolveRun(t.Context(), "gated")
	if err != nil || run.ID != id || run.Lifecycle.Status.String() != "succeeded(completed)" {
		t.Errorf("%v, %v", run, err)
	}
	stages, err := other.Stages(t.Context(), id)
	if err != nil || len(stages) != 5 {
		t.Errorf("%d stages, %v", len(stages), err)
	}
	log, err := other.StageLog(t.Context(), id, "build@1", 0, 0)
	if err != nil || string(log.Bytes) != "built\n" || !log.EOF {
		t.Errorf("log %v, %v", log, err)
	}
	var refused *fabroapi.APIError
	if _, err := other.StageArtifact(t.Context(), id, "build@1", "f", 0); !errors.As(err, &refused) || refused.Status != http.StatusNotImplemented ||
		!strings.Contains(err.Error(), "does not have artifacts: a local run leaves its files in its working directory") {
		t.Errorf("an artifact: %v", err)
	}
	if source, err := other.GraphSource(t.Context(), id); err != nil || len(source) < 100 {
		t.Errorf("source %q, %v", source, err)
	}
	if raw, err := other.RunStateRaw(t.Context(), id); err != nil || !json.Valid(raw) {
		t.Errorf("state: %v", err)
	}
	// What it cannot do, it says.
	var api *fabroapi.APIError
	if err := other.SteerRun(t.Context(), id, "faster", false); !errors.As(err, &api) || api.Status != 409 || api.Code == "" {
		t.Errorf("steer: %v", err)
	}
	if _, err := other.PairStart(t.Context(), id, "build@1"); !errors.As(err, &api) || api.Status != 409 || api.Code == "" {
		t.Errorf("pair: %v", err)
	}
	if status, err := other.PairStatus(t.Context(), id); err != nil || status.CurrentPair != nil {
		t.Errorf("pair: %v, %v", status, err)
	}
	for range 2 {
		if run, err := other.ArchiveRun(t.Context(), id); err != nil || !run.Lifecycle.Archived {
			t.Errorf("archive: %v", err)
		}
	}
	if list, err := other.ListRuns(t.Context(), fabroapi.ListRunsOptions{}); err != nil || len(list.Data) != 0 {
		t.Errorf("list: %v, %v", list, err)
	}
	if list, err := other.ListRuns(t.Context(), fabroapi.ListRunsOptions{IncludeArchived: true}); err != nil || len(list.Data) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if _, err := other.DeleteRun(t.Context(), id, false); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := other.GetRun(t.Context(), id); !errors.Is(err, fabroapi.ErrNotFound) {
		t.Errorf("after delete: %v", err)
	}
}

// TestEmbeddedKilled: kill -9 in the middle of a run. Who is attached stays
// attached: the server is started again and tells how the run ended.
func TestEmbeddedKilled(t *testing.T) {
	h := newHome(t)
	client := h.connect(t)
	id := h.start(t, client)
	var names []string
	err := client.Attach(t.Context(), id, 1, func(event wire.EventEnvelope) error {
		names = append(names, event.Event)
		if event.Event != wire.EventRunBlocked {
			return nil
		}
		record, _, err := embedded.Status(t.Context(), h.cfg)
		if err != nil || record == nil {
			return fmt.Errorf("no server to kill: %w", err)
		}
		process, err := os.FindProcess(record.PID)
		if err != nil {
			return err
		}
		return process.Kill()
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, wire.EventInterviewStarted) || names[len(names)-1] != wire.EventRunFailed {
		t.Errorf("events %q", names)
	}
	run, err := client.GetRun(t.Context(), id)
	if err != nil || run.Lifecycle.Status.String() != "failed(terminated)" {
		t.Errorf("%v, %v", run.Lifecycle.Status, err)
	}
}
