package protocol

import (
	"slices"
	"testing"
)

// TestIDsOfOneSum: ids that share a sum by chance are told apart, whichever of them
// goes first.
func TestIDsOfOneSum(t *testing.T) {
	ids := []string{`"a"`, `1`, `"1"`, `-0`}
	for _, gone := range ids {
		for _, next := range ids {
			o := newOpenRequests()
			byID := make(map[string]*request)
			for _, id := range ids {
				byID[id] = &request{id: []byte(id)}
				if !o.addAt(7, byID[id]) {
					t.Fatalf("%s is not taken", id)
				}
			}
			for _, again := range []string{`"a"`, `"\u0061"`, `1`} {
				if o.addAt(7, &request{id: []byte(again)}) {
					t.Errorf("%s is taken twice", again)
				}
			}
			left := slices.Clone(ids)
			for _, id := range []string{gone, next, gone} { // the third one is not in any more
				o.remove(byID[id])
				left = slices.DeleteFunc(left, func(l string) bool { return l == id })
			}
			for _, id := range ids {
				if found := o.among(7, []byte(id)); slices.Contains(left, id) && found != byID[id] || !slices.Contains(left, id) && found != nil {
					t.Errorf("without %s and %s: %s gives %v", gone, next, id, found)
				}
			}
			if got := len(o.all()); got != len(left) {
				t.Errorf("without %s and %s there are %d, not %d", gone, next, got, len(left))
			}
		}
	}
}
