package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// randomName returns 16 random bytes as text that is safe in a file name.
func randomName() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// marks is a set of names, kept as files where there is a directory.
type marks struct {
	dir string

	mu   sync.Mutex // protects held
	held map[string]bool
}

func openMarks(stateDir, kind string) (*marks, error) {
	m := &marks{held: make(map[string]bool)}
	if stateDir == "" {
		return m, nil
	}
	m.dir = filepath.Join(stateDir, kind)
	return m, os.MkdirAll(m.dir, 0o700)
}

// safe reports whether a name that a client sent may become a file name.
func safe(name string) bool {
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// set adds a name; it fails with fs.ErrExist where it is there already.
func (m *marks) set(name string) error {
	if !safe(name) {
		return fs.ErrInvalid
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[name] {
		return fs.ErrExist
	}
	if m.dir != "" {
		file, err := os.OpenFile(filepath.Join(m.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	m.held[name] = true
	return nil
}

func (m *marks) has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[name] {
		return true
	}
	if m.dir == "" || !safe(name) {
		return false
	}
	_, err := os.Stat(filepath.Join(m.dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}
