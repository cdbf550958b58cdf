package engine

import (
	"math"
	"time"

	"fabro-mcp/internal/workflow"
)

// maxBackoff caps the delay before an attempt, before the random factor.
const maxBackoff = 60 * time.Second

// A retryPolicy says how often a node may be tried and how long to wait in between.
type retryPolicy struct {
	attempts int
	first    time.Duration
	factor   float64
}

var namedPolicies = map[string]retryPolicy{
	"none":       {attempts: 1},
	"standard":   {attempts: 5, first: 5 * time.Second, factor: 2},
	"aggressive": {attempts: 5, first: 500 * time.Millisecond, factor: 2},
	"linear":     {attempts: 3, first: 500 * time.Millisecond, factor: 1},
	"patient":    {attempts: 3, first: 2 * time.Second, factor: 3},
}

// policyOf is the node's retry_policy, or else its max_retries, the graph's default_max_retries or none, with the
// delays of the standard policy. A quoted number is a string and does not count (a trap of the dialect, kept).
func policyOf(g *workflow.Graph, n *workflow.Node) retryPolicy {
	if name, ok := n.Attrs.String("retry_policy"); ok {
		if p, ok := namedPolicies[name]; ok {
			return p
		}
	}
	retries, ok := n.Attrs.Int("max_retries")
	if !ok {
		retries, _ = g.Attrs.Int("default_max_retries")
	}
	retries = min(max(retries, 0), math.MaxInt32)
	return retryPolicy{attempts: int(retries) + 1, first: 5 * time.Second, factor: 2}
}

// delay is how long to wait after the given failed attempt (from 1). random is in [0, 1).
func (p retryPolicy) delay(attempt int, random float64) time.Duration {
	d := float64(p.first) * math.Pow(p.factor, float64(attempt-1))
	d = min(d, float64(maxBackoff))
	return time.Duration(d * (0.5 + random))
}
