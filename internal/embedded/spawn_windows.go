package embedded

import "syscall"

// rootDir is where a server works.
const rootDir = `C:\`

// detachedProcess is DETACHED_PROCESS of the Windows API: no console.
const detachedProcess = 0x00000008

// detached gives a server a process group of its own and no console.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess, HideWindow: true}
}

// closeOnExec has nothing to do: only handles that are named are inherited.
func closeOnExec() {}
