//go:build !race

package workflow

// scale divides the size of large inputs; see race_test.go.
const scale = 1
