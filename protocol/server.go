package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"fabro-mcp/transport"
)

// Server is what a program offers. It is filled in once, before the first Serve,
// and may then serve several streams at once. A nil feature is a capability that
// is not declared.
type Server struct {
	Info         Implementation
	Instructions string // for the model; empty is absent
	Tools        []Tool // SetTools changes them later
	Resources    Resources
	Prompts      []Prompt // SetPrompts changes them later
	Completions  Completer
	Tasks        TaskProvider
	Logging      bool   // declares logging; Exchange.Log then reaches the peer
	Sealer       Sealer // seals requestState and cursors; nil is a key that dies with the process
	Options      Options

	once    sync.Once
	err     error // of the preparation
	opts    Options
	revs    revisionTable
	tools   atomic.Pointer[toolSet]
	prompts atomic.Pointer[promptSet]
	watches watches
	signal  wakeup     // a task has changed
	mu      sync.Mutex // protects conns
	conns   map[*conn]struct{}
}

// Check reports what is wrong with the server's definitions, as Serve would.
func (s *Server) Check() error {
	s.once.Do(func() { s.err = s.prepare() })
	return s.err
}

func (s *Server) prepare() error {
	s.opts = s.Options.withDefaults()
	s.conns = make(map[*conn]struct{})
	if s.Info.Name == "" || s.Info.Version == "" {
		return errors.New("protocol: Info needs a name and a version")
	}
	s.revs = revisions
	if s.opts.Revisions != nil {
		var err error
		if s.revs, err = revisions.only(s.opts.Revisions); err != nil {
			return err
		}
	}
	if s.Sealer == nil {
		s.Sealer = newEphemeralSealer()
	}
	tools, err := newToolSet(s.Tools, s.Tasks != nil)
	if err != nil {
		return fmt.Errorf("protocol: %w", err)
	}
	prompts, err := newPromptSet(s.Prompts)
	if err != nil {
		return fmt.Errorf("protocol: %w", err)
	}
	s.tools.Store(tools)
	s.prompts.Store(prompts)
	return nil
}

// SetTools replaces the set of tools and announces the change. A server that has
// none at the start must still have a non-nil Tools to declare the capability.
func (s *Server) SetTools(tools []Tool) error {
	if err := s.Check(); err != nil {
		return err
	}
	set, err := newToolSet(tools, s.Tasks != nil)
	if err != nil {
		return fmt.Errorf("protocol: %w", err)
	}
	s.tools.Store(set)
	s.Changed(ToolList)
	return nil
}

// SetPrompts replaces the set of prompts and announces the change.
func (s *Server) SetPrompts(prompts []Prompt) error {
	if err := s.Check(); err != nil {
		return err
	}
	set, err := newPromptSet(prompts)
	if err != nil {
		return fmt.Errorf("protocol: %w", err)
	}
	s.prompts.Store(set)
	s.Changed(PromptList)
	return nil
}

// Serve answers the peer of a stream until its input ends, and then until the
// requests it has read are answered (within Options.DrainGrace): nil. When ctx
// ends, the same within Options.StopGrace. It returns ErrPeerGone when the peer no
// longer reads, and the first fault of the definitions before anything is read.
// The stream is closed when Serve returns.
func (s *Server) Serve(ctx context.Context, stream *transport.LineStream) error {
	if err := s.Check(); err != nil {
		return err
	}
	stream.SetMaxFrame(s.opts.MaxMessageBytes)
	c := newConn(s, stream)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	return c.serve(ctx)
}

func (s *Server) eachConn(f func(*conn)) {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

func (s *Server) hasTools() bool   { return s.Tools != nil }
func (s *Server) hasPrompts() bool { return s.Prompts != nil }

// appendCapabilities appends the object of declared capabilities.
func (s *Server) appendCapabilities(b []byte, rev *revision) []byte {
	changes := func(b []byte) []byte {
		if !s.opts.StaticLists {
			b = keyBool(b, "listChanged", true)
		}
		return b
	}
	b = append(b, '{')
	if s.Completions != nil && rev.has(featCompletions) {
		b = append(key(b, "completions"), "{}"...)
	}
	if s.Logging {
		b = append(key(b, "logging"), "{}"...)
	}
	if s.hasPrompts() {
		b = append(changes(append(key(b, "prompts"), '{')), '}')
	}
	if s.Resources != nil {
		b = changes(append(key(b, "resources"), '{'))
		if s.canSubscribe() {
			b = keyBool(b, "subscribe", true)
		}
		b = append(b, '}')
	}
	if s.hasTools() {
		b = append(changes(append(key(b, "tools"), '{')), '}')
	}
	if s.Tasks != nil && rev.has(featCoreTasks) {
		b = append(key(b, "tasks"), `{"cancel":{},"requests":{"tools":{"call":{}}}}`...)
	}
	if s.Tasks != nil && rev.has(featExtensions) {
		b = append(key(b, "extensions"), `{"`+extensionTasks+`":{}}`...)
	}
	return append(b, '}')
}

func (s *Server) canSubscribe() bool {
	_, ok := s.Resources.(ResourceWatcher)
	return ok
}
