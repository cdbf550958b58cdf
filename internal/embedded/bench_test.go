package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fabro-mcp/fabroapi/wire"
)

// From nothing to the first answer: a server is started, detached, and asked for its runs.
func BenchmarkColdStart(b *testing.B) {
	s := newSite(b)
	for range b.N {
		b.StopTimer()
		if err := Stop(context.Background(), s.cfg); err != nil && !errors.Is(err, ErrNotRunning) {
			b.Fatal(err)
		}
		b.StartTimer()
		s.connect().call(200, "GET", "/runs", nil, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
}

// A hundred runs that wait for people: what the server takes of memory in all, and of time while nothing happens.
func BenchmarkHundredBlockedRuns(b *testing.B) {
	s := newSite(b)
	s.settings("[runs]\nmax_concurrent = 100\n")
	p := s.connect()
	var ids []string
	for range 100 {
		ids = append(ids, s.start(p, oneGate))
	}
	for _, id := range ids {
		p.await(id, "run.blocked")
	}
	pid := s.cfg.readRecord().PID
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			b.ReportMetric(float64(kb)/1000, "MB")
		}
	}
	before := ticks(b, pid)
	<-time.After(3 * time.Second)
	b.ReportMetric(float64(ticks(b, pid)-before)*10/3, "cpu-ms/s-idle")
	for range b.N {
		p.run(ids[0])
	}
	if run := p.run(ids[99]); run.Lifecycle.Status.Kind != wire.StatusBlocked {
		b.Errorf("%+v", run.Lifecycle)
	}
}

// ticks is the time a process has computed, in hundredths of a second (proc(5), fields 14 and 15).
func ticks(b *testing.B, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return user + system
}
