package tools

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"fabro-mcp/internal/atomicfile"
	"fabro-mcp/protocol"
)

// taskSpec is what a task id says.
type taskSpec struct {
	Runs     []string // ids, in the order asked for
	Created  time.Time
	Deadline time.Time
	TTL      time.Duration
	Until    string
}

// sealPurpose binds a seal to task ids.
const sealPurpose = "fabro task"

// taskVersion starts the packed form of a task.
const taskVersion = 1

// taskHead is the fixed part of the packed form: version, until, server (8 bytes
// of a hash), created, deadline and life in milliseconds, random bytes.
const taskHead = 1 + 1 + 8 + 8 + 8 + 8 + 16

// taskStore seals task ids and keeps what cannot be derived from them under
// <state>/tasks, or in memory where there is no state directory.
type taskStore struct {
	dir    string
	sealer protocol.Sealer

	mu     sync.Mutex // protects memory
	memory map[string]*storedTask
}

// storedTask is a task in a final state.
type storedTask struct {
	Status  protocol.TaskStatus `json:"status"`
	Message string              `json:"message"`
	Text    string              `json:"text,omitempty"`
	Result  *gatherResult       `json:"result,omitempty"`
	Updated time.Time           `json:"updated"`
}

func newTaskStore(dir string, sealer protocol.Sealer) *taskStore {
	s := &taskStore{sealer: sealer, memory: map[string]*storedTask{}}
	if dir != "" {
		s.dir = filepath.Join(dir, "tasks")
	}
	return s
}

// seal makes the id of a task.
func (s *taskStore) seal(spec *taskSpec, server string) (string, error) {
	b := make([]byte, 0, taskHead+16*len(spec.Runs))
	b = append(b, taskVersion, untilByte(spec.Until))
	b = append(b, serverMark(server)...)
	for _, v := range []int64{spec.Created.UnixMilli(), spec.Deadline.UnixMilli(), spec.TTL.Milliseconds()} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("no randomness for a task id: %w", err)
	}
	b = append(b, random[:]...)
	for _, run := range spec.Runs {
		id, err := ulid.ParseStrict(run)
		if err != nil {
			return "", fmt.Errorf("run id %q is no ULID, so it cannot be waited for in a task: %w", run, protocol.ErrNoTask)
		}
		b = append(b, id[:]...)
	}
	return s.sealer.Seal(sealPurpose, b, spec.TTL+time.Hour)
}

// open reads the id of a task; server is the mark of the server that has its runs.
func (s *taskStore) open(id string) (spec *taskSpec, server []byte, err error) {
	b, err := s.sealer.Open(sealPurpose, id)
	if err != nil {
		return nil, nil, err
	}
	if len(b) < taskHead || b[0] != taskVersion || (len(b)-taskHead)%16 != 0 {
		return nil, nil, errors.New("not the id of a task")
	}
	millis := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	spec = &taskSpec{
		Until: untilTerminal, Created: time.UnixMilli(millis(10)).UTC(), Deadline: time.UnixMilli(millis(18)).UTC(),
		TTL: time.Duration(millis(26)) * time.Millisecond,
	}
	if b[1] == untilByte(untilAttention) {
		spec.Until = untilAttention
	}
	for at := taskHead; at < len(b); at += 16 {
		spec.Runs = append(spec.Runs, ulid.ULID(b[at:at+16]).String())
	}
	return spec, b[2:10], nil
}

func untilByte(until string) byte {
	if until == untilAttention {
		return 1
	}
	return 0
}

// serverMark identifies a server in a task id.
func serverMark(server string) []byte {
	sum := sha256.Sum256([]byte(server))
	return sum[:8]
}

func sameServer(mark []byte, server string) bool { return string(mark) == string(serverMark(server)) }

func (s *taskStore) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+".json")
}

// load reads the final state of a task, nil while it has none.
func (s *taskStore) load(id string, now time.Time) (*storedTask, error) {
	s.mu.Lock()
	stored := s.memory[id]
	s.mu.Unlock()
	if stored != nil || s.dir == "" {
		return stored, nil
	}
	data, err := os.ReadFile(s.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the state of the task cannot be read: %w", err)
	}
	stored = new(storedTask)
	if err := json.Unmarshal(data, stored); err != nil {
		return nil, nil // damaged: it can be derived again
	}
	return stored, nil
}

// store keeps a final state, unless the task has one already: the first wins. It
// returns the state that holds.
func (s *taskStore) store(id string, final *storedTask) (*storedTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if earlier := s.memory[id]; earlier != nil {
		return earlier, nil
	}
	if s.dir == "" {
		for known, old := range s.memory {
			if final.Updated.Sub(old.Updated) > 2*taskLife {
				delete(s.memory, known)
			}
		}
		s.memory[id] = final
		return final, nil
	}
	data, err := json.Marshal(final)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("the state of the task cannot be kept: %w", err)
	}
	s.sweep(final.Updated)
	path := s.path(id)
	temp, err := os.CreateTemp(s.dir, ".task-*")
	if err != nil {
		return nil, fmt.Errorf("the state of the task cannot be kept: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return nil, fmt.Errorf("the state of the task cannot be kept: %w", err)
	}
	// A link fails where another process was first; its state then holds.
	if err := os.Link(temp.Name(), path); errors.Is(err, os.ErrExist) {
		if earlier, err := os.ReadFile(path); err == nil {
			stored := new(storedTask)
			if json.Unmarshal(earlier, stored) == nil {
				return stored, nil
			}
		}
		return final, atomicfile.Write(path, data, 0o600)
	} else if err != nil {
		return final, atomicfile.Write(path, data, 0o600) // a file system without links
	}
	return final, nil
}

// sweep deletes states of tasks that nobody can ask for any more.
func (s *taskStore) sweep(now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && now.Sub(info.ModTime()) > 2*taskLife {
			os.Remove(filepath.Join(s.dir, entry.Name()))
		}
	}
}

// task is the protocol's form of a final state.
func (s *storedTask) task(view *taskView) *protocol.Task {
	task := view.task(s.Status)
	task.StatusMessage, task.UpdatedAt = s.Message, s.Updated
	if s.Result == nil {
		return task
	}
	task.Result = &protocol.ToolResult{Content: []protocol.Content{protocol.Text(s.Text)}, Structured: s.Result}
	if structured, err := cleanValue(s.Result); err == nil {
		task.Result.Structured = structured
	}
	return task
}
