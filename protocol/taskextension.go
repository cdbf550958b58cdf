package protocol

// The tasks extension of 2026-07-28: the state of a task carries its result, its
// error, or the questions it has.

// appendTaskDetails appends a task with all that its status brings along.
func (r *request) appendTaskDetails(b []byte, t *Task) ([]byte, error) {
	b = r.appendTask(b, t)
	switch t.Status {
	case TaskInputRequired:
		b = append(key(b, "inputRequests"), '{')
		for i := range t.InputRequests {
			q := &t.InputRequests[i]
			b = append(quote(separate(b), q.Key), ':')
			var err error
			if b, err = q.append(b, r.rev); err != nil {
				return b, err
			}
		}
		b = append(b, '}')
	case TaskCompleted:
		b = append(key(b, "result"), '{')
		b = r.appendTaskResult(b, t)
		b = append(b, '}')
	case TaskFailed:
		e := t.Error
		if e == nil {
			e = &Error{Code: CodeInternal, Message: "The task failed"}
		}
		b = appendError(b, e)
	}
	return b, nil
}

// appendTaskResult appends the members of the result as the plain call would have
// returned it, without the end that every result has.
func (r *request) appendTaskResult(b []byte, t *Task) []byte {
	result := t.Result
	if result == nil {
		result = &ToolResult{}
	}
	b = r.appendToolResult(b, untypedTool, result)
	if r.rev.has(featResultType) {
		b = keyString(b, "resultType", "complete")
	}
	return keyMeta(b, result.Meta)
}

// untypedTool stands for the tool of a task's result, which the provider has held
// against the tool's schema if it has one.
var untypedTool = &compiledTool{Tool: &Tool{Name: "the task"}}

func serveTasksUpdate(r *request, b []byte) ([]byte, error) {
	responses := r.param("inputResponses")
	if !isObject(responses) {
		return b, invalidParams("Parameter inputResponses must be an object")
	}
	task, err := r.getTask()
	if err != nil {
		return b, err
	}
	found := make(map[string]InputResponse)
	var bad *Error
	members(responses, func(name, value []byte) bool {
		for i := range task.InputRequests {
			q := &task.InputRequests[i]
			if q.Key != string(name) {
				continue
			}
			resp, err := q.read(value)
			if err != nil {
				bad = invalidParams("Unusable response in inputResponses.%s: %v", clip(q.Key), err)
				return false
			}
			found[q.Key] = resp
		}
		return true
	})
	if bad != nil {
		return b, bad
	}
	if len(found) == 0 {
		return b, nil // answered before, superseded, or never asked
	}
	_, err = guard(r, func() (struct{}, error) {
		return struct{}{}, r.conn.server.Tasks.UpdateTask(&r.ctx, task.ID, found, &r.x)
	})
	return b, err
}

// followTasks returns those of the tasks that exist, for a listener to follow.
func (c *conn) followTasks(r *request, l *listener, ids []string) []string {
	if ids == nil {
		return nil
	}
	known := []string{}
	l.tasks = make(map[string]bool)
	for _, id := range ids {
		if l.tasks[id] {
			continue
		}
		if _, err := c.server.Tasks.GetTask(&r.ctx, id, &r.x); err != nil {
			continue
		}
		l.tasks[id] = true
		known = append(known, id)
	}
	return known
}
