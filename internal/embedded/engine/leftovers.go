package engine

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
)

// recordPath is the file in which a run notes the process groups it started, one a line, each before the process does
// anything.
func recordPath(runDir string) string { return filepath.Join(runDir, "runtime", "processes") }

// KillLeftovers ends the processes that a killed daemon's run left behind in runDir, and removes the record of them. A
// group is only killed when it is still the one that was noted: its leader's start time and its session say so, so a
// number that the system has given to somebody else since is left alone. It returns how many groups were killed. A run
// without a record has nothing to kill.
func KillLeftovers(runDir string) (int, error) {
	path := recordPath(runDir)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	killed := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if g, ok := notedGroup(lines.Text()); ok && g.alive() {
			g.kill()
			killed++
		}
	}
	return killed, errors.Join(lines.Err(), f.Close(), os.Remove(path))
}
