//go:build windows

package process

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// guard is a job object that dies with its last handle, which only the harness
// holds: the system kills the child and all it started when the harness ends.
type guard struct{ job windows.Handle }

func newGuard() (*guard, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return &guard{job}, err
}

func (g *guard) adopt(*exec.Cmd) {}

func (g *guard) started(cmd *exec.Cmd) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	return windows.AssignProcessToJobObject(g.job, h)
}

func (g *guard) kill() { windows.TerminateJobObject(g.job, 1) }

// sendSignal knows only KILL: Windows has no others.
func sendSignal(p *os.Process, name string) error {
	if name != "KILL" {
		return fmt.Errorf("signal %s does not exist on Windows; write needs: platform unix", name)
	}
	return p.Kill()
}

func stateOf(ps *os.ProcessState) State {
	if ps == nil {
		return State{Code: -1}
	}
	return State{Code: ps.ExitCode(), CPU: ps.UserTime() + ps.SystemTime()}
}
