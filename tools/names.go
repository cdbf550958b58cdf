package tools

// Names of the tools.
const (
	nameCreate   = "fabro_run_create"
	nameSearch   = "fabro_run_search"
	nameGet      = "fabro_run_get"
	nameInteract = "fabro_run_interact"
	nameGather   = "fabro_run_gather"
	namePair     = "fabro_run_pair"
	nameEvents   = "fabro_run_events"

	nameDiagnose         = "fabro_run_diagnose"
	nameLogs             = "fabro_run_logs"
	nameWorkflowList     = "fabro_workflow_list"
	nameWorkflowValidate = "fabro_workflow_validate"
	nameAgentAudit       = "fabro_agent_audit"
)

// Names of the toolsets.
const (
	toolsetRuns    = "runs"
	toolsetInsight = "insight"
)
