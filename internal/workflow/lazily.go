package workflow

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern when it is first needed: an MCP server that starts
// and lists its tools needs none of them.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
