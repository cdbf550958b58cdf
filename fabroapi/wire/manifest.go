package wire

// ManifestVersion is the only manifest version there is.
const ManifestVersion = 1

// RunManifest is the body of POST /runs, /validate and /preflight: a workflow
// with everything it refers to. A server never reads workflow files from the
// client's disk.
//
// Keys and paths inside are manifest paths: relative to Cwd, separated by "/",
// lexically clean, possibly starting with "../". Only Cwd and the paths of
// Configs are absolute.
type RunManifest struct {
	Version  int     `json:"version"`
	ParentID *string `json:"parent_id,omitempty"`
	// Title is one line of at most 100 characters. Without it the server takes
	// the first line of the goal.
	Title *string `json:"title,omitempty"`
	// Cwd is the source directory of the run; on a local server commands run
	// there.
	Cwd    string         `json:"cwd"`
	Git    *ManifestGit   `json:"git,omitempty"`
	Goal   *ManifestGoal  `json:"goal,omitempty"`
	Args   *ManifestArgs  `json:"args,omitempty"`
	Target ManifestTarget `json:"target"`
	// Configs holds the project's settings file first, then the user's.
	Configs   []ManifestConfig            `json:"configs,omitempty"`
	Workflows map[string]ManifestWorkflow `json:"workflows"`

	// AgentCommand is the argv that runs agent stages on the embedded server. It
	// is no part of the manifest: the client sends it as a request header, and to
	// no other server.
	AgentCommand []string `json:"-"`
}

// ManifestTarget names the root graph: a key of RunManifest.Workflows.
type ManifestTarget struct {
	Path string `json:"path"`
}

// ManifestWorkflow is one graph with its own settings file and the files that
// it refers to. Child workflows are further entries of RunManifest.Workflows.
type ManifestWorkflow struct {
	Source string                  `json:"source"`
	Config *ManifestWorkflowConfig `json:"config,omitempty"`
	Files  map[string]ManifestFile `json:"files,omitempty"`
}

// ManifestWorkflowConfig is a workflow.toml.
type ManifestWorkflowConfig struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// ManifestFile is one bundled file and the reference that first led to it.
type ManifestFile struct {
	Content string          `json:"content"`
	Ref     ManifestFileRef `json:"ref"`
}

// Kinds of ManifestFileRef.Type.
const (
	FileInline     = "file_inline"
	FileImport     = "import"
	FileDockerfile = "dockerfile"
)

// ManifestFileRef says how a bundled file was referred to.
type ManifestFileRef struct {
	Type string `json:"type"`
	// Original is the reference as written.
	Original string `json:"original"`
	// From is the key of the referring file.
	From *string `json:"from,omitempty"`
}

// Kinds of ManifestConfig.Type.
const (
	ConfigProject = "project"
	ConfigUser    = "user"
)

// ManifestConfig is a settings file found by the client. Path is absolute.
type ManifestConfig struct {
	Type   string  `json:"type"`
	Path   *string `json:"path,omitempty"`
	Source *string `json:"source,omitempty"`
}

// Kinds of ManifestGoal.Type. A server lets value and file override the goal
// of the graph; graph is for information only.
const (
	GoalValue = "value"
	GoalFile  = "file"
	GoalGraph = "graph"
)

// ManifestGoal is the goal text, unrendered.
type ManifestGoal struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ManifestArgs are overrides above every settings file. The booleans are
// pointers so that an explicit false can be told from an absent one.
type ManifestArgs struct {
	Model           string `json:"model,omitempty"`
	Provider        string `json:"provider,omitempty"`
	Environment     string `json:"environment,omitempty"`
	Verbose         *bool  `json:"verbose,omitempty"`
	DryRun          *bool  `json:"dry_run,omitempty"`
	AutoApprove     *bool  `json:"auto_approve,omitempty"`
	PreserveSandbox *bool  `json:"preserve_sandbox,omitempty"`
	// Label holds "key=value" entries.
	Label []string `json:"label,omitempty"`
	// Input holds "key=value" entries; the value is a TOML scalar, or plain
	// text where it is not valid TOML. The entry is split at the first "=".
	Input []string `json:"input,omitempty"`
}

// Values of ManifestGit.Dirty.
const (
	GitClean   = "clean"
	GitDirty   = "dirty"
	GitUnknown = "unknown"
)

// ManifestGit is the state of the repository around the working directory
// (GitContext in the API description).
type ManifestGit struct {
	// OriginURL has no credentials and no trailing ".git"; empty without a
	// remote.
	OriginURL string `json:"origin_url"`
	// Branch is "HEAD" when detached.
	Branch string  `json:"branch"`
	SHA    *string `json:"sha,omitempty"`
	Dirty  string  `json:"dirty"`
}
