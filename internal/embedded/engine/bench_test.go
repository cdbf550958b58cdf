package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"testing"

	"fabro-mcp/internal/workflow"
)

// sink is a journal that only marshals.
type sink struct{ events, bytes int }

func (s *sink) Append(_ context.Context, events ...Event) error {
	for _, e := range events {
		raw, err := json.Marshal(e.Properties)
		if err != nil {
			return err
		}
		s.events++
		s.bytes += len(raw)
	}
	return nil
}

func (s *sink) PutBlob(_ context.Context, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func (s *sink) Blob(context.Context, string) ([]byte, error) { return []byte(`""`), nil }

func benchmarkRun(b *testing.B, c *workflow.Compiled, dry bool, stages int) {
	b.ReportAllocs()
	dir := b.TempDir()
	s := &sink{}
	for b.Loop() {
		result, err := Run(b.Context(), Spec{RunID: testRun, Compiled: c, Cwd: dir, RunDir: b.TempDir(), DryRun: dry, Env: []string{"PATH=/usr/bin:/bin"}}, s, &desk{})
		if err != nil || result.Failure != nil {
			b.Fatal(status(result), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*stages), "µs/stage")
	b.ReportMetric(float64(s.bytes)/float64(b.N*stages), "journal-B/stage")
}

// Cost of a stage in a dry run: it must not grow with the number of stages before.
func BenchmarkDryRun100(b *testing.B)   { benchmarkRun(b, compileText(b, chain(100)), true, 100) }
func BenchmarkDryRun1000(b *testing.B)  { benchmarkRun(b, compileText(b, chain(1000)), true, 1000) }
func BenchmarkDryRun10000(b *testing.B) { benchmarkRun(b, compileText(b, chain(10000)), true, 10000) }

// Twenty commands `true`; BenchmarkProcess is what the processes alone cost.
func BenchmarkCommands20(b *testing.B) { benchmarkRun(b, compileText(b, chain(20)), false, 20) }

func BenchmarkProcess(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bash", "-c", "exec 2>&1\ntrue").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// A page of 100 events at the end of a run of 25,000 rounds of one node, from the nearest base on.
func BenchmarkLastPage(b *testing.B) {
	m := newMemory()
	c := compileText(b, frame(`graph [max_node_visits=25000] a [script="true"] start -> a -> a`))
	result, err := Run(b.Context(), Spec{RunID: testRun, Compiled: c, Cwd: b.TempDir(), RunDir: b.TempDir(), DryRun: true}, m, &desk{})
	if err != nil || result.Failure == nil {
		b.Fatal(status(result), err)
	}
	first := len(m.events) - 100
	base := first
	for !IsBase(m.events[base].Name, m.stored[base]) {
		base--
	}
	b.ReportMetric(float64(first-base), "events-before")
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		var fold Fold
		size = 0
		for i := base; i < len(m.events); i++ {
			if i < first {
				if err := fold.Observe(m.events[i].Name, m.stored[i]); err != nil {
					b.Fatal(err)
				}
				continue
			}
			raw, err := fold.Render(m.events[i].Name, m.stored[i])
			if err != nil {
				b.Fatal(err)
			}
			size += len(raw)
		}
	}
	b.ReportMetric(float64(size), "page-B")
}
