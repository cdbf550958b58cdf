package catalogue

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sort"
	"strings"
)

// Digest is the hash of a set of transcripts: of the names and contents of all .txt files
// below root, in the order of their names. A revision's verdicts are comparable as long
// as the digest of its set stays the same; a released set is changed only on purpose, by
// writing the new digest beside the old one in the change that explains it.
func Digest(fsys fs.FS, root string) (string, error) {
	var names []string
	err := fs.WalkDir(fsys, root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".txt") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("transcripts below %s: %w", root, err)
	}
	sort.Strings(names)
	sum := sha256.New()
	for _, name := range names {
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
