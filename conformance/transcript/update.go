package transcript

import (
	"cmp"
	"slices"
)

// Edit replaces a stretch of a transcript's source.
type Edit struct {
	Start, End int // byte offsets
	New        string
}

// Overlaps reports whether two edits touch the same bytes.
func (e Edit) Overlaps(o Edit) bool { return e.Start < o.End && o.Start < e.End }

// Edit returns the change that makes the pattern accept what came. Where
// nothing came there is none: a member that vanished is for a person to judge.
func (m Mismatch) Edit() (Edit, bool) {
	if m.Got == nil || m.node == nil || m.node.end <= m.node.start {
		return Edit{}, false
	}
	return Edit{m.node.start, m.node.end, string(m.Got.Raw)}, true
}

// Apply makes the edits, which must not overlap.
func Apply(source []byte, edits []Edit) []byte {
	edits = slices.Clone(edits)
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, source[at:e.Start]...)
		out = append(out, e.New...)
		at = e.End
	}
	return append(out, source[at:]...)
}
