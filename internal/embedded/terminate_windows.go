package embedded

import "os"

// terminate ends a process that does not answer; Windows has no way to ask a process without a console.
func terminate(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}
