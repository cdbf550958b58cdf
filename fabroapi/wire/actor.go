package wire

// Kinds of Actor.Kind.
const (
	ActorUser    = "user"
	ActorWorker  = "worker"
	ActorWebhook = "webhook"
	ActorSlack   = "slack"
	ActorAgent   = "agent"
	ActorSystem  = "system"
)

// Values of Actor.SystemKind.
const (
	SystemEngine   = "engine"
	SystemWatchdog = "watchdog"
	SystemTimeout  = "timeout"
)

// Actor says who did something (Principal in the API description). Kind tells
// which of the other members are set.
type Actor struct {
	Kind string `json:"kind"`

	// user
	Identity   *Identity `json:"identity,omitempty"`
	Login      string    `json:"login,omitempty"`
	AuthMethod string    `json:"auth_method,omitempty"` // github or dev_token
	AvatarURL  string    `json:"avatar_url,omitempty"`

	// worker
	RunID string `json:"run_id,omitempty"`

	// webhook
	DeliveryID string `json:"delivery_id,omitempty"`

	// slack
	TeamID   string `json:"team_id,omitempty"`
	UserID   string `json:"user_id,omitempty"`
	UserName string `json:"user_name,omitempty"`

	// agent
	SessionID       string `json:"session_id,omitempty"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Model           string `json:"model,omitempty"`

	// system
	SystemKind string `json:"system_kind,omitempty"`
}

// Principal is the name that the API description gives to Actor.
type Principal = Actor

// Identity is a user as the identity provider names them.
type Identity struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// DevUser is the actor of every request made with a dev token.
func DevUser() *Actor {
	return &Actor{Kind: ActorUser, Identity: &Identity{Issuer: "fabro:dev", Subject: "dev"}, Login: "dev", AuthMethod: "dev_token"}
}

// Worker is the actor of what the engine does for a run.
func Worker(runID string) *Actor { return &Actor{Kind: ActorWorker, RunID: runID} }

// System is the actor of what the server does by itself; kind is one of the
// System constants.
func System(kind string) *Actor { return &Actor{Kind: ActorSystem, SystemKind: kind} }
