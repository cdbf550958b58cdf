//go:build !race

package tools

// How much TestScale puts on the embedded server.
const (
	scaleRuns   = 10_000
	scaleEvents = 100_000
)
