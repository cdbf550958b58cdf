package workflow

// nearest is the candidate most like name, or "" when none is at least half
// like it (normalised Levenshtein similarity 0.5, as Fabro suggests names).
// Ties go to the earlier candidate.
func nearest(name string, candidates []string) string {
	const longest = 200 // ids beyond this are not worth the time
	best, bestScore := "", 0.5
	if len(name) > longest {
		return ""
	}
	for _, c := range candidates {
		if c == name || len(c) > longest {
			continue
		}
		length := max(len([]rune(c)), len([]rune(name)))
		if length == 0 {
			continue
		}
		score := 1 - float64(editDistance(name, c))/float64(length)
		if score > bestScore || score == bestScore && best == "" {
			best, bestScore = c, score
		}
	}
	return best
}

func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
