package protocol

import (
	"context"
	"encoding/json"
	"sync"
)

// ListKind is a list whose changes are announced.
type ListKind uint8

// The lists that a revision announces with notifications/<list>/list_changed.
const (
	ToolList ListKind = iota
	PromptList
	ResourceList
)

var listChangedMethods = [...]string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"}

// Changed announces that a list has changed to everybody who wants to know. It
// never waits; changes in quick succession may become one notification.
func (s *Server) Changed(kind ListKind) {
	if s.Check() != nil || s.opts.StaticLists || !s.declaresList(kind) {
		return
	}
	s.eachConn(func(c *conn) { c.events.add(event{kind: listEvent, list: kind}) })
}

func (s *Server) declaresList(kind ListKind) bool {
	switch kind {
	case ToolList:
		return s.hasTools()
	case PromptList:
		return s.hasPrompts()
	}
	return s.hasResources()
}

// ResourceUpdated tells the subscribers of a uri that its content has changed. It
// never waits.
func (s *Server) ResourceUpdated(uri string) {
	if s.Check() != nil {
		return
	}
	s.eachConn(func(c *conn) { c.events.add(event{kind: resourceEvent, name: uri}) })
}

// TaskChanged tells those who follow a task that it has changed, and wakes whoever
// waits for its result. It never waits.
func (s *Server) TaskChanged(id string) {
	if s.Check() != nil {
		return
	}
	s.eachConn(func(c *conn) { c.events.add(event{kind: taskEvent, name: id}) })
	s.signal.wake()
}

func (s *Server) canListen() bool {
	return !s.opts.StaticLists && (s.hasTools() || s.hasPrompts() || s.hasResources()) || s.canSubscribe() || s.hasTasks()
}

