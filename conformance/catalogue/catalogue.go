// Package catalogue is the list of what the Model Context Protocol demands: one
// row for each requirement of the five protocol revisions and of the tasks
// extension, with an id that transcripts, reports and baselines refer to.
//
// The rows live in requirements.tsv, one line each, so that a change to the
// catalogue is a readable diff. Ids are never reused and never change their
// meaning: a requirement whose text moves between revisions gets a new row.
//
// Coverage turns a set of covered ids into counts per area; Frozen guards the
// transcripts of a released revision against quiet edits.
package catalogue

import (
	_ "embed"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Revisions are the protocol revisions that the catalogue knows, oldest first.
var Revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// Level is the keyword of a requirement as RFC 2119 uses it.
type Level string

// The five keywords, strongest first. Broken Must and MustNot are failures,
// broken Should and ShouldNot are warnings, and May is only ever reported.
const (
	Must      Level = "MUST"
	MustNot   Level = "MUST NOT"
	Should    Level = "SHOULD"
	ShouldNot Level = "SHOULD NOT"
	May       Level = "MAY"
)

// Mandatory says whether breaking a requirement of this level is a failure.
func (l Level) Mandatory() bool { return l == Must || l == MustNot }

// Advisory says whether breaking a requirement of this level is a warning.
func (l Level) Advisory() bool { return l == Should || l == ShouldNot }

// Testable says whether a requirement can be judged from outside, over stdio.
type Testable string

const (
	// Always can be judged on any server.
	Always Testable = "y"
	// WithFixture needs a tool, resource or prompt that behaves in a known way.
	WithFixture Testable = "c"
	// Never cannot be judged from a server's output: it binds the client, another
	// transport, or the text of a manual.
	Never Testable = "n"
)

// Requirement is one row of the catalogue.
type Requirement struct {
	ID        string // dotted, unique, stable: "framing.utf8"
	Level     Level
	Area      string   // "framing", "jsonrpc", …: the group in a coverage report
	Revisions []string // those of Revisions in which it holds, oldest first
	Role      string   // "server", "client" or "both": whom it binds
	Testable  Testable
	Text      string // the rule in one sentence of our own
	Source    string // page and section of the specification, or the other text it rests on
	How       string // how a test decides
}

// In says whether the requirement holds in a revision.
func (r Requirement) In(revision string) bool { return slices.Contains(r.Revisions, revision) }

// Judged says whether the requirement is one that a suite for servers over stdio has to
// cover: it binds servers and can be seen from outside.
func (r Requirement) Judged() bool { return r.Role != "client" && r.Testable != Never }

//go:embed requirements.tsv
var table string

type index struct {
	all  []Requirement
	byID map[string]int
}

var load = sync.OnceValue(func() index {
	all, err := parse(table)
	if err != nil {
		panic("catalogue: the embedded requirements.tsv: " + err.Error()) // a broken build; tests see it first
	}
	byID := make(map[string]int, len(all))
	for i, r := range all {
		byID[r.ID] = i
	}
	return index{all, byID}
})

// All returns every requirement in the order of the file, which groups areas.
// The slice is a copy.
func All() []Requirement { return slices.Clone(load().all) }

// Lookup finds a requirement by its id.
func Lookup(id string) (Requirement, bool) {
	ix := load()
	i, ok := ix.byID[id]
	if !ok {
		return Requirement{}, false
	}
	return ix.all[i], true
}

// Nearest returns the known id that is spelled most like id, for a hint in an error
// message. It is empty when nothing comes near.
func Nearest(id string) string {
	best, bestScore := "", len(id)/2+1
	for _, r := range load().all {
		if d := distance(id, r.ID, bestScore); d < bestScore {
			best, bestScore = r.ID, d
		}
	}
	return best
}

// Areas returns the names of all areas in the order of the file.
func Areas() []string {
	var areas []string
	for _, r := range load().all {
		if !slices.Contains(areas, r.Area) {
			areas = append(areas, r.Area)
		}
	}
	return areas
}

// header is the first line of the table; the columns named after revisions are
// those of Revisions in order.
const header = "id\tlevel\tarea\tr2024_11_05\tr2025_03_26\tr2025_06_18\tr2025_11_25\tr2026_07_28\trole\tstdio_testable\trequirement\tsource\thow"

func parse(text string) ([]Requirement, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != header {
		return nil, fmt.Errorf("line 1: the header is not %q", header)
	}
	seen := map[string]int{}
	var all []Requirement
	for n, line := range lines[1:] {
		n += 2
		f := strings.Split(line, "\t")
		if len(f) != 13 {
			return nil, fmt.Errorf("line %d: %d columns, want 13", n, len(f))
		}
		r := Requirement{ID: f[0], Level: Level(f[1]), Area: f[2], Role: f[8], Testable: Testable(f[9]), Text: f[10], Source: f[11], How: f[12]}
		for i, mark := range f[3:8] {
			switch mark {
			case "y":
				r.Revisions = append(r.Revisions, Revisions[i])
			case "-":
			default:
				return nil, fmt.Errorf("line %d: %q marks a revision, want y or -", n, mark)
			}
		}
		switch {
		case r.ID == "" || r.Text == "" || r.Source == "" || r.How == "" || r.Area == "":
			return nil, fmt.Errorf("line %d: an empty column", n)
		case seen[r.ID] != 0:
			return nil, fmt.Errorf("line %d: id %s is already on line %d", n, r.ID, seen[r.ID])
		case !r.Level.Mandatory() && !r.Level.Advisory() && r.Level != May:
			return nil, fmt.Errorf("line %d: level %q", n, r.Level)
		case r.Role != "server" && r.Role != "client" && r.Role != "both":
			return nil, fmt.Errorf("line %d: role %q", n, r.Role)
		case r.Testable != Always && r.Testable != WithFixture && r.Testable != Never:
			return nil, fmt.Errorf("line %d: stdio_testable %q", n, r.Testable)
		case len(r.Revisions) == 0:
			return nil, fmt.Errorf("line %d: %s holds in no revision", n, r.ID)
		}
		seen[r.ID] = n
		all = append(all, r)
	}
	return all, nil
}

// distance is the edit distance of two ids, cut off at limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// sortedKeys returns the keys of a set in order.
func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
