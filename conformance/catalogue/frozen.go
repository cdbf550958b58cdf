package catalogue

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Digest is the hash of a set of transcripts: of their names and contents, in the order of
// the names. A revision's verdicts are comparable as long as the digest of its set stays
// the same; a released set is changed only on purpose, by writing down the new digest in
// the change that explains it.
func Digest(fsys fs.FS, paths []string) (string, error) {
	sum := sha256.New()
	for _, name := range slices.Sorted(slices.Values(paths)) {
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return "", err
		}
		// Lengths keep a name from running into its content.
		fmt.Fprintf(sum, "%d %s %d\n", len(name), name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ParseFrozen reads a list of frozen sets: a line "SET DIGEST" each, with blank lines and
// lines that start with # left out.
func ParseFrozen(text string) (map[string]string, error) {
	frozen := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		set, digest, ok := strings.Cut(line, " ")
		if !ok || len(digest) != 2*sha256.Size {
			return nil, fmt.Errorf("line %d: want SET and a SHA-256 in hex, got %q", n, line)
		}
		if _, twice := frozen[set]; twice {
			return nil, fmt.Errorf("line %d: %s is frozen twice", n, set)
		}
		frozen[set] = digest
	}
	return frozen, lines.Err()
}
