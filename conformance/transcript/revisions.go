package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Revisions are the protocol revisions the harness knows, oldest first. A new
// revision is one more entry here, a schema and a catalogue column.
var Revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// firstModern is the first revision without a handshake: each request carries
// its own version and capabilities in _meta.
const firstModern = "2026-07-28"

// Modern reports whether requests of the revision carry their context in _meta
// instead of a session opened by initialize. Dates compare as text.
func Modern(revision string) bool { return revision >= firstModern }

// ParseRevisions reads a list of ranges: "all", "2025-06-18", "2025-06-18..",
// "..2025-11-25", "2024-11-05..2025-03-26", separated by commas or spaces. The
// result is in the order of Revisions, without repetitions.
func ParseRevisions(text string) ([]string, error) {
	index := func(rev string, otherwise int) (int, error) {
		if rev == "" {
			return otherwise, nil
		}
		if i := slices.Index(Revisions, rev); i >= 0 {
			return i, nil
		}
		return 0, fmt.Errorf("unknown revision %q; known: %s", rev, strings.Join(Revisions, ", "))
	}
	chosen := make([]bool, len(Revisions))
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(fields) == 0 {
		return nil, errors.New("no revision named; write all, a revision, or a range such as 2025-06-18..2025-11-25")
	}
	for _, field := range fields {
		if field == "all" {
			field = ".."
		}
		low, high, isRange := strings.Cut(field, "..")
		if !isRange {
			high = low
		}
		from, err := index(low, 0)
		if err != nil {
			return nil, err
		}
		to, err := index(high, len(Revisions)-1)
		if err != nil {
			return nil, err
		}
		if from > to {
			return nil, fmt.Errorf("the range %q is empty: the older revision comes first", field)
		}
		for i := from; i <= to; i++ {
			chosen[i] = true
		}
	}
	var out []string
	for i, rev := range Revisions {
		if chosen[i] {
			out = append(out, rev)
		}
	}
	return out, nil
}
