package engine

import (
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// needsGate is false: a job object that ends with its last handle leaves nothing behind when the daemon is killed. What
// a process starts before it is put into its job, in its first instant, escapes it.
const needsGate = false

func gated(path string, args []string) *exec.Cmd { return exec.Command(path, args...) }

// lookPath looks in our own PATH; the rules of Windows for it are not worth repeating.
func lookPath(name, _ string, _ []string) (string, error) { return exec.LookPath(name) }

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// A group is a job object that holds a process and everything it starts.
type group struct{ job windows.Handle }

func newGroup(cmd *exec.Cmd) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, fmt.Errorf("cannot make a job object: %w", err)
	}
	g := group{job}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return g, fmt.Errorf("cannot set up the job object: %w", err)
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err != nil {
		return g, fmt.Errorf("cannot open the process: %w", err)
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return g, fmt.Errorf("cannot put the process into its job: %w", err)
	}
	return g, nil
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	totalUserTime, totalKernelTime, periodUserTime, periodKernelTime int64
	pageFaults, processes, active, terminated                        uint32
}

func (g group) alive() bool {
	var a jobAccounting
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return err == nil && a.active > 0
}

// terminate ends the job at once: there is no SIGTERM for a process without a console of ours.
func (g group) terminate() { g.kill() }

func (g group) kill() { _ = windows.TerminateJobObject(g.job, 1) } // gone already is fine

func (g group) release() { _ = windows.CloseHandle(g.job) }

func (g group) note() string { return "" }

func notedGroup(string) (group, bool) { return group{}, false }
