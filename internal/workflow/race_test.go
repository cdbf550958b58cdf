//go:build race

package workflow

// scale divides the size of large inputs: the race detector multiplies the time
// they take, and has nothing to find in one goroutine.
const scale = 10
