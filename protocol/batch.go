package protocol

import "sync"

// batch gathers the replies to one array of messages.
type batch struct {
	mu   sync.Mutex // protects the fields below
	out  []byte     // the array so far, open at its end
	left int        // requests whose reply is not in yet
}

// admitBatch takes an array. Only one revision has them, in an open session; for
// every other peer the whole array is one invalid request and nothing in it runs.
func (c *conn) admitBatch(w *worker, frame []byte, v verdict) {
	s := c.session.Load()
	empty := true
	elements(frame, func([]byte) bool { empty = false; return false })
	switch {
	case s == nil || !s.rev.has(featBatch):
		w.out = appendErrorLine(w.out, nil, errNoBatch)
		return
	case empty:
		w.out = appendErrorLine(w.out, nil, &Error{Code: CodeInvalidRequest, Message: "Invalid request: the batch is empty"})
		return
	case v == scanDuplicate:
		w.out = appendErrorLine(w.out, nil, errDuplicate)
		return
	case v == scanDepth:
		w.out = appendErrorLine(w.out, nil, errDepth)
		return
	}
	frame = c.stream.Own(frame)
	// The batch holds itself open while its elements are being admitted.
	b := &batch{out: []byte{'['}, left: 1}
	elements(frame, func(value []byte) bool {
		c.admitElement(b, value)
		return true
	})
	if line := b.done(); line != nil {
		w.out = append(w.out, line...)
	}
}

func (c *conn) admitElement(b *batch, value []byte) {
	var e envelope
	if !isObject(value) {
		b.append(errorObject(nil, errNoObject))
		return
	}
	members(value, func(name, v []byte) bool { e.set(name, v); return true })
	switch {
	case e.isResponse():
		c.deliver(&e)
		return
	case e.id == nil && isString(e.method):
		c.notified(&e)
		return
	}
	if fault := e.fault(); fault != nil {
		b.append(errorObject(e.readableID(), fault))
		return
	}
	r := &request{conn: c, id: e.id, batch: b}
	r.x.request = r
	if err := c.route(r, &e); err != nil {
		b.append(errorObject(e.id, err))
		return
	}
	if !r.rev.has(featBatch) {
		b.append(errorObject(e.id, errNoBatch))
		return
	}
	b.expect()
	run, refuse := c.take(r, c.effortOf(r))
	switch {
	case refuse != nil:
		b.append(errorObject(e.id, refuse))
		b.done()
	case run:
		c.spawnRun(r)
	case !r.taken(): // dropped for its id
		b.done()
	}
}

func errorObject(id []byte, e *Error) []byte {
	line := appendErrorLine(nil, id, e)
	return line[:len(line)-1]
}

func (b *batch) expect() {
	b.mu.Lock()
	b.left++
	b.mu.Unlock()
}

func (b *batch) append(object []byte) {
	b.mu.Lock()
	b.out = append(comma(b.out), object...)
	b.mu.Unlock()
}

// done counts one expected reply off. The last one gets the finished line, or nil
// where there was nothing to answer.
func (b *batch) done() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left > 0 || len(b.out) == 1 {
		return nil
	}
	return append(b.out, "]\n"...)
}

// add takes the response line of a request and sends the array when it was the last.
func (b *batch) add(c *conn, r *request, line []byte) {
	if c.out.close(r) && len(line) > 0 {
		b.append(line[:len(line)-1])
	}
	if whole := b.done(); whole != nil {
		c.out.send(nil, whole, false)
	}
}
