// Package plural writes how many of a thing there are, for people: "1 run",
// "2 runs". It is the only place that knows the difference.
package plural

import "fmt"

// Count is n with the word that fits it. The plural of one is one with an s, or
// many where that is given.
func Count[N int | int64](n N, one string, many ...string) string {
	word := one
	switch {
	case n == 1:
	case len(many) > 0:
		word = many[0]
	default:
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}
