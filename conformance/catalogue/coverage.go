package catalogue

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Count is how many requirements of one kind there are and how many are covered.
type Count struct{ Covered, Total int }

func (c *Count) add(covered bool) {
	c.Total++
	if covered {
		c.Covered++
	}
}

// Percent is the covered share, rounded down; 100 when there is nothing to cover.
func (c Count) Percent() int {
	if c.Total == 0 {
		return 100
	}
	return c.Covered * 100 / c.Total
}

// AreaCoverage counts one area in one revision. Only requirements that bind servers and
// can be judged over stdio are counted (Requirement.Judged).
type AreaCoverage struct {
	Area             string
	Must, Should     Count    // MUST with MUST NOT, SHOULD with SHOULD NOT
	MissingMust      []string // ids nobody covers, in catalogue order
	MissingShould    []string
	CoveredOptional  int // MAYs that a transcript shows as well
	OptionalInTheory int
}

// Coverage counts, per area and in the order of Areas, how much of a revision is covered
// by a set of requirement ids. With revision "" a requirement of any revision counts once.
// Areas with nothing to judge are left out.
func Coverage(revision string, covered map[string]bool) []AreaCoverage {
	var out []AreaCoverage
	for _, area := range Areas() {
		c := AreaCoverage{Area: area}
		for _, r := range load().all {
			if r.Area != area || !r.Judged() || revision != "" && !r.In(revision) {
				continue
			}
			switch {
			case r.Level.Mandatory():
				c.Must.add(covered[r.ID])
				if !covered[r.ID] {
					c.MissingMust = append(c.MissingMust, r.ID)
				}
			case r.Level.Advisory():
				c.Should.add(covered[r.ID])
				if !covered[r.ID] {
					c.MissingShould = append(c.MissingShould, r.ID)
				}
			default:
				c.OptionalInTheory++
				if covered[r.ID] {
					c.CoveredOptional++
				}
			}
		}
		if c.Must.Total+c.Should.Total+c.OptionalInTheory > 0 {
			out = append(out, c)
		}
	}
	return out
}

// Total adds up the counts of all areas.
func Total(areas []AreaCoverage) (must, should Count) {
	for _, a := range areas {
		must.Covered += a.Must.Covered
		must.Total += a.Must.Total
		should.Covered += a.Should.Covered
		should.Total += a.Should.Total
	}
	return must, should
}

// WriteCoverage prints the table of one revision (or of all, with ""), a line an area.
func WriteCoverage(w io.Writer, revision string, covered map[string]bool) error {
	areas := Coverage(revision, covered)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "area\tMUST\t\tSHOULD\t\tMAY\t\n")
	for _, a := range areas {
		fmt.Fprintf(tw, "%s\t%d/%d\t%d %%\t%d/%d\t%d %%\t%d/%d\t\n", a.Area, a.Must.Covered, a.Must.Total, a.Must.Percent(),
			a.Should.Covered, a.Should.Total, a.Should.Percent(), a.CoveredOptional, a.OptionalInTheory)
	}
	must, should := Total(areas)
	fmt.Fprintf(tw, "all\t%d/%d\t%d %%\t%d/%d\t%d %%\t\t\n", must.Covered, must.Total, must.Percent(), should.Covered, should.Total, should.Percent())
	return tw.Flush()
}

// Unknown returns those ids of a set that the catalogue does not have, sorted.
func Unknown(ids map[string]bool) []string {
	unknown := map[string]bool{}
	for id := range ids {
		if _, ok := Lookup(id); !ok {
			unknown[id] = true
		}
	}
	return sortedKeys(unknown)
}
