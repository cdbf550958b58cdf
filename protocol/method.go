package protocol

// How a method is run.
type effort uint8

const (
	inline  effort = iota // answered by the engine itself, at once
	works                 // runs a handler
	waiting               // waits for something; not counted among the handlers
)

// method is one row of the table of request methods.
type method struct {
	name   string
	effort effort
	caches bool // its results carry cache hints
	// in says whether a revision has the method.
	in func(rev *revision) bool
	// declared says whether the server has what the method needs; nil is always.
	declared func(s *Server) bool
	// serve appends the members of the result to b, which ends inside its bracket.
	serve func(r *request, b []byte) ([]byte, error)
}

func every(*revision) bool { return true }

func with(f feature) func(*revision) bool {
	return func(rev *revision) bool { return rev.has(f) }
}

// methods is the table. It is so short that a search is the fastest.
var methods []method

// methodNamed returns the row of a method, nil where there is none.
func methodNamed(name []byte) *method {
	for i := range methods {
		if methods[i].name == string(name) {
			return &methods[i]
		}
	}
	return nil
}

// The table is filled in here because its functions reach it.
func init() {
	methods = []method{
		{name: "initialize", in: with(featHandshake)},
		{name: "ping", in: with(featHandshake), serve: servePing},
		{name: "server/discover", caches: true, in: with(featPerRequest), serve: serveDiscover},
		{name: "subscriptions/listen", effort: waiting, in: with(featListen), declared: (*Server).canListen, serve: serveListen},
		{name: "tools/list", caches: true, in: every, declared: (*Server).hasTools, serve: serveToolsList},
		{name: "tools/call", effort: works, in: every, declared: (*Server).hasTools, serve: serveToolsCall},
		{name: "resources/list", effort: works, caches: true, in: every, declared: (*Server).hasResources, serve: serveResourcesList},
		{name: "resources/templates/list", effort: works, caches: true, in: every, declared: (*Server).hasResources, serve: serveTemplatesList},
		{name: "resources/read", effort: works, caches: true, in: every, declared: (*Server).hasResources, serve: serveResourcesRead},
		{name: "resources/subscribe", effort: works, in: with(featHandshake), declared: (*Server).canSubscribe, serve: serveSubscribe},
		{name: "resources/unsubscribe", in: with(featHandshake), declared: (*Server).canSubscribe, serve: serveUnsubscribe},
		{name: "prompts/list", caches: true, in: every, declared: (*Server).hasPrompts, serve: servePromptsList},
		{name: "prompts/get", effort: works, in: every, declared: (*Server).hasPrompts, serve: servePromptsGet},
		{name: "completion/complete", effort: works, in: every, declared: (*Server).hasCompletions, serve: serveComplete},
		{name: "logging/setLevel", in: with(featHandshake), declared: (*Server).hasLogging, serve: serveSetLevel},
		{name: "tasks/get", effort: waiting, in: hasTaskMethods, declared: (*Server).hasTasks, serve: serveTasksGet},
		{name: "tasks/update", effort: waiting, in: with(featExtensions), declared: (*Server).hasTasks, serve: serveTasksUpdate},
		{name: "tasks/cancel", effort: waiting, in: hasTaskMethods, declared: (*Server).hasTasks, serve: serveTasksCancel},
		{name: "tasks/result", effort: waiting, in: with(featCoreTasks), declared: (*Server).hasTasks, serve: serveTasksResult},
	}
}

func (s *Server) hasResources() bool   { return s.Resources != nil }
func (s *Server) hasCompletions() bool { return s.Completions != nil }
func (s *Server) hasLogging() bool     { return s.Logging }
func (s *Server) hasTasks() bool       { return s.Tasks != nil }

func hasTaskMethods(rev *revision) bool { return rev.has(featCoreTasks) || rev.has(featExtensions) }

func servePing(_ *request, b []byte) ([]byte, error) { return b, nil }
