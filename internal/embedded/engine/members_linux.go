package engine

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// bootID tells start times of this boot from those of an earlier one, which count from the same zero.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "boot"
	}
	return string(bytes.TrimSpace(id))
})

func look(pid int) (member, bool) {
	m, _, ok := readStat(strconv.Itoa(pid))
	return m, ok
}

func membersOf(groupID int) (members []member, known bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if m, id, ok := readStat(name); ok && id == groupID {
			members = append(members, m)
		}
	}
	return members, true
}

// readStat reads /proc/<pid>/stat: state is field 3, the group 5, the session 6, the start time 22 (proc(5)). The name
// in field 2 may hold blanks and parentheses, so counting begins behind its last one.
func readStat(pid string) (m member, groupID int, ok bool) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return member{}, 0, false
	}
	_, rest, ok := strings.Cut(string(raw[max(bytes.LastIndexByte(raw, ')'), 0):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return member{}, 0, false
	}
	m.pid, _ = strconv.Atoi(pid)
	m.ended = fields[0] == "Z" || fields[0] == "X"
	groupID, _ = strconv.Atoi(fields[2])
	m.session, _ = strconv.Atoi(fields[3])
	m.started = bootID() + "/" + fields[19]
	return m, groupID, true
}
