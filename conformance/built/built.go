// Package built gives tests the programs of this repository as they are built. They are built
// without the race detector, which is for the harness in those tests: a server is started a
// thousand times there, and starts several times faster without.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Main is what a TestMain does: it builds the packages into a directory of their own, which
// dir is set to, runs the tests, and returns the exit code.
func Main(run func() int, dir *string, packages ...string) int {
	out, err := os.MkdirTemp("", "mcp-built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(out)
	*dir = out
	build := exec.Command("go", append([]string{"build", "-o", out + string(filepath.Separator)}, packages...)...)
	if said, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, said)
		return 1
	}
	return run()
}
