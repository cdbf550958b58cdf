package transcripts

import (
	"io/fs"
	"testing"

	"fabro-mcp/conformance/transcript"
)

func parseAll(t *testing.T) map[string]*transcript.Transcript {
	t.Helper()
	all := map[string]*transcript.Transcript{}
	for _, p := range Paths() {
		text, err := fs.ReadFile(FS(), p)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := transcript.Parse(p, text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all[p] = parsed
	}
	return all
}

func TestEveryTranscriptParses(t *testing.T) { parseAll(t) }
