package protocol

// Subscriptions of a session: what listeners are to the era of per-request
// metadata.

func serveSubscribe(r *request, b []byte) ([]byte, error) {
	uri, bad := r.uriParam()
	if bad != nil {
		return b, bad
	}
	stop, err := guard(r, func() (func(), error) { return r.conn.server.watch(&r.ctx, uri) })
	if err != nil {
		return b, err
	}
	s := r.conn.session.Load()
	s.mu.Lock()
	before := s.subs[uri]
	s.subs[uri] = stop
	s.mu.Unlock()
	if before != nil {
		before()
	}
	return b, nil
}

func serveUnsubscribe(r *request, b []byte) ([]byte, error) {
	uri, bad := r.uriParam()
	if bad != nil {
		return b, bad
	}
	s := r.conn.session.Load()
	s.mu.Lock()
	stop := s.subs[uri]
	delete(s.subs, uri)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	return b, nil
}

// close ends the session's subscriptions.
func (s *session) close() {
	s.mu.Lock()
	subs := s.subs
	s.subs = nil
	s.mu.Unlock()
	for _, stop := range subs {
		stop()
	}
}

// wants reports whether the session is to be told of an event.
func (s *session) wants(e event) bool {
	if !s.isOpen() {
		return false
	}
	switch e.kind {
	case listEvent:
		return true
	case resourceEvent:
		return s.subscribed(e.name)
	}
	return s.follows(e.name)
}

func (s *session) subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs[uri] != nil
}

// tellSession writes one event to the session.
func (c *conn) tellSession(e event) {
	s := c.session.Load()
	line := []byte(`{"jsonrpc":"2.0","method":"`)
	switch e.kind {
	case listEvent:
		line = append(line, listChangedMethods[e.list]+`"}`...)
	case resourceEvent:
		if !s.subscribed(e.name) {
			return
		}
		line = append(keyString(append(line, `notifications/resources/updated","params":{`...), "uri", e.name), "}}"...)
	case taskEvent:
		params := c.sessionTask(s, e.name)
		if params == nil {
			return
		}
		line = append(append(line, `notifications/tasks/status","params":`...), params...)
		line = append(line, '}')
	}
	c.out.send(nil, append(line, '\n'), false)
}
