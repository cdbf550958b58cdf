package engine

import (
	"path/filepath"
	"strings"
	"testing"
)

// Every node has a log whose name a file system takes, also one with an endless id.
func TestStageLogPath(t *testing.T) {
	long := strings.Repeat("n", 10_000)
	tests := []struct{ name, stage, want string }{
		{"plain", "build@2", "build@0002"},
		{"odd characters", "a/b c@1", "a%2Fb%20c@0001"},
		{"no ordinal", "build", "build@0001"},
	}
	for _, tt := range tests {
		if got := StageLogPath("run", tt.stage); got != filepath.Join("run", "runtime", "stages", tt.want, "output.log") {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	one, other := StageLogPath("run", long+"x@1"), StageLogPath("run", long+"y@1")
	if one == other {
		t.Error("two long ids have one log")
	}
	if name := filepath.Base(filepath.Dir(one)); len(name) > 255 || !strings.HasPrefix(name, "nnnn") {
		t.Errorf("the name has %d bytes: %s", len(name), name)
	}
}
