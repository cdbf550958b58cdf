package api

import (
	"net/http"

	"fabro-mcp/internal/embedded/runs"
)

// What several missing operations need.
const (
	needsGraphviz     = "drawing a graph; `fabro graph` does it where Graphviz is installed"
	needsArtifacts    = "artifacts: a local run leaves its files in its working directory"
	needsSandboxes    = "sandboxes: local runs execute on this machine"
	needsModel        = "a language model"
	needsChats        = "chats about a run, which need a language model"
	needsPulls        = "pull requests"
	needsLogins       = "sessions of people: whoever has the token of this machine is its user"
	needsFiles        = "a list of workflows: they are files of yours"
	needsInsights     = "insights"
	needsAutomations  = "automations"
	needsEnvironments = "environments of its own: runs execute on this machine"
	needsMCP          = "MCP servers of its own"
	needsSecrets      = "a store of secrets; stages see the environment of the person who started the server, without what looks like a secret"
	needsGitHub       = "a connection to GitHub"
)

// missing are operations of a real Fabro server that need something the embedded one does not have.
var missing = []struct{ method, path, id, what string }{
	{"GET", "/runs/{id}/graph", "retrieveRunGraph", needsGraphviz},
	{"POST", "/graph/render", "renderWorkflowGraph", needsGraphviz},
	{"GET", "/runs/{id}/artifacts/download", "downloadRunArtifacts", needsArtifacts},
	{"GET", "/runs/{id}/stages/{stageId}/artifacts/download", "getStageArtifact", needsArtifacts},
	{"GET", "/runs/{id}/commits", "listRunCommits", "commits: local runs have no branch of their own"},
	{"GET", "/runs/{id}/sandbox", "retrieveRunSandbox", needsSandboxes},
	{"GET", "/runs/{id}/sandbox/services", "listSandboxServices", needsSandboxes},
	{"GET", "/runs/{id}/sandbox/files", "listSandboxFiles", needsSandboxes},
	{"GET", "/runs/{id}/sandbox/file", "getSandboxFile", needsSandboxes},
	{"PUT", "/runs/{id}/sandbox/file", "putSandboxFile", needsSandboxes},
	{"POST", "/runs/{id}/sandbox/vnc", "createSandboxVncPreview", needsSandboxes},
	{"GET", "/sandboxes", "listSandboxes", needsSandboxes},
	{"POST", "/runs/{id}/preview", "generatePreviewUrl", needsSandboxes},
	{"POST", "/runs/{id}/ssh", "createRunSshAccess", needsSandboxes},
	{"GET", "/runs/{id}/pull_request", "getRunPullRequest", needsPulls},
	{"POST", "/runs/{id}/pull_request", "createRunPullRequest", needsPulls},
	{"PUT", "/runs/{id}/pull_request", "linkRunPullRequest", needsPulls},
	{"DELETE", "/runs/{id}/pull_request", "unlinkRunPullRequest", needsPulls},
	{"GET", "/runs/{id}/sessions", "listRunSessions", needsChats},
	{"POST", "/runs/{id}/sessions", "createRunSession", needsChats},
	{"POST", "/completions", "createCompletion", needsModel},
	{"POST", "/playground/chat", "createPlaygroundChat", needsModel},
	{"POST", "/runs/{id}/events", "appendRunEvent", "events from outside: only the engine writes a run's log"},
	{"GET", "/workflows", "listWorkflows", needsFiles},
	{"GET", "/insights/queries", "listSavedQueries", needsInsights},
	{"POST", "/insights/execute", "executeQuery", needsInsights},
	{"POST", "/workflow-versions", "createWorkflowVersion", "workflow versions"},
	{"POST", "/automations", "createAutomation", needsAutomations},
	{"POST", "/environments", "createEnvironment", needsEnvironments},
	{"POST", "/mcp-servers", "createMcpServer", needsMCP},
	{"POST", "/secrets", "createSecret", needsSecrets},
	{"GET", "/settings", "retrieveServerSettings", "server settings beside embedded.toml"},
	{"GET", "/system/resources", "getSystemResources", "resource measurements"},
	{"GET", "/system/integrations", "getSystemIntegrations", "integrations"},
	{"GET", "/billing", "getAggregateBilling", "billing: nothing it does costs anything"},
	{"GET", "/runs/{id}/pull_request/creation", "getRunPullRequestCreation", needsPulls},
	{"POST", "/runs/{id}/pull_request/merge", "mergeRunPullRequest", needsPulls},
	{"POST", "/runs/{id}/pull_request/close", "closeRunPullRequest", needsPulls},
	{"POST", "/runs/{id}/stages/{stageId}/artifacts", "putStageArtifact", needsArtifacts},
	{"GET", "/sandboxes/{id}", "retrieveSandbox", needsSandboxes},
	{"GET", "/sessions/{id}", "getSession", needsChats},
	{"GET", "/sessions/{id}/events", "listSessionEvents", needsChats},
	{"GET", "/sessions/{id}/attach", "attachSessionEvents", needsChats},
	{"POST", "/sessions/{id}/turns", "submitSessionTurn", needsChats},
	{"POST", "/sessions/{id}/turns/{turnId}/interrupt", "interruptSessionTurn", needsChats},
	{"POST", "/models/{id}/test", "testModel", needsModel},
	{"POST", "/providers/test", "testProviders", needsModel},
	{"POST", "/providers/{provider}/credentials/test", "testProviderCredentials", needsModel},
	{"GET", "/workflows/{name}", "retrieveWorkflow", needsFiles},
	{"GET", "/workflows/{name}/runs", "listWorkflowRuns", needsFiles},
	{"POST", "/insights/queries", "createSavedQuery", needsInsights},
	{"GET", "/insights/queries/{id}", "retrieveSavedQuery", needsInsights},
	{"PUT", "/insights/queries/{id}", "updateSavedQuery", needsInsights},
	{"DELETE", "/insights/queries/{id}", "deleteSavedQuery", needsInsights},
	{"GET", "/insights/history", "listQueryHistory", needsInsights},
	{"GET", "/automations/{id}", "retrieveAutomation", needsAutomations},
	{"PUT", "/automations/{id}", "replaceAutomation", needsAutomations},
	{"DELETE", "/automations/{id}", "deleteAutomation", needsAutomations},
	{"GET", "/automations/{id}/runs", "listAutomationRuns", needsAutomations},
	{"POST", "/automations/{id}/runs", "createAutomationRun", needsAutomations},
	{"GET", "/environments/{id}", "retrieveEnvironment", needsEnvironments},
	{"PUT", "/environments/{id}", "replaceEnvironment", needsEnvironments},
	{"DELETE", "/environments/{id}", "deleteEnvironment", needsEnvironments},
	{"GET", "/mcp-servers/{id}", "retrieveMcpServer", needsMCP},
	{"PUT", "/mcp-servers/{id}", "replaceMcpServer", needsMCP},
	{"DELETE", "/mcp-servers/{id}", "deleteMcpServer", needsMCP},
	{"DELETE", "/secrets", "deleteSecretByName", needsSecrets},
	{"GET", "/auth/sessions", "listAuthSessions", needsLogins},
	{"DELETE", "/auth/sessions/{id}", "deleteAuthSession", needsLogins},
	{"GET", "/repos/github/{owner}/{name}", "getGithubRepo", needsGitHub},
	{"POST", "/webhooks/github", "receiveGithubWebhook", needsGitHub},
	{"GET", "/system/repair/runs", "getSystemRepairRuns", "a repair of runs: what is shown is derived from their events"},
	{"POST", "/health/diagnostics", "runDiagnostics", "diagnostics of connections: it has none"},
}

// unavailable refuses an operation that needs what is named.
func (s *Server) unavailable(what string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return &runs.Refusal{Status: http.StatusNotImplemented, Detail: "The embedded server does not have " + what + ". Use a Fabro server (--server) for it."}
	}
}
