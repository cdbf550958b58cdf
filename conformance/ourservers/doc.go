// Package ourservers plays the suites against the programs of this repository
// as they are built: fabro, with its own suite and all others, and the fixture
// server, of which nothing may be left untested. It holds tests only, and knows
// the programs by their path alone.
package ourservers
