package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fabro-mcp/fabroapi"
	"fabro-mcp/fabroapi/wire"
	"fabro-mcp/protocol"
)

const (
	// taskLife is how long a task is known, and how long a gather without an
	// explicit timeout waits.
	taskLife = 24 * time.Hour
	// taskPoll is how often a host should ask for a task.
	taskPoll = 2 * time.Second
)

// gatherTasks runs gathers as tasks. A task is a view of runs: its id says what it
// waits for, so every process that has the key of sealed state can answer for it.
// Only what cannot be derived is stored: that a task was cancelled, and its final
// result.
type gatherTasks struct {
	host *host

	mu      sync.Mutex      // protects watched
	watched map[string]bool // tasks whose changes are announced, by id
}

// CreateTask makes a task of a gather. What keeps it from becoming one (arguments
// that are wrong or missing, runs that do not exist) the call itself says better.
func (t *gatherTasks) CreateTask(ctx context.Context, call *protocol.ToolCall, ttl time.Duration) (*protocol.Task, error) {
	p := new(gatherParams)
	if call.Name != nameGather || p.fields().Decode(call.Arguments) != nil {
		return nil, protocol.ErrNoTask
	}
	client, err := t.host.client(ctx)
	if err != nil {
		return nil, protocol.ErrNoTask
	}
	runs, err := resolve(ctx, client, p.RunIDs.Value)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, protocol.ErrNoTask
	}
	if ttl <= 0 || ttl > taskLife {
		ttl = taskLife
	}
	now := t.host.now()
	spec := &taskSpec{Created: now, Deadline: now.Add(ttl), TTL: ttl, Until: p.Until}
	if p.Timeout.Set {
		spec.Deadline = now.Add(time.Duration(p.Timeout.Value) * time.Second)
	}
	for _, run := range runs {
		spec.Runs = append(spec.Runs, run.ID)
	}
	id, err := t.host.tasks.seal(spec, client.Target().String())
	if errors.Is(err, protocol.ErrNoTask) {
		return nil, protocol.ErrNoTask
	}
	if err != nil {
		return nil, err
	}
	view := &taskView{spec: spec, id: id, f: newFollower(client, distinct(runs), t.host.now)}
	task := view.task(protocol.TaskWorking)
	task.StatusMessage = statusLine(view.f.runs)
	t.watch(id, spec, client)
	return task, nil
}

func distinct(runs []*wire.Run) []*wire.Run {
	seen := map[string]bool{}
	var out []*wire.Run
	for _, run := range runs {
		if !seen[run.ID] {
			seen[run.ID] = true
			out = append(out, run)
		}
	}
	return out
}

// taskView is a task at the moment of a request.
type taskView struct {
	spec *taskSpec
	id   string
	f    *follower
}

func (v *taskView) task(status protocol.TaskStatus) *protocol.Task {
	return &protocol.Task{
		ID: v.id, Status: status, CreatedAt: v.spec.Created, UpdatedAt: v.updated(), TTL: v.spec.TTL, PollInterval: taskPoll,
	}
}

// updated is when anything happened last in the runs.
func (v *taskView) updated() time.Time {
	last := v.spec.Created
	if v.f == nil {
		return last
	}
	for _, w := range v.f.runs {
		if w.run != nil && w.run.Timestamps.LastEventAt != nil && w.run.Timestamps.LastEventAt.After(last) {
			last = *w.run.Timestamps.LastEventAt
		}
	}
	return last
}

// GetTask derives where a task stands from the runs.
func (t *gatherTasks) GetTask(ctx context.Context, id string, x *protocol.Exchange) (*protocol.Task, error) {
	view, stored, client, err := t.open(ctx, id)
	if err != nil {
		return nil, err
	}
	if stored != nil {
		return stored.task(view), nil
	}
	if err := t.look(ctx, view, client); err != nil {
		// The task goes on; what the server has to say now is only that it cannot
		// look.
		task := view.task(protocol.TaskWorking)
		task.StatusMessage = "The Fabro server cannot be read just now: " + t.host.sentence(err)
		return task, nil
	}
	if ended := view.endedBy(t.host.now(), canAskTask(x, t.host)); ended != "" {
		return t.complete(view, ended, nil)
	}
	t.watch(id, view.spec, client) // a task of another process, too
	open := questionsOf(view.f.runs)
	if len(open) > 0 && canAskTask(x, t.host) {
		task := view.task(protocol.TaskInputRequired)
		task.StatusMessage = statusLine(view.f.runs)
		for _, o := range open {
			form, err := questionForm(o.w.run, &o.q, x.FormsHoldLists())
			if err != nil {
				continue
			}
			task.InputRequests = append(task.InputRequests, protocol.InputRequest{Key: o.q.ID, Form: &form})
		}
		if len(task.InputRequests) > 0 {
			return task, nil
		}
	}
	task := view.task(protocol.TaskWorking)
	task.StatusMessage = statusLine(view.f.runs)
	return task, nil
}

// canAskTask reports whether a task may show questions to this host.
func canAskTask(x *protocol.Exchange, h *host) bool {
	return !h.cfg.ReadOnly && x != nil && x.CanAsk(protocol.InputForm)
}

