package engine

import "time"

// A Clock tells the time and waits. All waiting of the engine that a workflow can ask for (wait nodes, back-off,
// deadlines, the watchdog) goes through it, so that tests need no real time. The grace periods of processes do not:
// those wait for the operating system.
type Clock interface {
	Now() time.Time
	// Timer returns a channel that receives once when d has passed, and a function that gives the timer up.
	Timer(d time.Duration) (fires <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func millis(d time.Duration) int64 { return max(d.Milliseconds(), 0) }
