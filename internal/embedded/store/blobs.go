package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// Hash is the name of a blob: the SHA-256 of its content in 64 lower-case hex digits.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// PutBlob keeps content for a run and returns its hash. The same content is kept once; it counts among the bytes of every run that has it.
func (s *Store) PutBlob(num int64, content []byte) (string, error) {
	if content == nil {
		content = []byte{}
	}
	hash := Hash(content)
	return hash, s.do(func(w *writer) error { return w.putBlob(num, hash, content) })
}

func (w *writer) putBlob(num int64, hash string, content []byte) error {
	if _, err := w.insertBlob.Exec(hash, content); err != nil {
		return err
	}
	var blob int64
	if err := w.blobNum.QueryRow(hash).Scan(&blob); err != nil {
		return err
	}
	res, err := w.owner.Exec(num, blob)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err // the run has it already
	}
	_, err = w.addBytes.Exec(len(content), num)
	return err
}

// Blob returns the content with this hash, or ErrNotFound.
func (s *Store) Blob(ctx context.Context, hash string) ([]byte, error) {
	var content []byte
	err := s.read.QueryRowContext(ctx, "SELECT content FROM blobs WHERE hash = ?", hash).Scan(&content)
	if isNoRows(err) {
		return nil, ErrNotFound
	}
	return content, err
}

// BlobOf is Blob for the blobs of one run only.
func (s *Store) BlobOf(ctx context.Context, num int64, hash string) ([]byte, error) {
	var content []byte
	err := s.read.QueryRowContext(ctx, "SELECT content FROM blobs b JOIN run_blobs r ON r.blob = b.num WHERE b.hash = ? AND r.run = ?", hash, num).Scan(&content)
	if isNoRows(err) {
		return nil, ErrNotFound
	}
	return content, err
}
