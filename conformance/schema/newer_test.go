package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewerFindsWhatLeaksToAnOlderPeer(t *testing.T) {
	for name, tc := range map[string]struct {
		revision, definition, value string
		want                        []string
	}{
		"clean":           {"2025-06-18", "ListToolsResult", `{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"}}]}`, []string{}},
		"title in 2024":   {"2024-11-05", "ListToolsResult", `{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"}}]}`, []string{"tools/0/title"}},
		"cache hints":     {"2025-11-25", "ListToolsResult", `{"tools":[],"ttlMs":0,"cacheScope":"public","resultType":"complete"}`, []string{"cacheScope", "resultType", "ttlMs"}},
		"structured":      {"2025-03-26", "CallToolResult", `{"content":[{"type":"text","text":"x","_meta":{}}],"structuredContent":{}}`, []string{"content/0/_meta", "structuredContent"}},
		"vendor members":  {"2024-11-05", "CallToolResult", `{"content":[],"vendor":{"title":1}}`, []string{}},
		"icons in server": {"2025-06-18", "InitializeResult", `{"protocolVersion":"x","capabilities":{"tasks":{}},"serverInfo":{"name":"n","version":"v","icons":[]}}`, []string{"capabilities/tasks", "serverInfo/icons"}},
		"newest":          {"2026-07-28", "ListToolsResult", `{"tools":[],"anything":1}`, []string{}},
	} {
		got := mustSet(t, tc.revision).Newer(tc.definition, []byte(tc.value))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
