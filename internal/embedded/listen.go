package embedded

import (
	"crypto/sha256"
	"encoding/hex"
)

// hash is a short name for a path.
func hash(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}
