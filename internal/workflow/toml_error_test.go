package workflow_test

import (
	"errors"
	"testing"

	"fabro-mcp/internal/workflow"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// Nothing of the program's own types may reach somebody who mistyped a setting.
func TestTOMLFault(t *testing.T) {
	type fault = workflow.TOMLFault
	tests := []struct {
		source string
		want   fault
	}{
		{"server = 5", fault{1, 10, "server", "must be a table, not an integer"}},
		{"[server]\nname = 5", fault{2, 8, "server.name", "must be a string, not an integer"}},
		{"[server]\nname = [1]", fault{2, 8, "server.name", "must be a string, not an array"}},
		{"[server]\non = 'x'", fault{2, 6, "server.on", "must be true or false, not a string"}},
		{"[server]\nwords = 'x'", fault{2, 9, "server.words", "must be an array of strings, not a string"}},
		{"[server]\nwords = [5]", fault{2, 10, "server.words", "must be a string, not an integer"}},
		{"[server]\nn = 1.5", fault{2, 5, "server.n", "must be an integer, not a float"}},
		{"[server]\nn = {a = 1}", fault{2, 5, "server.n", "must be an integer, not an inline table"}},
		{"[server]\nmap = 5", fault{2, 7, "server.map", "must be a table, not an integer"}},
		{"[server.map]\nk = 5", fault{2, 5, "server.map.k", "must be a string, not an integer"}},
		{"[[server]]", fault{1, 3, "server", "must be a table, not an array table"}},
		{"[server.name]\nb = 1", fault{1, 2, "server.name", "must be a string, not a table"}},
		{"a = ", fault{1, 4, "", "expected value, not end of input"}},
	}
	for _, tt := range tests {
		var into struct {
			Server struct {
				Name  string            `toml:"name"`
				On    *bool             `toml:"on"`
				Words []string          `toml:"words"`
				Map   map[string]string `toml:"map"`
				N     int64             `toml:"n"`
			} `toml:"server"`
		}
		err := toml.Unmarshal([]byte(tt.source), &into)
		if err == nil {
			t.Fatalf("%q was read", tt.source)
		}
		if diff := cmp.Diff(tt.want, workflow.TOMLFaultOf(err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.source, diff)
		}
	}
	if got := workflow.TOMLFaultOf(errors.New("toml: other")); got != (fault{Message: "other"}) {
		t.Errorf("another error: %+v", got)
	}
}
