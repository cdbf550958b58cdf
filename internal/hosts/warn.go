package hosts

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
)

// lost matches a Windows path whose backslashes were not doubled in JSON: c:\temp
// then holds a tab.
var lost = regexp.MustCompile(`(?i)(^|[^a-z])[a-z]:[^\\/]*[\t\n\f\r\x08]`)

// Warnings names the servers in a host's file that cannot work as they stand,
// though the file is valid. It is empty for a file that cannot be read.
func Warnings(file File) []string {
	text, err := os.ReadFile(file.Path)
	if err != nil {
		return nil
	}
	config, err := plain(text)
	if err != nil {
		return nil
	}
	servers, _ := config[serversKey].(map[string]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server, _ := servers[name].(map[string]any)
		words, _ := server["args"].([]any)
		for _, word := range append([]any{server["command"]}, words...) {
			if text, ok := word.(string); ok && lost.MatchString(text) {
				out = append(out, fmt.Sprintf("%s: the server %q has the path %q; write each backslash twice in JSON", file.Path, name, text))
			}
		}
	}
	return out
}
