package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"fabro-mcp/internal/atomicfile"
	"fabro-mcp/protocol"
)

// taskFiles keeps one JSON file a task. Each process holds a lock on a file of its
// own for as long as it lives; a task names the lock of its process, and that says
// whether somebody still works on it.
type taskFiles struct {
	dir   string
	owner string
	alive *flock.Flock
	guard *flock.Flock // held while a task's file is read and written again
}

// taskFile is what is kept of a task.
type taskFile struct {
	Owner         string              `json:"owner"`
	Status        protocol.TaskStatus `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     time.Time           `json:"createdAt"`
	UpdatedAt     time.Time           `json:"updatedAt"`
	TTL           time.Duration       `json:"ttl"`
	Questions     []question          `json:"questions,omitempty"`
	Result        json.RawMessage     `json:"result,omitempty"`
	Error         *protocol.Error     `json:"error,omitempty"`
}

type question struct {
	Key  string               `json:"key"`
	Form *protocol.ElicitForm `json:"form"`
}

func openTaskFiles(stateDir string) (*taskFiles, error) {
	t := &taskFiles{dir: filepath.Join(stateDir, "tasks"), owner: randomName()}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, err
	}
	t.alive = flock.New(t.lockPath(t.owner))
	t.guard = flock.New(filepath.Join(t.dir, "guard.lock"))
	return t, t.alive.Lock()
}

func (t *taskFiles) lockPath(owner string) string { return filepath.Join(t.dir, owner+".lock") }
func (t *taskFiles) path(id string) string        { return filepath.Join(t.dir, id+".json") }

// ownerLives reports whether the process that holds a task's lock is still there.
func (t *taskFiles) ownerLives(owner string) bool {
	if owner == t.owner {
		return true
	}
	lock := flock.New(t.lockPath(owner))
	free, err := lock.TryLock()
	if free {
		lock.Unlock()
	}
	return err == nil && !free
}

func (t *taskFiles) read(id string) (*taskFile, error) {
	if !safe(id) {
		return nil, protocol.ErrTaskNotFound
	}
	raw, err := os.ReadFile(t.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, protocol.ErrTaskNotFound
	}
	if err != nil {
		return nil, err
	}
	var file taskFile
	return &file, json.Unmarshal(raw, &file)
}

// load returns the state of a task of any process.
func (t *taskFiles) load(id string) (*protocol.Task, error) {
	file, err := t.read(id)
	if err != nil {
		return nil, err
	}
	if time.Since(file.CreatedAt) > file.TTL {
		os.Remove(t.path(id))
		return nil, protocol.ErrTaskNotFound
	}
	if !file.Status.Final() && !t.ownerLives(file.Owner) {
		file.Status, file.StatusMessage, file.Questions = protocol.TaskFailed, "The server ended before the task did", nil
		file.Error = &protocol.Error{Code: protocol.CodeInternal, Message: file.StatusMessage}
	}
	return file.task(id)
}

func (f *taskFile) task(id string) (*protocol.Task, error) {
	task := &protocol.Task{
		ID: id, Status: f.Status, StatusMessage: f.StatusMessage, CreatedAt: f.CreatedAt, UpdatedAt: f.UpdatedAt,
		TTL: f.TTL, PollInterval: pollInterval, Error: f.Error,
	}
	for _, q := range f.Questions {
		task.InputRequests = append(task.InputRequests, protocol.InputRequest{Key: q.Key, Form: q.Form})
	}
	if f.Result == nil {
		return task, nil
	}
	var err error
	task.Result, err = unmarshalResult(f.Result)
	return task, err
}

// save writes the state of a task of this process, unless another process has
// ended it, and returns what is in force.
func (t *taskFiles) save(task *protocol.Task) (*protocol.Task, error) {
	return t.locked(func() (*protocol.Task, error) {
		if before, err := t.read(task.ID); err == nil && before.Status.Final() {
			return before.task(task.ID)
		}
		file := &taskFile{
			Owner: t.owner, Status: task.Status, StatusMessage: task.StatusMessage, CreatedAt: task.CreatedAt, UpdatedAt: task.UpdatedAt,
			TTL: task.TTL, Error: task.Error,
		}
		for _, q := range task.InputRequests {
			if q.Form != nil {
				file.Questions = append(file.Questions, question{q.Key, q.Form})
			}
		}
		if task.Result != nil {
			file.Result = marshalResult(task.Result)
		}
		return task, t.write(task.ID, file)
	})
}

// cancel marks a task of another process as cancelled.
func (t *taskFiles) cancel(id string) (*protocol.Task, error) {
	return t.locked(func() (*protocol.Task, error) {
		file, err := t.read(id)
		if err != nil {
			return nil, err
		}
		if !file.Status.Final() {
			file.Status, file.UpdatedAt, file.Questions = protocol.TaskCancelled, time.Now(), nil
			if err := t.write(id, file); err != nil {
				return nil, err
			}
		}
		return file.task(id)
	})
}

func (t *taskFiles) locked(f func() (*protocol.Task, error)) (*protocol.Task, error) {
	if err := t.guard.Lock(); err != nil {
		return nil, err
	}
	defer t.guard.Unlock()
	return f()
}

func (t *taskFiles) write(id string, file *taskFile) error {
	raw, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(t.path(id), raw, 0o600)
}
