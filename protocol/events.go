package protocol

import (
	"sync"
)

// eventKind is what kind of thing an event is about.
type eventKind uint8

const (
	listEvent eventKind = iota
	resourceEvent
	taskEvent
)

// event is one change, before it is known who wants to hear of it.
type event struct {
	kind eventKind
	list ListKind
	name string // a uri, a task id
}

// filter is what a listener wants to be told.
type filter struct {
	lists [3]bool
	uris  map[string]bool
	tasks map[string]bool
}

func (f *filter) wants(e event) bool {
	switch e.kind {
	case listEvent:
		return f.lists[e.list]
	case resourceEvent:
		return f.uris[e.name]
	}
	return f.tasks[e.name]
}

// listener is an open subscriptions/listen.
type listener struct {
	filter
	request *request
	stops   []func() // of watched resources
	acked   bool     // guarded by eventQueue.mu
}

// eventQueue delivers events without making whoever raises them wait: for each
// listener an event is pending at most once, and one goroutine writes them.
type eventQueue struct {
	conn *conn

	mu        sync.Mutex // protects the fields below, and listener.acked
	listeners map[*request]*listener
	pending   []delivery
	isPending map[delivery]bool
	running   bool
}

// delivery is an event for one listener, or for the session where it is nil.
type delivery struct {
	event
	to *listener
}

func (q *eventQueue) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.listeners {
		if l.wants(e) {
			q.pushLocked(delivery{e, l})
		}
	}
	if s := q.conn.session.Load(); s != nil && s.wants(e) {
		q.pushLocked(delivery{e, nil})
	}
}

func (q *eventQueue) pushLocked(d delivery) {
	if q.isPending[d] {
		return
	}
	if q.isPending == nil {
		q.isPending = make(map[delivery]bool)
	}
	q.isPending[d] = true
	q.pending = append(q.pending, d)
	q.startLocked()
}

func (q *eventQueue) startLocked() {
	if !q.running && len(q.pending) > 0 {
		q.running = true
		q.conn.begin()
		go q.run()
	}
}

// run writes what is pending; what is for a listener that is not yet acknowledged
// stays until it is.
func (q *eventQueue) run() {
	defer q.conn.end()
	for {
		q.mu.Lock()
		var next *delivery
		for i := range q.pending {
			if l := q.pending[i].to; l == nil || l.acked {
				d := q.pending[i]
				next = &d
				q.pending = append(q.pending[:i], q.pending[i+1:]...)
				delete(q.isPending, d)
				break
			}
		}
		if next == nil {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		if next.to != nil {
			q.conn.tell(next.to, next.event)
		} else {
			q.conn.tellSession(next.event)
		}
	}
}

func (q *eventQueue) register(l *listener) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listeners == nil {
		q.listeners = make(map[*request]*listener)
	}
	q.listeners[l.request] = l
}

// acknowledge lets events flow to a listener.
func (q *eventQueue) acknowledge(l *listener) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.acked = true
	q.startLocked()
}

// remove takes a listener out; nil when it was not there (any more).
func (q *eventQueue) remove(r *request) *listener {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.listeners[r]
	delete(q.listeners, r)
	kept := q.pending[:0]
	for _, d := range q.pending {
		if d.to == nil || d.to != l {
			kept = append(kept, d)
		} else {
			delete(q.isPending, d)
		}
	}
	q.pending = kept
	return l
}

func (q *eventQueue) all() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var requests []*request
	for r := range q.listeners {
		requests = append(requests, r)
	}
	return requests
}
