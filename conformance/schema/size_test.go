//go:build !race

package schema

import "math"

// maxMutations bounds the mutations of one sample message that
// TestAgreesWithTheOfficialSchemas tries: all of them.
const maxMutations = math.MaxInt
