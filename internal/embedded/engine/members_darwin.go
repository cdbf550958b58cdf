package engine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

func look(pid int) (member, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return member{}, false
	}
	return fromKinfo(info), true
}

func membersOf(groupID int) (members []member, known bool) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", groupID)
	if err != nil {
		return nil, false
	}
	for i := range infos {
		members = append(members, fromKinfo(&infos[i]))
	}
	return members, true
}

// fromKinfo leaves the session at zero for all: the kernel gives only a pointer here.
func fromKinfo(info *unix.KinfoProc) member {
	started := info.Proc.P_starttime
	return member{
		pid:     int(info.Proc.P_pid),
		started: fmt.Sprintf("%d.%06d", started.Sec, started.Usec),
		ended:   info.Proc.P_stat == zombie,
	}
}
