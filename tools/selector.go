package tools

import (
	"strings"

	"fabro-mcp/tools/args"
)

const runSelectorDoc = "The run: its id, the beginning of its id, or its workflow's name (then the newest run of it)."

// runSelector is the type of every run_id field.
func runSelector(to *string) *args.TextType {
	return args.Text(to).Trimmed().NotBlank("run_id is required")
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