func serveListen(r *request, b []byte) ([]byte, error) {
	c := r.conn
	l := &listener{request: r}
	ack, err := c.readFilter(r, l)
	if err != nil {
		return b, err
	}
	c.events.register(l)
	r.stays = true
	line := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`...)
	line = append(keyRaw(line, "notifications", ack), `,"_meta":{`...)
	line = append(keyRaw(line, metaSubscription, r.id), "}}}\n"...)
	if !c.out.send(r, line, false) {
		c.endListener(r) // cancelled meanwhile
		return b, nil
	}
	c.events.acknowledge(l)
	return b, nil
}

// readFilter reads what the client wants to be told, and renders the part of it
// that the server honours.
func (c *conn) readFilter(r *request, l *listener) ([]byte, error) {
	raw := r.param("notifications")
	if !isObject(raw) {
		return nil, invalidParams("Parameter notifications must be an object")
	}
	var bad *Error
	ack := []byte{'{'}
	var uris, tasks []string
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "toolsListChanged", "promptsListChanged", "resourcesListChanged":
			if !isBool(value) {
				bad = invalidParams("Parameter notifications.%s must be a boolean", name)
				return false
			}
			kind := map[string]ListKind{"toolsListChanged": ToolList, "promptsListChanged": PromptList, "resourcesListChanged": ResourceList}[string(name)]
			if string(value) == "true" && !c.opts.StaticLists && c.server.declaresList(kind) {
				l.lists[kind] = true
				ack = keyBool(ack, string(name), true)
			}
		case "resourceSubscriptions":
			uris, bad = stringArray("resourceSubscriptions", value)
		case "taskIds":
			if c.server.hasTasks() {
				tasks, bad = stringArray("taskIds", value)
			}
		}
		return bad == nil
	})
	if bad != nil {
		return nil, bad
	}
	if tasks != nil && !r.caps.tasksExtension {
		return nil, errTasksUndeclared
	}
	if uris = c.watchAll(r, l, uris); uris != nil {
		ack = keyStringList(ack, "resourceSubscriptions", uris)
	}
	if tasks = c.followTasks(r, l, tasks); tasks != nil {
		ack = keyStringList(ack, "taskIds", tasks)
	}
	return append(ack, '}'), nil
}

func stringArray(name string, value []byte) (list []string, bad *Error) {
	if !isArray(value) {
		return nil, invalidParams("Parameter notifications.%s must be an array", name)
	}
	list = []string{}
	elements(value, func(e []byte) bool {
		s, ok := stringValue(e)
		if !ok {
			bad = invalidParams("Parameter notifications.%s must hold strings", name)
			return false
		}
		list = append(list, s)
		return true
	})
	return list, bad
}

// keyStringList is keyStrings for lists that are shown even when empty.
func keyStringList(b []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return keyRaw(b, name, []byte("[]"))
	}
	return keyStrings(b, name, values)
}

// watchAll starts to watch resources and returns those that can be watched.
func (c *conn) watchAll(r *request, l *listener, uris []string) []string {
	if uris == nil || !c.server.canSubscribe() {
		return nil
	}
	honoured := []string{}
	l.uris = make(map[string]bool)
	for _, uri := range uris {
		if l.uris[uri] || !validURI(uri) {
			continue
		}
		stop, err := c.server.watch(&r.ctx, uri)
		if err != nil {
			c.opts.Logger.Debug("a resource cannot be watched", "uri", clip(uri), "error", err)
			continue
		}
		l.uris[uri] = true
		l.stops = append(l.stops, stop)
		honoured = append(honoured, uri)
	}
	return honoured
}

// tell writes one event to a listener.
func (c *conn) tell(l *listener, e event) {
	r := l.request
	line := []byte(`{"jsonrpc":"2.0","method":"`)
	switch e.kind {
	case listEvent:
		line = append(line, listChangedMethods[e.list]+`","params":{`...)
	case resourceEvent:
		line = keyString(append(line, `notifications/resources/updated","params":{`...), "uri", e.name)
	case taskEvent:
		task, err := c.server.Tasks.GetTask(&r.ctx, e.name, &r.x)
		if err != nil {
			return
		}
		line = append(line, `notifications/tasks","params":{`...)
		if line, err = r.appendTaskDetails(line, task); err != nil {
			return
		}
	}
	line = append(key(line, "_meta"), '{')
	line = append(keyRaw(line, metaSubscription, r.id), "}}}\n"...)
	c.out.send(r, line, false)
}

// endListener forgets a listener. Nothing more is written for it.
func (c *conn) endListener(r *request) {
	l := c.events.remove(r)
	if l == nil {
		return
	}
	for _, stop := range l.stops {
		stop()
	}
	c.reply(r, nil)
	c.release(r)
}

// dropListeners ends all listeners without a word.
func (c *conn) dropListeners() {
	for _, r := range c.events.all() {
		c.out.close(r)
		c.endListener(r)
	}
}

// closeListeners ends all listeners as a server does that shuts down: both ways
// that the specification names.
func (c *conn) closeListeners() {
	for _, r := range c.events.all() {
		line := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{`...)
		line = append(keyRaw(line, "requestId", r.id), "}}\n"...)
		line = append(key(appendResponse(line, r.id), "result"), '{')
		r.resultMeta = map[string]any{metaSubscription: json.RawMessage(r.id)}
		line = append(r.appendResultEnd(line), "}\n"...)
		c.out.send(r, line, true)
		c.endListener(r)
	}
}

// watches counts the subscribers of each watched resource.
type watches struct {
	mu  sync.Mutex // protects byURI
	uri map[string]*watch
}

type watch struct {
	mu    sync.Mutex // held while watching starts; protects the fields below
	count int
	stop  func()
}

// watch subscribes to a resource; the first subscriber starts the watching, and
// the last call of the functions returned stops it.
func (s *Server) watch(ctx context.Context, uri string) (stop func(), err error) {
	w := &s.watches
	w.mu.Lock()
	if w.uri == nil {
		w.uri = make(map[string]*watch)
	}
	entry := w.uri[uri]
	if entry == nil {
		entry = &watch{}
		w.uri[uri] = entry
	}
	w.mu.Unlock()
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.count == 0 {
		if entry.stop, err = s.Resources.(ResourceWatcher).WatchResource(ctx, uri); err != nil {
			return nil, err
		}
	}
	entry.count++
	var once sync.Once
	return func() {
		once.Do(func() {
			entry.mu.Lock()
			defer entry.mu.Unlock()
			if entry.count--; entry.count == 0 && entry.stop != nil {
				entry.stop()
			}
		})
	}, nil
}
