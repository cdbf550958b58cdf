package args

import "strings"

// Nearest finds the name that was probably meant, "" when none comes close:
// the smallest edit distance that does not exceed a third of the longer name,
// plus one. Case, '-' and '_' do not count.
func Nearest(name string, known []string) string {
	best, bestDistance := "", -1
	folded := fold(name)
	for _, k := range known {
		candidate := fold(k)
		longer := max(len(folded), len(candidate))
		d := distance(folded, candidate)
		if folded != "" && (strings.HasPrefix(candidate, folded) || strings.HasSuffix(candidate, folded)) {
			d = min(d, 1+longer/3) // "run" for "run_id"
		}
		if d > longer/3+1 || d >= longer {
			continue
		}
		// Of two that are as near, the one with the same beginning is meant.
		sameStart := folded != "" && candidate != "" && folded[0] == candidate[0]
		if bestDistance < 0 || d < bestDistance || d == bestDistance && sameStart && fold(best)[0] != folded[0] {
			best, bestDistance = k, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '_' || r == ' ':
			return -1
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// distance is the Damerau-Levenshtein distance with adjacent swaps, on bytes.
// Names longer than 64 bytes are cut: they are no field of ours anyway.
func distance(a, b string) int {
	const longest = 64
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	before := make([]int, len(b)+1)
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
