package protocol

import (
	"sync"
	"sync/atomic"
)

// session is what initialize opened: one for the life of the stream, beside
// whatever requests carry their own metadata.
type session struct {
	rev         *revision
	caps        clientCapabilities
	client      Implementation
	level       atomic.Uint32 // the lowest Level that is sent
	initialized chan struct{} // closed by notifications/initialized
	once        sync.Once

	mu    sync.Mutex // protects the fields below
	subs  map[string]func()
	tasks map[string]*request // of this session, by the request that made them
}

// open notes that the client is ready to be told things unasked.
func (s *session) open() { s.once.Do(func() { close(s.initialized) }) }

func (s *session) isOpen() bool {
	select {
	case <-s.initialized:
		return true
	default:
		return false
	}
}

// initialize opens the session. It runs while the line is admitted, so that the
// next line already meets it. The caller renders the answer with serveInitialize.
func (c *conn) initialize(r *request) *Error {
	if r.batch != nil {
		return errInitBatch
	}
	version, err := r.stringParam("protocolVersion")
	if err != nil {
		return err
	}
	caps := r.param("capabilities")
	if !isObject(caps) {
		return invalidParams("Parameter capabilities must be an object")
	}
	client, cause := readImplementation(r.param("clientInfo"))
	if cause != nil {
		return invalidParams("Parameter clientInfo: %v", cause)
	}
	rev := c.server.revs.of(version)
	if rev == nil || !rev.has(featHandshake) {
		rev = c.server.revs.latestWith(featHandshake)
	}
	s := &session{rev: rev, client: client, initialized: make(chan struct{}), subs: make(map[string]func())}
	if s.caps, err = readCapabilities(caps, rev); err != nil {
		return err
	}
	s.level.Store(uint32(LevelInfo))
	if err := r.meta.checkToken(); err != nil {
		return err
	}
	r.rev = rev
	r.method = initializeMethod
	c.session.Store(s)
	return nil
}

var initializeMethod = &method{name: "initialize", serve: serveInitialize}

func serveInitialize(r *request, b []byte) ([]byte, error) {
	s := r.conn.server
	b = keyString(b, "protocolVersion", r.rev.name)
	b = s.appendCapabilities(key(b, "capabilities"), r.rev)
	b = s.Info.append(key(b, "serverInfo"), r.rev)
	return keyText(b, "instructions", s.Instructions), nil
}

func serveDiscover(r *request, b []byte) ([]byte, error) {
	s := r.conn.server
	r.ttl, r.scope = s.opts.ListTTL, ScopePublic
	b = keyStrings(b, "supportedVersions", s.revs.names(0))
	b = s.appendCapabilities(key(b, "capabilities"), r.rev)
	return keyText(b, "instructions", s.Instructions), nil
}
