package api

// route is one operation. Paths are those of http.ServeMux.
type route struct {
	method, path string
	id           string // operationId
	do           handler
	open         bool // needs no token
}

const v1 = "/api/v1"

// routes is everything the embedded server answers.
func (s *Server) routes() []route {
	list := []route{
		{"GET", "/health", "getHealth", s.health, true},
		{"GET", v1 + "/health", "getApiHealth", s.health, true},
		{"GET", v1 + "/openapi.json", "getOpenApiSpec", s.openAPI, true},
		{"GET", v1 + "/auth/config", "getAuthConfig", s.authConfig, true},

		{"GET", v1 + "/runs", "listRuns", s.listRuns, false},
		{"POST", v1 + "/runs", "createRun", s.createRun, false},
		{"GET", v1 + "/runs/resolve", "resolveRun", s.resolveRun, false},
		{"POST", v1 + "/runs/archive", "batchArchiveRuns", s.batchArchive(true), false},
		{"POST", v1 + "/runs/unarchive", "batchUnarchiveRuns", s.batchArchive(false), false},
		{"POST", v1 + "/runs/delete", "batchDeleteRuns", s.batchDelete, false},
		{"GET", v1 + "/runs/{id}", "retrieveRun", s.getRun, false},
		{"PATCH", v1 + "/runs/{id}", "updateRun", s.updateRun, false},
		{"DELETE", v1 + "/runs/{id}", "deleteRun", s.deleteRun, false},
		{"POST", v1 + "/runs/{id}/start", "startRun", s.startRun, false},
		{"POST", v1 + "/runs/{id}/approve", "approveRun", s.approveRun, false},
		{"POST", v1 + "/runs/{id}/deny", "denyRun", s.denyRun, false},
		{"POST", v1 + "/runs/{id}/cancel", "cancelRun", s.cancelRun, false},
		{"POST", v1 + "/runs/{id}/pause", "pauseRun", s.pauseRun, false},
		{"POST", v1 + "/runs/{id}/unpause", "unpauseRun", s.unpauseRun, false},
		{"POST", v1 + "/runs/{id}/archive", "archiveRun", s.archiveRun(true), false},
		{"POST", v1 + "/runs/{id}/unarchive", "unarchiveRun", s.archiveRun(false), false},
		{"POST", v1 + "/runs/{id}/retry", "retryRun", s.retryRun, false},
		{"PUT", v1 + "/runs/{id}/parent", "linkRunParent", s.linkParent, false},
		{"DELETE", v1 + "/runs/{id}/parent", "unlinkRunParent", s.unlinkParent, false},

		{"GET", v1 + "/runs/{id}/questions", "listRunQuestions", s.questions, false},
		{"POST", v1 + "/runs/{id}/questions/{qid}/answer", "submitRunAnswer", s.answer, false},

		{"GET", v1 + "/runs/{id}/state", "getRunState", s.state, false},
		{"GET", v1 + "/runs/{id}/checkpoint", "retrieveRunCheckpoint", s.checkpoint, false},
		{"GET", v1 + "/runs/{id}/settings", "retrieveRunSettings", s.runSettings, false},
		{"GET", v1 + "/runs/{id}/timeline", "getRunTimeline", s.timeline, false},
		{"GET", v1 + "/runs/{id}/billing", "retrieveRunBilling", s.billing, false},
		{"GET", v1 + "/runs/{id}/graph/source", "retrieveRunGraphSource", s.graphSource, false},
		{"GET", v1 + "/runs/{id}/logs", "getRunLogs", s.runLog, false},
		{"GET", v1 + "/runs/{id}/events", "listRunEvents", s.events, false},
		{"GET", v1 + "/runs/{id}/events/{seq}", "getRunEventDetail", s.eventDetail, false},
		{"GET", v1 + "/runs/{id}/attach", "attachRunEvents", s.attachRun, false},
		{"GET", v1 + "/attach", "attachEvents", s.attachAll, false},
		{"GET", v1 + "/runs/{id}/blobs/{blobHash}", "readRunBlob", s.readBlob, false},
		{"POST", v1 + "/runs/{id}/blobs", "writeRunBlob", s.writeBlob, false},

		{"GET", v1 + "/runs/{id}/stages", "listRunStages", s.stages, false},
		{"GET", v1 + "/runs/{id}/stages/{stageId}/events", "listStageEvents", s.stageEvents, false},
		{"GET", v1 + "/runs/{id}/stages/{stageId}/logs/output", "getRunStageCommandLog", s.stageLog, false},
		{"GET", v1 + "/runs/{id}/stages/{stageId}/context-window", "getRunStageContextWindow", s.contextWindow, false},
		{"GET", v1 + "/runs/{id}/stages/{stageId}/artifacts", "listStageArtifacts", s.stageArtifacts, false},
		{"GET", v1 + "/runs/{id}/artifacts", "listRunArtifacts", s.artifacts, false},
		{"GET", v1 + "/runs/{id}/files", "listRunFiles", s.files, false},

		{"POST", v1 + "/validate", "validateRunManifest", s.validate, false},
		{"POST", v1 + "/preflight", "runPreflight", s.preflight, false},

		{"GET", v1 + "/variables", "listVariables", s.listVariables, false},
		{"POST", v1 + "/variables", "createVariable", s.createVariable, false},
		{"GET", v1 + "/variables/{name}", "getVariable", s.getVariable, false},
		{"PUT", v1 + "/variables/{name}", "updateVariable", s.updateVariable, false},
		{"DELETE", v1 + "/variables/{name}", "deleteVariable", s.deleteVariable, false},

		{"GET", v1 + "/system/info", "getSystemInfo", s.systemInfo, false},
		{"GET", v1 + "/system/df", "getSystemDiskUsage", s.diskUsage, false},
		{"POST", v1 + "/system/prune/runs", "pruneRuns", s.pruneRuns, false},
		{"GET", v1 + "/auth/me", "getAuthMe", s.authMe, false},
		{"GET", v1 + "/user", "getUser", s.user, false},
		{"GET", v1 + "/environments", "listEnvironments", s.environments, false},
		{"GET", v1 + "/models", "listModels", empty(true), false},
		{"GET", v1 + "/providers", "listProviders", empty(false), false},
		{"GET", v1 + "/secrets", "listSecrets", empty(false), false},
		{"GET", v1 + "/automations", "listAutomations", emptyTotal, false},
		{"GET", v1 + "/mcp-servers", "listMcpServers", emptyTotal, false},

		{"GET", v1 + "/runs/{id}/pair", "getRunPairStatus", s.pairStatus, false},
		{"POST", v1 + "/runs/{id}/pair", "startRunPair", s.pairStart, false},
		{"GET", v1 + "/runs/{id}/pair/{pairId}", "getRunPair", s.pairMissing, false},
		{"DELETE", v1 + "/runs/{id}/pair/{pairId}", "endRunPair", s.pairMissing, false},
		{"POST", v1 + "/runs/{id}/pair/{pairId}/messages", "sendRunPairMessage", s.pairMissing, false},
		{"GET", v1 + "/runs/{id}/pair/{pairId}/transcript", "getRunPairTranscript", s.pairMissing, false},
		{"POST", v1 + "/runs/{id}/steer", "steerRun", s.steer, false},
		{"POST", v1 + "/runs/{id}/interrupt", "interruptRun", s.interrupt, false},
		{"POST", v1 + "/runs/{id}/fork", "forkRun", s.fork("fork"), false},
		{"POST", v1 + "/runs/{id}/rewind", "rewindRun", s.fork("rewind"), false},

		// Not part of Fabro: the orderly end of the daemon, the same on every system.
		{"POST", v1 + "/embedded/stop", "stopEmbeddedServer", s.stop, false},
	}
	for _, m := range missing {
		list = append(list, route{m.method, v1 + m.path, m.id, s.unavailable(m.what), false})
	}
	return list
}