// open reads a task id, and what is stored of the task.
func (t *gatherTasks) open(ctx context.Context, id string) (*taskView, *storedTask, *fabroapi.Client, error) {
	spec, server, err := t.host.tasks.open(id)
	if err != nil {
		return nil, nil, nil, protocol.ErrTaskNotFound
	}
	view := &taskView{spec: spec, id: id}
	stored, err := t.host.tasks.load(id, t.host.now())
	if err != nil || stored != nil {
		return view, stored, nil, err
	}
	if t.host.now().After(spec.Created.Add(spec.TTL)) {
		return nil, nil, nil, protocol.ErrTaskNotFound
	}
	client, err := t.host.client(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if !sameServer(server, client.Target().String()) {
		return nil, nil, nil, protocol.ErrTaskNotFound
	}
	return view, nil, client, nil
}

// look reads the runs of a task.
func (t *gatherTasks) look(ctx context.Context, view *taskView, client *fabroapi.Client) error {
	var runs []*wire.Run
	for _, id := range view.spec.Runs {
		runs = append(runs, bareRun(id))
	}
	view.f = newFollower(client, distinct(runs), t.host.now)
	if err := view.f.lookAnew(ctx); err != nil {
		return err
	}
	for _, w := range view.f.runs {
		if !w.ended() {
			w.findStage(ctx, client)
		}
	}
	return ctx.Err()
}

// endedBy is how the gather of a task has ended, "" while it goes on.
func (v *taskView) endedBy(now time.Time, canAsk bool) string {
	all, attention := true, true
	for _, w := range v.f.runs {
		if w.ended() {
			continue
		}
		all = false
		if !w.waitsForPerson() {
			attention = false
		}
	}
	switch {
	case all:
		return endedTerminal
	case v.spec.Until == untilAttention && attention && !(canAsk && len(questionsOf(v.f.runs)) > 0):
		return endedAttention
	case now.After(v.spec.Deadline):
		return endedDeadline
	}
	return ""
}

// complete stores the result of a task, which never changes again.
func (t *gatherTasks) complete(view *taskView, endedBy string, notes []string) (*protocol.Task, error) {
	g := &gathering{r: &request{host: t.host}, f: view.f, endedBy: endedBy, notes: notes, state: &gatherState{Started: view.spec.Created}}
	byID := map[string]*followed{}
	for _, w := range view.f.runs {
		byID[w.id] = w
	}
	for _, id := range view.spec.Runs {
		g.order = append(g.order, byID[id])
	}
	out := g.result()
	stored := &storedTask{
		Status: protocol.TaskCompleted, Message: gatherHeadline(&out, countEnded(view.f.runs), len(view.f.runs), false),
		Text: t.host.gatherText(&out, view.f.runs, false), Result: &out, Updated: t.host.now(),
	}
	stored, err := t.host.tasks.store(view.id, stored)
	if err != nil {
		return nil, err
	}
	return stored.task(view), nil
}

func countEnded(runs []*followed) int {
	n := 0
	for _, w := range runs {
		if w.ended() {
			n++
		}
	}
	return n
}

// UpdateTask passes answers on. Keys that name no open question are ignored: they
// were answered elsewhere, or never asked.
func (t *gatherTasks) UpdateTask(ctx context.Context, id string, responses map[string]protocol.InputResponse, x *protocol.Exchange) error {
	view, stored, client, err := t.open(ctx, id)
	if err != nil || stored != nil {
		return err
	}
	if err := t.look(ctx, view, client); err != nil {
		return err
	}
	r := &request{host: t.host, tool: t.host.spec(nameGather), call: &protocol.ToolCall{Name: nameGather, Exchange: x}}
	var notes []string
	declined := false
	for _, o := range questionsOf(view.f.runs) {
		response, given := responses[o.q.ID]
		if !given || response.Elicit == nil {
			continue
		}
		if response.Elicit.Action != protocol.ActionAccept {
			notes, declined = append(notes, notAnswered(o.q.ID, o.w.id, response.Elicit)), true
			continue
		}
		answer, err := formAnswerOf(&o.q, response.Elicit.Content)
		if err != nil {
			return &protocol.Error{Code: protocol.CodeInvalidParams, Message: err.Error()}
		}
		err = r.submitAnswer(ctx, client, o.w.id, o.q.ID, answer)
		if err != nil && !isConflict(err) && !isGone(err) {
			return &protocol.Error{Code: protocol.CodeInvalidParams, Message: fmt.Sprintf("question %s: %s", o.q.ID, t.host.sentence(err))}
		}
		o.w.answer(o.q.ID)
		notes = append(notes, answerNote(o.w, &o.q, answer, err))
	}
	if !declined {
		return nil
	}
	view.f.look(ctx, followedPoll, false) // the runs that were answered go on
	_, err = t.complete(view, endedDeclined, notes)
	return err
}

// CancelTask ends the waiting. The runs go on.
func (t *gatherTasks) CancelTask(ctx context.Context, id string, _ *protocol.Exchange) (*protocol.Task, error) {
	spec, _, err := t.host.tasks.open(id)
	if err != nil {
		return nil, protocol.ErrTaskNotFound
	}
	view := &taskView{spec: spec, id: id}
	stored, err := t.host.tasks.load(id, t.host.now())
	if err == nil && stored == nil {
		stored, err = t.host.tasks.store(id, &storedTask{
			Status: protocol.TaskCancelled, Message: "Waiting was cancelled; the runs go on.", Updated: t.host.now(),
		})
	}
	if err != nil {
		return nil, err
	}
	return stored.task(view), nil
}

// spec finds an offered tool.
func (h *host) spec(name string) *toolSpec {
	for _, t := range h.tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// findStage learns from the newest events which stage runs, for a status line.
func (w *followed) findStage(ctx context.Context, client *fabroapi.Client) {
	page, err := client.Events(ctx, w.id, fabroapi.EventsOptions{Desc: true, Limit: 20})
	if err != nil {
		return // the line does without
	}
	for i := len(page.Data) - 1; i >= 0; i-- {
		w.note(&page.Data[i])
	}
}
