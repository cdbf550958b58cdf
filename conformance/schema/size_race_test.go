//go:build race

package schema

// maxMutations bounds the mutations of one sample message that
// TestAgreesWithTheOfficialSchemas tries: the race detector makes the validators many times slower.
const maxMutations = 20
