package embedded

import (
	"strconv"
	"strings"
)

// older reports whether version a is to be replaced by b: it is lower, or one of the two is no version number and they
// differ. A newer server is left alone, because its database may be too new for an older program.
func older(a, b string) bool {
	if a == b || b == "" {
		return false
	}
	x, xok := numbers(a)
	y, yok := numbers(b)
	if !xok || !yok {
		return true
	}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	// The same numbers, another suffix: builds of one version under development replace each other.
	return true
}

// numbers takes "v1.2.3-suffix" apart.
func numbers(version string) (n [3]int, ok bool) {
	version = strings.TrimPrefix(version, "v")
	if at := strings.IndexAny(version, "-+"); at >= 0 {
		version = version[:at]
	}
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return n, false
	}
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return n, false
		}
		n[i] = v
	}
	return n, true
}
