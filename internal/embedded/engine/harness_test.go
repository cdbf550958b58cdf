package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/workflow"
)

// A line is one event as the tests compare it: rendered, with decoded properties.
type line struct {
	Event, Node, Label, Stage string
	Group, Branch             string
	Actor                     string // W worker, U user, timeout, watchdog
	Props                     map[string]any
}

// memory is a journal in memory. It keeps events in stored form and renders them as a server would.
type memory struct {
	mu     sync.Mutex
	events []Event
	stored []json.RawMessage
	blobs  map[string][]byte
	fail   func(Event) error // nil: never
	grown  chan struct{}     // closed and replaced with each append
}

func newMemory() *memory {
	return &memory{blobs: map[string][]byte{}, grown: make(chan struct{})}
}

func (m *memory) Append(ctx context.Context, events ...Event) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		if m.fail != nil {
			if err := m.fail(e); err != nil {
				return err
			}
		}
		raw, err := json.Marshal(e.Properties)
		if err != nil {
			return err
		}
		m.events, m.stored = append(m.events, e), append(m.stored, raw)
	}
	close(m.grown)
	m.grown = make(chan struct{})
	return nil
}

func (m *memory) PutBlob(_ context.Context, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[hash] = bytes.Clone(content)
	return hash, nil
}

func (m *memory) Blob(_ context.Context, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.blobs[hash]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return content, nil
}

// await returns when an event of this name is on record for the nth time.
func (m *memory) await(t testing.TB, name string, n int) {
	t.Helper()
	for {
		m.mu.Lock()
		count := 0
		for _, e := range m.events {
			if e.Name == name {
				count++
			}
		}
		grown := m.grown
		m.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-grown:
		case <-t.Context().Done():
			t.Fatalf("%s never came for the %dth time", name, n)
		}
	}
}

// lines renders everything on record.
func (m *memory) lines(t testing.TB) []line {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var fold Fold
	var all []line
	for i, e := range m.events {
		rendered, err := fold.Render(e.Name, m.stored[i])
		if err != nil {
			t.Fatal(err)
		}
		l := line{e.Name, e.NodeID, e.NodeLabel, e.StageID, e.ParallelGroupID, e.ParallelBranchID, "W", map[string]any{}}
		if a := e.Actor; a != nil {
			l.Actor = map[string]string{wire.ActorUser: "U", wire.ActorWorker: "W"}[a.Kind] + a.SystemKind
		}
		if err := json.Unmarshal(rendered, &l.Props); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// checkpoint is what a server would resume from.
func (m *memory) checkpoint(t testing.TB) *Checkpoint {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var fold Fold
	ordinals := map[string]int{}
	for i, e := range m.events {
		if err := fold.Observe(e.Name, m.stored[i]); err != nil {
			t.Fatal(err)
		}
		if e.StageID != "" {
			if node, n, err := wire.ParseStageID(e.StageID); err == nil {
				ordinals[node] = max(ordinals[node], n)
			}
		}
	}
	cp := fold.Checkpoint()
	if cp != nil {
		cp.Ordinals = ordinals
	}
	return cp
}

// only returns the lines with one of the names.
func only(all []line, names ...string) []line {
	var some []line
	for _, l := range all {
		if slices.Contains(names, l.Event) {
			some = append(some, l)
		}
	}
	return some
}

// order is the nodes that stages were started for, the first attempts only.
func order(all []line) string {
	var nodes []string
	for _, l := range only(all, "stage.started", "parallel.branch.started") {
		switch {
		case l.Event == "parallel.branch.started":
			nodes = append(nodes, "("+l.Node+")")
		case l.Props["attempt"] == 1.0:
			nodes = append(nodes, l.Node)
		}
	}
	return strings.Join(nodes, " ")
}

// names is the event names, joined.
func names(all []line) string {
	var list []string
	for _, l := range all {
		list = append(list, l.Event)
	}
	return strings.Join(list, "\n")
}

// clock is a clock that stands still until a test moves it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
	more   chan struct{} // closed and replaced with each timer
}

type timer struct {
	at     time.Time
	length time.Duration
	fires  chan time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC), more: make(chan struct{})}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tm := &timer{c.now.Add(d), d, make(chan time.Time, 1)}
	if d <= 0 {
		tm.fires <- c.now
		return tm.fires, func() {}
	}
	c.timers = append(c.timers, tm)
	close(c.more)
	c.more = make(chan struct{})
	return tm.fires, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == tm })
	}
}

// pass waits until somebody waits for exactly d, and lets that time pass.
func (c *clock) pass(t testing.TB, d time.Duration) {
	t.Helper()
	c.awaitTimer(t, d)
	c.advance(d)
}

