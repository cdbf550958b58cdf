//go:build unix && !linux && !darwin

package engine

// On other systems nothing cheap tells one group from a later one with the same number.

func look(int) (member, bool) { return member{}, false }

func membersOf(int) (members []member, known bool) { return nil, false }
