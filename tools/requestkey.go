package tools

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/internal/atomicfile"
)

// keyLife is how long a request key is remembered.
const keyLife = 24 * time.Hour

// keyRun is a run that was created under a request key, by its place in the batch.
type keyRun struct {
	RunID    string `json:"run_id"`
	Workflow string `json:"workflow"`
	Start    bool   `json:"start"`
}

// begunRun is a run that is being created: whether the server has it is known only
// when it is among the runs of its record.
type begunRun struct {
	At       time.Time `json:"at"`
	Workflow string    `json:"workflow"`
	Start    bool      `json:"start"`
}

// keyRecord is what is remembered of a request key. A nil record remembers nothing.
type keyRecord struct {
	Created time.Time `json:"created"`
	Digest  string    `json:"digest"` // of the arguments
	Runs    []keyRun  `json:"runs"`
	// Begun is the run after those. It is written before the run is created, so that
	// a call that is killed meanwhile leaves a trace.
	Begun *begunRun `json:"begun"`
	// Mark is random; with the run's place it makes the label of a run.
	Mark string `json:"mark"`

	otherArguments bool // this call's arguments differ from the first call's
	path           string
}

// at is the run that was created for item i, nil where there is none.
func (k *keyRecord) at(i int) *keyRun {
	if k == nil || i >= len(k.Runs) {
		return nil
	}
	return &k.Runs[i]
}

// mark is the value of the label keyLabel of the run at place i.
func (k *keyRecord) mark(i int) string {
	if k.Mark == "" {
		k.Mark = rand.Text()
	}
	return k.Mark + "-" + strconv.Itoa(i)
}

// begin remembers that the next run is about to be created.
func (k *keyRecord) begin(run begunRun) error {
	if k == nil {
		return nil
	}
	k.Begun = &run
	return k.save()
}

// add remembers the run that was created, before the next one is.
func (k *keyRecord) add(run keyRun) error {
	if k == nil {
		return nil
	}
	k.Runs, k.Begun = append(k.Runs, run), nil
	return k.save()
}

func (k *keyRecord) save() error {
	if k.path == "" {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return atomicfile.Write(k.path, data, 0o600)
}

// keyStore keeps request keys under <state>/requests, one file a key, or in memory
// where there is no state directory.
type keyStore struct {
	dir string

	mu     sync.Mutex // protects the fields below
	memory map[string]*keyRecord
	busy   map[string]chan struct{} // keys in use by this process
}

func newKeyStore(dir string) *keyStore {
	k := &keyStore{memory: map[string]*keyRecord{}, busy: map[string]chan struct{}{}}
	if dir != "" {
		k.dir = filepath.Join(dir, "requests")
	}
	return k
}

// open finds or begins the record of a key for one server. Until done is called,
// other calls with the same key wait, in this process and in others, so that two
// calls at once create nothing twice.
func (k *keyStore) open(ctx context.Context, server, key, digest string, now time.Time) (record *keyRecord, done func(), err error) {
	sum := sha256.Sum256([]byte(server + "\x00" + key))
	name := hex.EncodeToString(sum[:])
	release, err := k.acquire(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	fresh := &keyRecord{Created: now.UTC(), Digest: digest}
	if k.dir == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		record = k.memory[name]
		if record == nil || now.Sub(record.Created) > keyLife {
			for known, old := range k.memory {
				if now.Sub(old.Created) > keyLife {
					delete(k.memory, known)
				}
			}
			record = fresh
			k.memory[name] = record
		}
		record.otherArguments = record.Digest != digest
		return record, release, nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		release()
		return nil, nil, fmt.Errorf("request_key cannot be kept: %w", err)
	}
	lock := flock.New(filepath.Join(k.dir, name+".lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		release()
		return nil, nil, fmt.Errorf("request_key is in use by another call: %w", err)
	}
	done = func() {
		lock.Unlock() // closing the file unlocks as well
		release()
	}
	path := filepath.Join(k.dir, name+".json")
	record, err = readKey(path, now)
	if err != nil {
		done()
		return nil, nil, err
	}
	if record == nil {
		record = fresh
		k.sweep(now)
	}
	record.path = path
	record.otherArguments = record.Digest != digest
	return record, done, nil
}

// acquire makes the calls of this process with one key take turns.
func (k *keyStore) acquire(ctx context.Context, name string) (release func(), err error) {
	for {
		k.mu.Lock()
		wait, taken := k.busy[name]
		if !taken {
			turn := make(chan struct{})
			k.busy[name] = turn
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.busy, name)
				k.mu.Unlock()
				close(turn)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readKey reads a record that is still valid; nil where there is none.
func readKey(path string, now time.Time) (*keyRecord, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("request_key cannot be looked up: %w", err)
	}
	var record keyRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, fmt.Errorf("request_key cannot be looked up: %s is damaged (%w); use another key", path, err)
	}
	if now.Sub(record.Created) > keyLife {
		return nil, nil
	}
	return &record, nil
}

// sweep deletes what has expired. What cannot be deleted stays.
func (k *keyStore) sweep(now time.Time) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && now.Sub(info.ModTime()) > 2*keyLife {
			os.Remove(filepath.Join(k.dir, entry.Name()))
		}
	}
}

// digest identifies arguments, whatever their order and white space.
func digest(arguments json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var v any
	canonical := []byte(arguments)
	if dec.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil { // sorts the members
			canonical = b
		}
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
