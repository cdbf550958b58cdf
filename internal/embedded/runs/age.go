package runs

import (
	"fmt"
	"strconv"
	"time"
)

// ParseAge reads a duration of Go's form or a whole number of days or weeks: "90m", "36h", "30d", "2w". It is above 0.
// The error names the text only: what makes sense as an example differs from place to place.
func ParseAge(text string) (time.Duration, error) {
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var d time.Duration
	var err error
	if n := len(text); n > 1 && unit[text[n-1]] != 0 {
		var count int
		count, err = strconv.Atoi(text[:n-1])
		d = time.Duration(count) * unit[text[n-1]]
		if count > 100_000 {
			err = strconv.ErrRange
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration above 0", text)
	}
	return d, nil
}
