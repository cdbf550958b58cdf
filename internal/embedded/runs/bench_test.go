package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/internal/embedded/store"
)

// newManager is a manager of an empty store.
func newManager(t testing.TB, change ...func(*Config)) *Manager {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(context.Background(), filepath.Join(dir, "fabro.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Store: st, Dir: filepath.Join(dir, "runs"), Version: "1.0.0"}
	for _, c := range change {
		c(&cfg)
	}
	m, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		st.Close()
	})
	return m
}

// creation is a request for a run of a graph that works in a directory of the test.
func creation(t testing.TB, graph string, change ...func(*wire.RunManifest)) Creation {
	t.Helper()
	m := &wire.RunManifest{Version: 1, Cwd: t.TempDir(), Target: wire.ManifestTarget{Path: "flow.fabro"}, Workflows: map[string]wire.ManifestWorkflow{"flow.fabro": {Source: graph}}}
	for _, c := range change {
		c(m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return Creation{Manifest: m, ManifestJSON: text, Actor: wire.DevUser()}
}

func dry(m *wire.RunManifest) { m.Args = &wire.ManifestArgs{DryRun: wire.Ptr(true)} }

func begin(t testing.TB, m *Manager, c Creation) string {
	t.Helper()
	run, err := m.Create(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Start(context.Background(), run.ID, false, wire.DevUser(), ""); err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// awaitEvent follows a run until an event of this name.
func awaitEvent(t testing.TB, m *Manager, id, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	found := fmt.Errorf("found")
	err := m.Follow(ctx, id, 1, func(ev Event) error {
		if ev.Name == name {
			return found
		}
		return nil
	}, func() error { return nil })
	if err != found {
		t.Fatalf("run %s: no %s: %v", id, name, err)
	}
}

// loop is a graph that goes round n times without a process, four events a round.
func loop(n int) string {
	return fmt.Sprintf(`digraph Loop { graph [goal="Round", max_node_visits=%d] start [shape=Mdiamond] exit [shape=Msquare] work [shape=parallelogram, script="true"]
		start -> work  work -> exit [condition="context.internal.node_visit_count >= %d"]  work -> work }`, n+1, n)
}

const gate = `digraph Gate { graph [goal="Ask"] start [shape=Mdiamond] exit [shape=Msquare] ask [shape=hexagon, label="Go on?"] start -> ask  ask -> exit [label="[Y] Yes"] }`

// median runs f often and returns the median time it takes.
func median(b *testing.B, f func()) {
	times := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	cpu := cpuTime()
	for range b.N {
		at := time.Now()
		f()
		times = append(times, time.Since(at))
	}
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/median")
}

// Lists and searches over 10,000 runs.
func BenchmarkTenThousandRuns(b *testing.B) {
	m := newManager(b)
	ctx := context.Background()
	const count = 10_000
	var last string
	base := creation(b, loop(1), dry)
	for i := range count {
		c := base
		manifest := *base.Manifest
		manifest.Title = wire.Ptr(fmt.Sprintf("Run %d", i))
		c.Manifest = &manifest
		run, err := m.Create(ctx, c)
		if err != nil {
			b.Fatal(err)
		}
		last = run.ID
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("list first page", func(b *testing.B) {
		median(b, func() {
			page, total, err := m.List(ctx, store.Query{Limit: 100})
			check(err)
			if len(page) != 100 || total != count {
				b.Fatalf("%d of %d", len(page), total)
			}
			_, err = json.Marshal(page)
			check(err)
		})
	})
	b.Run("list last page", func(b *testing.B) {
		median(b, func() {
			_, _, err := m.List(ctx, store.Query{Limit: 100, Offset: count - 100})
			check(err)
		})
	})
	b.Run("list by title", func(b *testing.B) {
		median(b, func() {
			_, _, err := m.List(ctx, store.Query{Limit: 100, Sort: store.SortTitle})
			check(err)
		})
	})
	b.Run("resolve id", func(b *testing.B) {
		median(b, func() { _, err := m.Resolve(ctx, last); check(err) })
	})
	b.Run("resolve name", func(b *testing.B) {
		median(b, func() { _, err := m.Resolve(ctx, "flow"); check(err) })
	})
	b.Run("resolve nothing", func(b *testing.B) {
		median(b, func() {
			if _, err := m.Resolve(ctx, "no such workflow"); err == nil {
				b.Fatal("found")
			}
		})
	})
	b.Run("get", func(b *testing.B) {
		median(b, func() { _, err := m.Get(ctx, last); check(err) })
	})
}

// Pages of a run with 100,000 events, and how fast an engine writes them.
func BenchmarkHundredThousandEvents(b *testing.B) {
	m := newManager(b)
	ctx := context.Background()
	began := time.Now()
	id := begin(b, m, creation(b, loop(25_000), dry))
	awaitEvent(b, m, id, wire.EventRunCompleted)
	took := time.Since(began)
	r, err := m.acquire(ctx, id)
	if err != nil {
		b.Fatal(err)
	}
	defer m.release(r)
	r.mu.Lock()
	events, bytes := r.state.LastSeq, r.bytes
	r.mu.Unlock()
	b.Logf("%d events, %.1f MB, %.0f events/s from one engine", events, float64(bytes)/1e6, float64(events)/took.Seconds())
	for _, at := range []int64{1, events / 2, events - 100} {
		b.Run(fmt.Sprintf("page at %d", at), func(b *testing.B) {
			median(b, func() {
				page, _, err := m.Events(ctx, id, PageQuery{Since: at, Limit: 100})
				if err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
			})
		})
	}
	b.Run("last 100 backwards", func(b *testing.B) {
		median(b, func() {
			if _, _, err := m.Events(ctx, id, PageQuery{Desc: true, Limit: 100}); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("get", func(b *testing.B) {
		median(b, func() {
			if _, err := m.Get(ctx, id); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// Events a second of five engines together, each event durable against kill -9 before its engine goes on.
func BenchmarkEngines(b *testing.B) {
	m := newManager(b)
	rounds := max(1, b.N/20)
	var wg sync.WaitGroup
	b.ResetTimer()
	cpu := cpuTime()
	for range 5 {
		wg.Add(1)
		id := begin(b, m, creation(b, loop(rounds), dry))
		go func() {
			defer wg.Done()
			awaitEvent(b, m, id, wire.EventRunCompleted)
		}()
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(5*4*rounds)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(5*4*rounds), "cpu-µs/event")
}

// What a hundred runs that wait for people take, once they wait.
func BenchmarkHundredBlocked(b *testing.B) {
	for range b.N {
		m := newManager(b)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		goroutines := runtime.NumGoroutine()
		var ids []string
		for range 100 {
			ids = append(ids, begin(b, m, creation(b, gate)))
		}
		for _, id := range ids {
			awaitEvent(b, m, id, "run.blocked")
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/1e6, "MB")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
	}
}
