package runner

import (
	"fmt"
	"os"
	"sync"

	"fabro-mcp/conformance/transcript"
)

// Updates collects, over a whole run, the places of transcripts whose expected
// values differ from what came, so that the files can be rewritten.
type Updates struct {
	mu    sync.Mutex // protects files
	files map[string]*update
}

type update struct {
	t         *transcript.Transcript
	edits     []transcript.Edit
	conflicts int
}

func (u *Updates) note(t *transcript.Transcript, wrong []transcript.Mismatch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.files == nil {
		u.files = map[string]*update{}
	}
	f := u.files[t.Path]
	if f == nil {
		f = &update{t: t}
		u.files[t.Path] = f
	}
	for _, m := range wrong {
		edit, ok := m.Edit()
		if !ok {
			f.conflicts++
			continue
		}
		known := false
		for _, other := range f.edits {
			if edit.Overlaps(other) {
				known = true
				if edit != other {
					f.conflicts++ // two revisions answered differently
				}
			}
		}
		if !known {
			f.edits = append(f.edits, edit)
		}
	}
}

// Write rewrites the files and says what it did, a line each. A place that two
// revisions answered differently is left for a person.
func (u *Updates) Write() ([]string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var said []string
	for path, f := range u.files {
		if len(f.edits) > 0 {
			if err := os.WriteFile(path, transcript.Apply(f.t.Source(), f.edits), 0o644); err != nil {
				return said, err
			}
			said = append(said, fmt.Sprintf("%s: expectations rewritten: %d", path, len(f.edits)))
		}
		if f.conflicts > 0 {
			said = append(said, fmt.Sprintf("%s: left for a person, since a value is absent or the answers differ between revisions: %d", path, f.conflicts))
		}
	}
	return said, nil
}
