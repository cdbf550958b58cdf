//go:build race

package tools

// The race detector makes SQLite ten times slower, so that TestScale is smaller with
// it; without it (go test ./tools) it has its full size.
const (
	scaleRuns   = 2_000
	scaleEvents = 20_000
)