func (c *clock) awaitTimer(t testing.TB, d time.Duration) {
	t.Helper()
	for {
		c.mu.Lock()
		found := slices.ContainsFunc(c.timers, func(tm *timer) bool { return tm.length == d })
		more := c.more
		c.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("nobody waits for %s", d)
		}
	}
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.timers = slices.DeleteFunc(c.timers, func(tm *timer) bool {
		if tm.at.After(c.now) {
			return false
		}
		tm.fires <- c.now
		return true
	})
}

// desk answers questions in their order. A question beyond the answers stays open until its run gives it up.
type desk struct {
	mu      sync.Mutex
	answers []wire.SubmitAnswer
	asked   []wire.Question
	about   []AskInfo
	done    []error
}

func (d *desk) Ask(ctx context.Context, q wire.Question, about AskInfo) (Answer, error) {
	d.mu.Lock()
	d.asked, d.about = append(d.asked, q), append(d.about, about)
	if len(d.answers) == 0 {
		d.mu.Unlock()
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}
	a := d.answers[0]
	d.answers = d.answers[1:]
	d.mu.Unlock()
	return Answer{Submit: a, Actor: wire.DevUser(), Done: func(err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done = append(d.done, err)
	}}, nil
}

// compileText compiles a graph that stands alone.
func compileText(t testing.TB, source string) *workflow.Compiled {
	t.Helper()
	return compileBundle(t, workflow.Bundle{
		Target: "test.fabro", Workflows: map[string]workflow.BundleWorkflow{"test.fabro": {Source: source}},
	})
}

func compileBundle(t testing.TB, b workflow.Bundle) *workflow.Compiled {
	t.Helper()
	c, diagnostics, err := workflow.Compile(b, workflow.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		if d.Severity == workflow.SeverityError {
			t.Fatalf("%s: %s", d.Rule, d.Message)
		}
	}
	return c
}

// compileLoose compiles a graph that lint would refuse, as a run may hold one after an import or an older server.
func compileLoose(t testing.TB, source string) *workflow.Compiled {
	t.Helper()
	c, _, err := workflow.Compile(workflow.Bundle{
		Target: "test.fabro", Workflows: map[string]workflow.BundleWorkflow{"test.fabro": {Source: source}},
	}, workflow.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trial is one run in a test.
type trial struct {
	t       testing.TB
	spec    Spec
	journal *memory
	desk    *desk
	clock   *clock
	ended   chan Result
	cancel  context.CancelCauseFunc
}

const testRun = "01K1H2ZZZZZZZZZZZZZZZZZZZZ"

// newTrial prepares a run whose clock stands still, whose chance is always in the middle, and whose question ids count.
func newTrial(t testing.TB, source string) *trial {
	t.Helper()
	return trialOf(t, compileText(t, source))
}

func trialOf(t testing.TB, c *workflow.Compiled) *trial {
	t.Helper()
	tr := &trial{t: t, journal: newMemory(), desk: &desk{}, clock: newClock(), ended: make(chan Result, 1)}
	questions := 0
	var mu sync.Mutex
	tr.spec = Spec{
		RunID: testRun, Compiled: c, Cwd: t.TempDir(), RunDir: t.TempDir(), Env: os.Environ(), Clock: tr.clock,
		Random: func() float64 { return 0.5 },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			questions++
			return fmt.Sprintf("Q%d", questions)
		},
	}
	return tr
}

// start runs in the background.
func (tr *trial) start() {
	ctx, cancel := context.WithCancelCause(context.Background())
	tr.cancel = cancel
	tr.t.Cleanup(func() { cancel(ErrCancelled) })
	go func() {
		result, err := Run(ctx, tr.spec, tr.journal, tr.desk)
		if err != nil {
			tr.t.Errorf("run: %v", err)
		}
		tr.ended <- result
	}()
}

// wait waits for the end and returns what is on record.
func (tr *trial) wait() (Result, []line) {
	tr.t.Helper()
	select {
	case result := <-tr.ended:
		all := tr.journal.lines(tr.t)
		checkInvariants(tr.t, result, all)
		return result, all
	case <-tr.t.Context().Done():
		tr.t.Fatal("the run does not end")
		panic("unreachable")
	}
}

func (tr *trial) run() (Result, []line) {
	tr.t.Helper()
	tr.start()
	return tr.wait()
}

// status is kind and reason of a result, with the failure's message.
func status(r Result) string {
	text := r.Status.String()
	if r.Failure != nil {
		text += ": " + r.Failure.Message
	}
	return text
}
