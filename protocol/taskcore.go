package protocol

import (
	"time"
)

// The core tasks of 2025-11-25: the client asks for a task and fetches its result,
// waiting if need be; questions reach it while it waits.

// resultPoll is how often a waiting tasks/result looks again when nobody calls
// TaskChanged and the task names no interval.
const resultPoll = time.Second

// maxFollowed bounds the tasks of which a session is told unasked.
const maxFollowed = 1024

// follow remembers that the session created a task.
func (s *session) follow(id string, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil {
		s.tasks = make(map[string]*request)
	}
	if len(s.tasks) < maxFollowed {
		s.tasks[id] = r
	}
}

func (s *session) follows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id] != nil
}

// sessionTask renders the state of a task for notifications/tasks/status; nil for
// nothing to tell. A task that has ended is told of once.
func (c *conn) sessionTask(s *session, id string) []byte {
	s.mu.Lock()
	r := s.tasks[id]
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	task, err := c.server.Tasks.GetTask(c.ctx, id, &r.x)
	if err != nil {
		return nil
	}
	if task.Status.Final() {
		s.mu.Lock()
		delete(s.tasks, id)
		s.mu.Unlock()
	}
	return append(r.appendTask([]byte{'{'}, task), '}')
}

func serveTasksResult(r *request, b []byte) ([]byte, error) {
	for {
		changed := r.conn.server.signal.wait()
		task, err := r.getTask()
		if err != nil {
			return b, err
		}
		related := map[string]any{metaRelatedTask: map[string]string{"taskId": task.ID}}
		switch task.Status {
		case TaskCompleted:
			b = r.appendCoreResult(b, task, related)
			return b, nil
		case TaskFailed:
			if task.Error != nil {
				return b, task.Error
			}
			return b, &Error{Code: CodeInternal, Message: "The task failed"}
		case TaskCancelled:
			return b, &Error{Code: CodeInternal, Message: "The task was cancelled"}
		case TaskInputRequired:
			if len(task.InputRequests) > 0 {
				if err := r.askForTask(task); err != nil {
					return b, err
				}
				continue
			}
		}
		pause := task.PollInterval
		if pause <= 0 {
			pause = resultPoll
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return b, r.ctx.Err()
		case <-r.conn.inputClosed:
			timer.Stop()
			return b, &Error{Code: CodeInternal, Message: "The task is still " + string(task.Status) + "; ask for its result again"}
		}
		timer.Stop()
	}
}

func (r *request) appendCoreResult(b []byte, task *Task, related map[string]any) []byte {
	result := task.Result
	if result == nil {
		result = &ToolResult{}
	}
	for k, v := range result.Meta {
		if _, taken := related[k]; !taken {
			related[k] = v
		}
	}
	r.resultMeta = related
	return r.appendToolResult(b, untypedTool, result)
}

// askForTask puts the first outstanding question of a task to the client, marked
// with the task, and hands the response to the provider.
func (r *request) askForTask(task *Task) error {
	q := task.InputRequests[0]
	if !r.x.CanAsk(q.kind()) {
		return ErrCannotAsk
	}
	body, err := q.append(nil, r.rev)
	if err != nil {
		return err
	}
	// body ends in the brackets of params and of itself.
	body = body[:len(body)-2]
	body = append(key(body, "_meta"), '{')
	body = append(key(body, metaRelatedTask), '{')
	body = append(keyString(body, "taskId", task.ID), "}}}}"...)
	raw, err := r.conn.askPeer(&r.ctx, r, body)
	if err != nil {
		return err
	}
	resp, err := q.read(raw)
	if err != nil {
		return err
	}
	_, err = guard(r, func() (struct{}, error) {
		return struct{}{}, r.conn.server.Tasks.UpdateTask(&r.ctx, task.ID, map[string]InputResponse{q.Key: resp}, &r.x)
	})
	return err
}
