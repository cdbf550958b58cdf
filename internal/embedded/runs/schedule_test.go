package runs

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"fabro-mcp/fabroapi/wire"
)

// held is a graph whose run goes on when a file named go appears in its directory.
const held = `digraph Held { graph [goal="Wait"] start [shape=Mdiamond] exit [shape=Msquare] hold [shape=parallelogram, script="while [ ! -e go ]; do sleep 0.02; done"] start -> hold -> exit }`

func release(t *testing.T, c Creation) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Manifest.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kind(t *testing.T, m *Manager, id string) string {
	t.Helper()
	run, err := m.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Lifecycle.Status.Kind
}

// No more than the limit executes; the others wait in the order they came, can be cancelled there, and follow as places become free.
func TestLimit(t *testing.T) {
	m := newManager(t, func(c *Config) { c.MaxConcurrent = 2 })
	var ids []string
	var creations []Creation
	for range 5 {
		c := creation(t, held)
		creations = append(creations, c)
		ids = append(ids, begin(t, m, c))
	}
	awaitEvent(t, m, ids[0], "command.started")
	awaitEvent(t, m, ids[1], "command.started")
	for i, id := range ids[2:] {
		run, err := m.Get(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if pos := run.Lifecycle.QueuePosition; run.Lifecycle.Status.Kind != wire.StatusRunnable || pos == nil || *pos != i+1 {
			t.Errorf("run %d is %s at %v", i+2, run.Lifecycle.Status, pos)
		}
	}
	if m.SlotsUsed() != 2 || m.Busy() != 5 {
		t.Errorf("%d places used, %d busy", m.SlotsUsed(), m.Busy())
	}
	run, requested, err := m.Cancel(context.Background(), ids[2], wire.DevUser())
	if err != nil || requested || run.Lifecycle.Status.Reason != wire.FailedCancelled {
		t.Errorf("%+v %t %v", run, requested, err)
	}
	for i := range ids {
		release(t, creations[i])
	}
	for i, id := range ids {
		if i == 2 {
			continue
		}
		awaitEvent(t, m, id, wire.EventRunCompleted)
	}
}

// A run that waits for a person holds no place.
func TestBlockedHoldsNoPlace(t *testing.T) {
	m := newManager(t, func(c *Config) { c.MaxConcurrent = 1 })
	first := begin(t, m, creation(t, gate))
	awaitEvent(t, m, first, "run.blocked")
	second := begin(t, m, creation(t, gate))
	awaitEvent(t, m, second, "run.blocked")
	for _, id := range []string{second, first} {
		qs, err := m.Questions(context.Background(), id)
		if err != nil || len(qs) != 1 {
			t.Fatal(qs, err)
		}
		if err := m.Answer(context.Background(), id, qs[0].ID, wire.AnswerOfOption("Y"), wire.DevUser()); err != nil {
			t.Fatal(err)
		}
		awaitEvent(t, m, id, wire.EventRunCompleted)
	}
}

// A parent that waits for its child does not keep it from starting, nor a grandchild, however few places there are.
func TestChildrenDoNotStarve(t *testing.T) {
	m := newManager(t, func(c *Config) { c.MaxConcurrent = 1 })
	var ids []string
	var creations []Creation
	for i := range 3 {
		c := creation(t, held)
		if i > 0 {
			c.Manifest.ParentID = &ids[i-1]
		}
		creations = append(creations, c)
		ids = append(ids, begin(t, m, c))
		awaitEvent(t, m, ids[i], "command.started")
	}
	// A stranger has to wait for the one place of its level.
	stranger := begin(t, m, creation(t, loop(1), dry))
	if k := kind(t, m, stranger); k != wire.StatusRunnable {
		t.Errorf("the stranger is %s", k)
	}
	for i := 2; i >= 0; i-- {
		release(t, creations[i])
		awaitEvent(t, m, ids[i], wire.EventRunCompleted)
	}
	awaitEvent(t, m, stranger, wire.EventRunCompleted)
}

// A row written by another version of the reducer is derived again from the log, to the same state.
func TestRowsAreDerived(t *testing.T) {
	m := newManager(t)
	ctx := context.Background()
	id := begin(t, m, creation(t, loop(3), dry))
	awaitEvent(t, m, id, wire.EventRunCompleted)
	for m.Busy() > 0 {
		awaitEvent(t, m, id, wire.EventRunCompleted)
	}
	row, err := m.store.Run(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.stateOf(ctx, row)
	if err != nil {
		t.Fatal(err)
	}
	row.Doc = []byte(`{"version":0}`)
	got, err := m.stateOf(ctx, row)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := marshal(want)
	b, _ := marshal(got)
	if string(a) != string(b) {
		t.Errorf("stored  %s\nderived %s", a, b)
	}
}
